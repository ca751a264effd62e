"""Which stores a service stands on: a URL, a named service of ``trinco.toml``, ``TRINCO_URL``, or the default.

What counts, first to last: the URL or ``@service`` that was given; ``TRINCO_URL``; ``[service.default]`` of the
``trinco.toml`` in this folder, or of the one in the user's config folder; an SQLite file in the user's state folder.
"""

import os

from trinco.core.duration import seconds
from trinco.core.errors import ConfigError, UsageError
from trinco.core.value import Value
from trinco.locks.folders import config_folder, default_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "trinco.toml"
AUTHS = ("none", "secret", "ed25519")
FIELDS = ("auth", "f", "keys", "stores", "ttl", "url")


class Service(Value):
    """``stores``: their URLs. ``auth``: how entries are signed; None: by the shared secret if there is more than one
    store. ``keys``: the keyring's file, if not the usual one. ``ttl``: the default of its locks."""

    __slots__ = ("auth", "f", "keys", "stores", "ttl")

    def __init__(
        self,
        stores: tuple[str, ...],
        f: int = 0,
        auth: str | None = None,
        keys: str | None = None,
        ttl: float | None = None,
    ) -> None:
        self.stores = stores
        self.f = f
        self.auth = auth
        self.keys = keys
        self.ttl = ttl


def find_service(target: str | None = None, file: str | None = None) -> Service:
    """What a URL, ``@name`` or nothing at all stands for."""
    if target is not None and not target.startswith("@"):
        return from_url(target)
    if target is None and file is None and os.environ.get("TRINCO_URL"):
        target = os.environ["TRINCO_URL"]
        return find_service(target) if target.startswith("@") else from_url(target)
    path = file if file is not None else _existing()
    if path is not None:
        name = "default" if target is None else target[1:]
        return _from_file(path, name, required=target is not None or file is not None)
    if target is not None:
        raise ConfigError(f"{target} is a service of {FILE}, and there is none here or in {config_folder()}")
    return Service((default_url(),))


def from_url(url: str) -> Service:
    if not url.startswith("quorum:"):
        return Service((url,))
    from urllib.parse import parse_qsl

    f, stores, auth = 0, [], None
    for name, value in parse_qsl(url.partition("?")[2], keep_blank_values=True):
        if name == "store":
            stores.append(value)
        elif name == "f":
            f = _whole(value, f"'{url}': f")
        elif name == "auth":
            auth = _auth(value, url)
        else:
            raise ConfigError(f"'{url}': there is no option '{name}' (there are f, store, auth)")
    return Service(tuple(stores), f, auth)


def _existing() -> str | None:
    places = (FILE, os.path.join(config_folder(), FILE))
    return next((place for place in places if os.path.exists(place)), None)


def _from_file(path: str, name: str, required: bool) -> Service:
    services = _read(path).get("service", {})
    if not isinstance(services, dict) or not all(isinstance(each, dict) for each in services.values()):
        raise ConfigError(f"{path}: 'service' should be tables, like [service.default]")
    if name not in services:
        if not required:
            return Service((default_url(),))
        known = ", ".join(f"@{each}" for each in services) or "none"
        raise ConfigError(f"{path} has no [service.{name}]; its services: {known}")
    return from_table(services[name], f"{path}: [service.{name}]", os.path.dirname(os.path.abspath(path)))


def _read(path: str) -> "dict[str, Any]":
    import tomllib

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def from_table(table: "dict[str, Any]", where: str, folder: str) -> Service:
    """A service as ``trinco.toml`` describes it."""
    odd = next((field for field in table if field not in FIELDS), None)
    if odd is not None:
        raise ConfigError(f"{where}: there is no setting '{odd}' (there are {', '.join(FIELDS)})")
    if ("url" in table) == ("stores" in table):
        raise ConfigError(f"{where} should have either a url or a list of stores")
    stores = [table["url"]] if "url" in table else table["stores"]
    if not isinstance(stores, list) or not stores or not all(isinstance(each, str) for each in stores):
        raise ConfigError(f"{where}: stores are URLs, in a list")
    quorum = from_url(stores[0]) if stores[0].startswith("quorum:") else Service(tuple(stores))
    f = table.get("f", quorum.f)
    if type(f) is not int:
        raise ConfigError(f"{where}: f is a whole number")
    keys = table.get("keys")
    return Service(
        tuple(_placed(store, folder) for store in quorum.stores),
        f,
        _auth(table["auth"], where) if "auth" in table else quorum.auth,
        None if keys is None else os.path.join(folder, os.path.expanduser(str(keys))),
        _ttl(table.get("ttl"), where),
    )


def _placed(url: str, folder: str) -> str:
    """A relative file is relative to the file that names it."""
    prefix = "sqlite:///"
    if url.startswith(prefix) and not url.startswith(prefix + "/"):
        return prefix + os.path.join(folder, url.removeprefix(prefix))
    return url


def _ttl(ttl: "Any", where: str) -> float | None:
    if ttl is None:
        return None
    if isinstance(ttl, str):
        try:
            return seconds(ttl)
        except UsageError as error:
            raise ConfigError(f"{where}: {error}") from None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        raise ConfigError(f'{where}: ttl is a duration, like "60s"')
    return float(ttl)


def _auth(auth: object, where: str) -> str:
    if auth not in AUTHS:
        raise ConfigError(f"{where}: auth is one of {', '.join(AUTHS)}, not '{auth}'")
    return str(auth)


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"{what} is a whole number, not '{text}'")
    return int(text)
