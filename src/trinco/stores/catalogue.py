"""Which store a URL names. A store's file is loaded when its URL is used, and not before."""

from trinco.core.errors import ConfigError, UsageError
from trinco.stores.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

EXTRAS = {"redis": "redis", "rediss": "redis", "unix": "redis", "postgresql": "postgres", "postgres": "postgres"}
"""Schemes that need an extra, and which."""
FILES = (".db", ".sqlite", ".sqlite3")
"""How the names of databases end that somebody may have given instead of a URL."""
ENTRY_POINTS = "trinco.stores"
"""Where other packages register stores of their own: scheme = "package.module:function_of_a_url"."""


def open_store(url: str) -> Store:
    """The store that a URL names; nothing is contacted yet."""
    if url != url.strip():  # as a file of Windows leaves it: another file would be locked than everybody else's
        raise ConfigError("the URL of a store begins or ends with a space or the end of a line: remove that")
    scheme, colon, _ = url.partition(":")
    opener = OPENERS.get(scheme) if colon else None
    if opener is None:
        opener = _registered(scheme) if colon else None
    if opener is None:
        raise ConfigError(_unknown(url, scheme if colon else ""))
    try:
        return opener(url)
    except ImportError as error:
        raise ConfigError(_missing_extra(url, scheme, error)) from None
    except ConfigError:
        raise
    except UsageError as error:
        raise ConfigError(f"{hide_password(url)}: {error}") from None


def _sqlite(url: str) -> Store:
    from trinco.stores.sqlite import SQLiteStore

    path, t_max = _path_and_t_max(url, "sqlite:///", "sqlite:///relative.db or sqlite:////absolute.db")
    if path == ":memory:":
        raise ConfigError(
            "sqlite:///:memory: is of one connection, and excludes nobody: write memory: or a file's path"
        )
    return SQLiteStore(path, t_max=t_max)


def _directory(url: str) -> Store:
    from trinco.stores.directory import DirectoryStore

    path, t_max = _path_and_t_max(url, "dir:///", "dir:///path")
    return DirectoryStore(f"/{path}", t_max=t_max)


def _memory(url: str) -> Store:
    from trinco.stores.memory import MemoryStore

    name = url.partition(":")[2].strip("/")
    if "?" in name:
        raise ConfigError(f"'{url}': memory: has no options")
    return MemoryStore.named(name)


def _redis(url: str) -> Store:
    import redis  # noqa: F401 (says that the extra is missing)

    from trinco.stores.redis import RedisStore

    return RedisStore(url)


def _postgres(url: str) -> Store:
    import psycopg  # noqa: F401

    from trinco.stores.postgres import PostgresStore

    return PostgresStore(url)


OPENERS: "dict[str, Callable[[str], Store]]" = {
    "sqlite": _sqlite,
    "dir": _directory,
    "memory": _memory,
    "redis": _redis,
    "rediss": _redis,
    "unix": _redis,
    "postgresql": _postgres,
    "postgres": _postgres,
}


def _path_and_t_max(url: str, prefix: str, example: str) -> tuple[str, float]:
    from trinco.core.duration import seconds
    from trinco.leases.terms import T_MAX

    shown = hide_password(url)
    path, _, query = url.removeprefix(prefix).partition("?")
    if not url.startswith(prefix) or not path:
        raise ConfigError(f"'{shown}' names no file: write {example}")
    if "%" in path:
        from urllib.parse import unquote

        path = unquote(path)
    if "\0" in path:
        raise ConfigError(f"{shown!r}: no path has a NUL in it")
    t_max = T_MAX
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name != "t_max":
            raise ConfigError(f"'{shown}': there is no option '{name}' (there is t_max)")
        t_max = seconds(value)
        if not t_max > 0:
            raise ConfigError(f"'{shown}': t_max is a duration above zero, not {value}")
    return path, t_max


def _registered(scheme: str) -> "Callable[[str], Store] | None":
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        if point.name == scheme:
            opener: Callable[[str], Store] = point.load()
            return opener
    return None


def _unknown(url: str, scheme: str) -> str:
    from trinco.core.nearest import nearest

    known = ", ".join([*OPENERS, "quorum"])
    if not scheme:
        meant = f"sqlite:///{url} is that file" if url.endswith(FILES) else "like sqlite:///locks.db"
        return f"'{url}' is no URL of a store: it begins with its kind, {meant} (kinds: {known})"
    if scheme == "quorum":
        return "a quorum is no store of another one: list its stores one by one"
    close = nearest(scheme.lower(), [*OPENERS, "quorum"])
    meant = f"; did you mean {close}:?" if close else ""
    return f"there is no kind of store '{scheme}:'{meant} (there are {known})"


def _missing_extra(url: str, scheme: str, error: ImportError) -> str:
    extra = EXTRAS.get(scheme)
    if extra is None or not isinstance(error, ModuleNotFoundError):
        return f"{hide_password(url)} cannot be used: {error}"
    return f'{scheme}: needs a package that is not installed: pip install "trinco[{extra}]"'


def hide_password(url: str) -> str:
    """A URL for people to read."""
    scheme, slashes, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    return f"{scheme}{slashes}{user.partition(':')[0]}{at}{place}" if at else url
