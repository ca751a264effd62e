"""Which stores a service stands on: a URL, a named service of ``trinco.toml``, ``TRINCO_URL``, or the default.

What counts, first to last: the URL or ``@service`` that was given; ``TRINCO_URL``; ``[service.default]`` of the
``trinco.toml`` in this folder, or of the one in the user's config folder; an SQLite file in the user's state folder.
"""

import os

from trinco.core.duration import seconds
from trinco.core.errors import ConfigError, UsageError
from trinco.core.nearest import suggest
from trinco.core.value import Value
from trinco.locks.folders import config_folder, default_url, in_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "trinco.toml"
AUTHS = ("none", "secret", "ed25519")
QUORUM = "quorum:?..."
"""Whoever quotes all of such a URL may quote a password."""
FIELDS = ("auth", "f", "keys", "stores", "ttl", "url")
MOST_DIGITS = 9
MOST_CHARACTERS = 1 << 20
"""In a file. What has more, like /dev/zero, was not meant."""


class Service(Value):
    """``stores``: their URLs. ``auth``: how entries are signed; None: by the shared secret if there is more than one
    store. ``keys``: the keyring's file, if not the usual one. ``ttl``: the default of its locks. ``where``: what
    describes it, if anything does."""

    __slots__ = ("auth", "f", "keys", "stores", "ttl", "where")

    def __init__(
        self,
        stores: tuple[str, ...],
        f: int = 0,
        auth: str | None = None,
        keys: str | None = None,
        ttl: float | None = None,
        where: str = "",
    ) -> None:
        self.stores = stores
        self.f = f
        self.auth = auth
        self.keys = keys
        self.ttl = ttl
        self.where = where


def find_service(target: str | None = None, file: str | None = None) -> Service:
    """What a URL, ``@name`` or nothing at all stands for."""
    if target is not None and not target.startswith("@"):
        return from_url(target)
    if target is None and file is None and os.environ.get("TRINCO_URL"):
        target = os.environ["TRINCO_URL"]
        return find_service(target) if target.startswith("@") else from_url(target)
    name = "default" if target is None else target[1:]
    places = (FILE, os.path.join(config_folder(), FILE)) if file is None else (file,)
    files = {place: _services(place) for place in places if file is not None or os.path.lexists(place)}
    for path, services in files.items():
        if name in services:
            return from_table(services[name], f"{path}: [service.{name}]", os.path.dirname(os.path.abspath(path)))
    if target is None and file is None and not any(files.values()):
        return Service((default_url(),))
    raise _unknown(name, files)


def _unknown(name: str, files: "dict[str, dict[str, Any]]") -> ConfigError:
    """Where there are services, nobody falls back on a file of this host: it would exclude nobody on another."""
    if "://" in name:
        return ConfigError("@ stands before the name of a service; a URL is given without it")
    if not files:
        return ConfigError(f"@{name} is a service of {FILE}, and there is none here or in {config_folder()}")
    where = " and ".join(files)
    known = [f"@{each}" for services in files.values() for each in services]
    if not known:
        return ConfigError(f"{where}: there is no [service.{name}], nor any other service")
    advice = "; name one of them, or call one default" if name == "default" else ""
    meant = suggest(f"@{name}", known)
    return ConfigError(f"{where}: there is no [service.{name}]{meant} (there are {', '.join(known)}){advice}")


def from_url(url: str) -> Service:
    if not url.startswith("quorum:"):
        return Service((url,))
    f, stores, auth = 0, [], None
    for option in filter(None, url.partition("?")[2].split("&")):
        name, _, value = option.partition("=")
        if name == "store":
            stores.append(_store(value))
        elif name == "f":
            f = _whole(value, f"{QUORUM}: f")
        elif name == "auth":
            auth = _auth(value, QUORUM)
        else:
            named = f" '{name}'" if name.isalpha() else ""  # else it may be the rest of a password with an & in it
            raise ConfigError(f"{QUORUM}: there is no option{named} (there are f, store, auth); write & as %26")
    return Service(tuple(stores), f, auth)


