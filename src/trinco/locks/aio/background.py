"""A task that belongs to the event loop and to no task group, on asyncio and on trio."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

_running: set[Any] = set()
"""asyncio keeps only weak references to its tasks."""


def start_in_background(work: Callable[[], Awaitable[None]], context: Context | None = None) -> None:
    """``context``: of whom it does the work. What is done for all runs in nobody's: whoever happens to be the first to
    need it would lend it to all."""
    if is_trio():
        trio: Any = sys.modules["trio"]
        trio.lowlevel.spawn_system_task(work, context=context)
        return

    async def run() -> None:
        await work()

    task = asyncio.get_running_loop().create_task(run(), context=Context() if context is None else context)
    _running.add(task)
    task.add_done_callback(_running.discard)


def from_any_thread() -> Callable[[Callable[[], object]], object]:
    """What any thread may call to have something called in the event loop that runs here. It raises ``RuntimeError``
    when that has ended."""
    if is_trio():
        return _from_any_thread_to_trio()
    call: Callable[[Callable[[], object]], object] = asyncio.get_running_loop().call_soon_threadsafe
    return call


def _from_any_thread_to_trio() -> Callable[[Callable[[], object]], object]:
    trio: Any = sys.modules["trio"]
    token = trio.lowlevel.current_trio_token()

    def call(work: Callable[[], object]) -> None:
        try:
            token.run_sync_soon(work)
        except OSError as error:  # whatever ended it was raised in its own code: it does not know, and has hung up
            raise RuntimeError("this event loop has ended") from error

    return call


def running_loop() -> object:
    """The event loop that runs here; None if none does."""
    if is_trio():
        trio: Any = sys.modules["trio"]
        return trio.lowlevel.current_trio_token()
    return asyncio._get_running_loop()


def has_ended(loop: Any, call: Callable[[Callable[[], object]], object] | None) -> bool:
    """Whether nothing runs in that event loop any more, whichever thread it was of. ``call``: what
    ``from_any_thread`` gave there."""
    if loop is None or call is None:
        return True
    if isinstance(loop, asyncio.AbstractEventLoop):
        return not loop.is_running()
    try:
        call(lambda: None)
    except RuntimeError:
        return True
    return False


def is_trio() -> bool:
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_trio_token()  # trio before 0.29 has no in_trio_run
    except RuntimeError:
        return False
    return True
