"""What a Redis URL says: where the server is, what its own client is told, and what is meant for us."""

import re
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from trinco.core.errors import ConfigError, UsageError
from trinco.core.value import Value
from trinco.leases.terms import T_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from urllib.parse import SplitResult

DEFAULT_PORT = 6379
FORM = re.compile(r"(rediss?|unix)://([^:@/?#]*(:[^@/?#]*)?@)?[^@?#]*(\?[^@#]*)?")
"""A second ``@``, a late one, or a ``#`` may belong to a password, and then nobody knows which part is secret."""
OPTION = re.compile(
    "client_name|db|decode_responses|encoding|encoding_errors|health_check_interval|password|protocol|retry_on_timeout"
    "|socket_(connect_timeout|keepalive|read_size|timeout)|username|ssl_(exclude|include)_verify_flags"
    "|ssl_(ca_certs|ca_data|ca_path|cert_reqs|certfile|check_hostname|ciphers|keyfile|min_version|password)"
)
"""Of the vendor's, those that text can say. Not host, port and path: the place is what stands before the options."""


class Place(Value):
    """A URL, understood. ``vendor`` is what the vendor's client gets, with the password; ``shown`` is for people."""

    __slots__ = ("domain", "fresh", "shown", "t_max", "vendor")

    def __init__(self, vendor: str, shown: str, domain: str, t_max: float = T_MAX, fresh: bool = False) -> None:
        self.vendor = vendor
        self.shown = shown
        self.domain = domain
        self.t_max = t_max
        self.fresh = fresh


def parse(url: str) -> Place:
    """Our own options (``t_max``, ``fresh``) are taken out of the query; the rest is the vendor's."""
    from trinco.core.duration import seconds

    parts = _split(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    fresh = options.pop("fresh", "0")
    try:
        t_max = seconds(options.pop("t_max", str(T_MAX)))
    except UsageError:  # which quotes the URL
        t_max = 0.0
    if t_max <= 0 or fresh not in ("0", "1"):
        raise ConfigError("in a Redis URL t_max is a duration above zero (t_max=60s), and fresh is 0 or 1")
    vendor = "?".join(filter(None, (url.partition("?")[0], urlencode(options))))
    user = f"{parts.username}@" if parts.username else ""
    if parts.scheme == "unix":
        if parts.hostname or parts.path in ("", "/"):
            raise ConfigError("a unix:// URL names the path of a socket, with three slashes: unix:///run/redis.sock")
        return Place(vendor, f"unix://{user}{parts.path}", parts.path, t_max, fresh == "1")
    host, port = parts.hostname or "localhost", parts.port or DEFAULT_PORT
    domain = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    shown = f"{parts.scheme}://{user}{domain}{parts.path}"
    if not _is_host(unquote(host)):
        raise ConfigError(f"{shown}: no host is called '{host}'; a store is one server, and a name has no space in it")
    if not re.fullmatch("(/[0-9]{0,9})?", parts.path):
        raise ConfigError(f"{shown}: behind the / is the number of a database, as in {parts.scheme}://{domain}/0")
    return Place(vendor, shown, domain, t_max, fresh == "1")


def _is_host(name: str) -> bool:
    try:
        name.encode("idna")
    except UnicodeError:  # a part of it is empty, or too long
        return False
    return not re.search(r"[\s,]", name)


def _split(url: str) -> "SplitResult":
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise ConfigError("a Redis URL begins with redis://, rediss:// or unix://, as in redis://host:6379/0")
    try:
        parts = urlsplit(url)
        readable = url.isprintable() and FORM.fullmatch(url) and parts.port != 0
    except ValueError:  # whose words may quote the password
        readable = False
    if not readable:
        reason = "its port must be a number, and in a password write the characters /?#@: as %2F %3F %23 %40 %3A"
        raise ConfigError(f"a Redis URL is redis://user:password@host:port/0; this one cannot be read: {reason}")
    return parts


def refuse_unknown_options(place: Place, connection_class: "Any") -> None:
    from inspect import signature

    from trinco.core.nearest import nearest

    taken = {name for each in connection_class.__mro__ for name in signature(each.__init__).parameters}
    known = {"fresh", "t_max", *filter(OPTION.fullmatch, taken)}
    names = [name for name, _ in parse_qsl(urlsplit(place.vendor).query, keep_blank_values=True)]
    for before, name in zip(["", *names], names, strict=False):
        if name not in known and before.endswith("password"):
            raise ConfigError(f"{place.shown}: what follows {before}= is no option; in a password write & as %26")
        if name.startswith("ssl_") and place.vendor.startswith("redis://"):
            raise ConfigError(
                f"{place.shown}: there is no option {name!r} for this kind of URL; with TLS it is rediss://"
            )
        if name not in known:
            close = nearest(name, known)
            meant = f"; did you mean {close}?" if close else ""
            raise ConfigError(f"{place.shown}: there is no option {name!r} for this kind of URL{meant}")