def _store(value: str) -> str:
    """A URL as it is by itself, but for an ``&``; all else in it is the store's own to read. Or quoted as a whole, as
    programs do: then it has no colon."""
    if ":" in value or "%3" not in value:
        return value.replace("%26", "&")
    from urllib.parse import unquote

    return unquote(value)


def _services(path: str) -> "dict[str, Any]":
    """What a file says, by name. What would say nothing is refused: its writer meant something."""
    tables = _read(path)
    odd = next((name for name in tables if name != "service"), None)
    if odd is not None:
        raise ConfigError(f"{path}: '{odd}' says nothing here; a service is a table, like [service.default]")
    services = tables.get("service", {})
    if not isinstance(services, dict) or not all(isinstance(each, dict) for each in services.values()):
        raise ConfigError(f"{path}: 'service' should be tables, like [service.default]")
    return services


def _read(path: str) -> "dict[str, Any]":
    import tomllib

    try:
        with open(path, encoding="utf-8-sig") as file:  # some editors begin with a mark
            text = file.read(MOST_CHARACTERS + 1)
    except (OSError, ValueError) as error:  # it is no text, or no path
        said = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path or repr(path)} cannot be read: {said}") from None
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(f"{path} is longer than {MOST_CHARACTERS >> 20} MiB: no {FILE} is")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: it is nested too deeply") from None


def from_table(table: "dict[str, Any]", where: str, folder: str) -> Service:
    """A service as ``trinco.toml`` describes it."""
    odd = next((field for field in table if field not in FIELDS), None)
    if odd is not None:
        raise ConfigError(
            f"{where}: there is no setting '{odd}'{suggest(str(odd), FIELDS)} (there are {', '.join(FIELDS)})"
        )
    if ("url" in table) == ("stores" in table):
        raise ConfigError(f"{where} should have either a url or a list of stores")
    stores = [table["url"]] if "url" in table else table["stores"]
    if not isinstance(stores, list) or not stores or not all(isinstance(each, str) for each in stores):
        raise ConfigError(f"{where}: stores are URLs, in a list")
    if len(stores) > 1 and any(each.startswith("quorum:") for each in stores):
        raise ConfigError(f"{where}: a quorum: URL names all its stores by itself; list them without it")
    quorum = from_url(stores[0]) if stores[0].startswith("quorum:") else Service(tuple(stores))
    f = table.get("f", quorum.f)
    if type(f) is not int:
        raise ConfigError(f"{where}: f is a whole number")
    keys = table.get("keys")
    if keys is not None and (not isinstance(keys, str) or "\0" in keys):
        raise ConfigError(f"{where}: keys is the path of a file")
    return Service(
        tuple(_placed(store, folder) for store in quorum.stores),
        f,
        _auth(table["auth"], where) if "auth" in table else quorum.auth,
        None if keys is None else os.path.join(folder, os.path.expanduser(keys)),
        _ttl(table.get("ttl"), where),
        where,
    )


def _placed(url: str, folder: str) -> str:
    """A relative file is relative to the file that names it."""
    prefix = "sqlite:///"
    if url.startswith(prefix) and not url.startswith(prefix + "/"):
        return prefix + os.path.join(in_url(folder), url.removeprefix(prefix))
    return url


def _ttl(ttl: "Any", where: str) -> float | None:
    if ttl is None:
        return None
    if isinstance(ttl, str):
        try:
            return seconds(ttl)
        except UsageError as error:
            raise ConfigError(f"{where}: {error}") from None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < float("inf"):
        raise ConfigError(f'{where}: ttl is a duration, like "60s"')
    return float(ttl)


def _auth(auth: object, where: str) -> str:
    if auth not in AUTHS:
        raise ConfigError(f"{where}: auth is one of {', '.join(AUTHS)}, not '{auth}'")
    return str(auth)


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"{what} is a whole number, not '{text}'")
    if len(text) > MOST_DIGITS:
        raise ConfigError(f"{what} is too large a number: it has {len(text)} digits")
    return int(text)
