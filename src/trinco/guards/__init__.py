"""The resource's side of fencing: what is written to refuses those who come too late.

A lease ends when its time is over, and a program that was stopped in the meantime does not know. Whatever it then does
carries its old token; the resource has already seen a larger one, and says no. A guard keeps the largest token that a
resource has seen, *together with the effect*, and lets an effect pass if its token is not smaller.

    SQLGuard             one row lock and one transaction, on any DB-API connection
    FileGuard            a file that is replaced or appended to
    FencingMiddleware    requests to an ASGI application; WSGIFencingMiddleware for WSGI. They ask a guard that keeps
                         marks: MemoryGuard (one process), FolderGuard (one host), ConnectingSQLGuard (any)

All of them raise ``StaleToken`` (or answer 412). ``docs/fencing.md`` tells the story.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trinco.guards.files import FileGuard as FileGuard
    from trinco.guards.files import FolderGuard as FolderGuard
    from trinco.guards.http import FencingMiddleware as FencingMiddleware
    from trinco.guards.http import MemoryGuard as MemoryGuard
    from trinco.guards.http import WSGIFencingMiddleware as WSGIFencingMiddleware
    from trinco.guards.sql import ConnectingSQLGuard as ConnectingSQLGuard
    from trinco.guards.sql import SQLGuard as SQLGuard
    from trinco.guards.sql import require_changed as require_changed
    from trinco.guards.stale import StaleToken as StaleToken

_HOMES = {
    "ConnectingSQLGuard": "sql",
    "FencingMiddleware": "http",
    "FileGuard": "files",
    "FolderGuard": "files",
    "MemoryGuard": "http",
    "SQLGuard": "sql",
    "StaleToken": "stale",
    "WSGIFencingMiddleware": "http",
    "require_changed": "sql",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (one list of the names is enough)


def __getattr__(name: str) -> Any:
    """Each guard is loaded when it is used: a program that fences files need not pay for HTTP."""
    if name not in _HOMES:
        raise AttributeError(f"trinco.guards has no '{name}'; it has {', '.join(__all__)}")
    return getattr(import_module(f"trinco.guards.{_HOMES[name]}"), name)
