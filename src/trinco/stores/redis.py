"""One Redis server (or Valkey, or any that speaks RESP3 and runs Lua) as a store: one access is one round trip.

The item is one string under ``trinco:{name}``; ``redis.lua`` is the twin of ``Item.apply`` and runs inside the server,
by whose own clock it goes. Where ``apply`` names somebody to wake, the script publishes a hint to that process's
channel; the waiter asks again and claims by itself. One connection carries accesses, answers and hints.

The vendor's client makes the connection (DNS, TLS, unix sockets). From then on it is ours, so that no server can make
us wait or fill our memory: see ``resp``. A server that may have forgotten stays out: see ``redis_epoch``.
"""

import time
from collections import deque
from contextlib import suppress
from urllib.parse import parse_qsl, urlencode, urlsplit

from trinco.core.errors import ConfigError, StoreUnavailable
from trinco.core.value import Value
from trinco.leases.accesses import Access, Apply, Read
from trinco.leases.terms import T_MAX
from trinco.stores.redis_epoch import EPOCH, NEVER_HELD, Recovery, read_epoch, recovery, write_epoch
from trinco.stores.redis_words import HANDED, SCRIPT, SCRIPT_NAME, answer, arguments, complaint, handed, item, micros
from trinco.stores.resp import REPLY_LIMIT, Push, ReplyError, Wire
from trinco.stores.store import Failed, Hint, Link, StaysOut, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from trinco.stores.resp import Command
    from trinco.stores.store import Replied, Said

    Decode: TypeAlias = Callable[[Any], tuple[Replied, int] | None]

DEFAULT_PORT = 6379
MOST_AWAITED = 4096
ITEM_LIMIT = 8 * REPLY_LIMIT
"""Of the reply to a read: 1024 waiters with entries of 4 KiB each."""
NAMES_TIMEOUT_S = 30.0
UPTIME_DIGITS = 12


# What a URL means


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

    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
    except ValueError:  # whose words may quote the password
        reason = "its port must be a number, and in a password write the characters /?#@: as %2F %3F %23 %40 %3A"
        raise ConfigError(
            f"a Redis URL is redis://user:password@host:port/0; this one cannot be read: {reason}"
        ) from None
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise ConfigError(f"a Redis URL begins with redis://, rediss:// or unix://, not with {parts.scheme}://")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    t_max, fresh = seconds(options.pop("t_max", str(T_MAX))), options.pop("fresh", "0")
    if t_max <= 0 or fresh not in ("0", "1"):
        raise ConfigError("in a Redis URL t_max is a duration above zero (t_max=60s), and fresh is 0 or 1")
    vendor = "?".join(filter(None, (url.partition("?")[0], urlencode(options))))
    user = f"{parts.username}@" if parts.username else ""
    if parts.scheme == "unix":
        return Place(vendor, f"unix://{user}{parts.path}", parts.path, t_max, fresh == "1")
    host = parts.hostname or "localhost"
    domain = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Place(vendor, f"{parts.scheme}://{user}{domain}{parts.path}", domain, t_max, fresh == "1")


# The store


class RedisStore(Store):
    """``trinco.connect("redis://host:6379/0")``; options: ``t_max=60s``, ``fresh=1`` (it has never held a lock)."""

    __slots__ = ("_place",)

    def __init__(self, url: str) -> None:
        self._place = place = parse(url)
        super().__init__(place.shown, "handing-over", place.domain, local=False, t_max=place.t_max)

    def connect(self, address: str, timeout: float = 5.0) -> "RedisLink":
        deadline = time.monotonic() + timeout
        wire = self.dial(deadline)
        try:
            run_id, epoch, out = self._standing(wire, deadline)
        except BaseException:
            wire.close()
            raise
        known, t_max = read_epoch(epoch)
        is_known = known == run_id and t_max >= self.t_max
        stayed_out = NEVER_HELD if epoch is None and self._place.fresh else self.t_max
        return RedisLink(self, wire, address, None if is_known else write_epoch(run_id, stayed_out), out)

    def dial(self, deadline: float) -> Wire:
        """A connection that is logged in, and nothing else."""
        vendor = self._vendor_connection(max(deadline - time.monotonic(), 0.001))
        wire = Wire(self.url, self._connected(vendor))
        login: Command = ("AUTH", vendor.username or "default", vendor.password) if vendor.password else ()
        try:
            self._checked(wire.exchange([("HELLO", 3, *login, "SETNAME", "trinco"), ("SELECT", vendor.db)], deadline))
        except BaseException:
            wire.close()
            raise
        return wire

    def _vendor_connection(self, timeout: float) -> "Any":
        try:
            from redis.connection import Connection, parse_url
        except ImportError as missing:
            raise ConfigError("redis:// needs the packages redis and hiredis: pip install 'trinco[redis]'") from missing
        try:
            options: Any = parse_url(self._place.vendor)  # type: ignore[no-untyped-call]
            options |= {"socket_connect_timeout": timeout, "socket_timeout": timeout}
            return options.pop("connection_class", Connection)(**options)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{self.url}: an option of this URL is wrong: {error}") from None

    def _connected(self, vendor: "Any") -> "socket.socket":
        from redis import RedisError

        try:
            connected: socket.socket = vendor._connect()
        except (OSError, RedisError) as error:
            reason = f"cannot connect: {error}; is the server running, and is the address right?"
            raise StoreUnavailable(f"{self.url}: {reason}") from error
        return connected

    def _checked(self, replies: "list[Any]") -> "list[Any]":
        for each in replies:
            if isinstance(each, ReplyError):
                raise StoreUnavailable(f"{self.url}: {complaint(each)}")
        return replies

    def _standing(self, wire: Wire, deadline: float) -> "tuple[bytes, bytes | None, Recovery | None]":
        """The run id, the one that was left there, and how long the server must stay out."""
        questions: list[Command] = [("INFO",), ("GET", EPOCH), ("CONFIG", "GET", "append*"), ("SCRIPT", "LOAD", SCRIPT)]
        info, epoch, configuration, _ = wire.exchange(questions, deadline)
        self._checked([info, epoch])
        facts = _facts(info)
        run_id, uptime = facts.get(b"run_id"), facts.get(b"uptime_in_seconds", b"")
        if not run_id or not uptime.isdigit() or len(uptime) > UPTIME_DIGITS:
            raise wire.broken("its INFO does not tell a run id and an uptime; is it a Redis server?")
        if facts.get(b"maxmemory_policy", b"").startswith(b"allkeys") and facts.get(b"maxmemory") != b"0":
            reason = "it throws any key away when its memory is full (maxmemory-policy allkeys-...), locks too; "
            raise wire.broken(reason + "set maxmemory-policy to noeviction or to one of volatile-...")
        out = recovery(self.t_max, self._place.fresh, epoch, run_id, int(uptime), time.monotonic())
        return run_id, epoch, None if _forgets_nothing(configuration) else out


def _facts(info: "Any") -> dict[bytes, bytes]:
    lines = info.split(b"\r\n") if isinstance(info, bytes) else ()
    return {name: value for name, colon, value in (each.partition(b":") for each in lines) if colon}


def _forgets_nothing(configuration: "Any") -> bool:
    """Whether every write is on disk before it is answered. A server may keep its configuration to itself."""
    if not isinstance(configuration, list):
        return False
    settings = list(zip(configuration[::2], configuration[1::2], strict=False))
    return (b"appendonly", b"yes") in settings and (b"appendfsync", b"always") in settings


def _complaint(reply: "Any") -> str:
    return complaint(reply) if isinstance(reply, ReplyError) else "its answer makes no sense"


# The link


class RedisLink(Link):
    """Call ``expect_hints`` before the request that waits: a waiter whose process nobody hears is dropped by the next
    release (it is back with its ticket at its next poll). ``store_time``: what the server's clock said in the latest
    answer, in microseconds."""

    __slots__ = (
        "_channel",
        "_epoch",
        "_held_back",
        "_out",
        "_owners",
        "_sent",
        "_store",
        "_subscribed",
        "_t_max",
        "_wire",
        "store_time",
    )

    def __init__(
        self, store: RedisStore, wire: Wire, address: str, epoch: "bytes | None", out: Recovery | None
    ) -> None:
        """``epoch``: to be written down as soon as the server may grant; None if it is known already."""
        self._store = store
        self._t_max = micros(store.t_max)
        self._wire = wire
        self._channel = f"trinco:wake:{address}"
        self._epoch = epoch
        self._out = out
        self.store_time = 0
        self._owners: set[str] = set()
        self._subscribed = False
        self._sent: deque[tuple[Command, Decode | None]] = deque()
        """In the order in which the server answers. What makes an answer of the reply is None where nobody waits for
        one."""
        self._held_back: deque[Replied | None] = deque()
        """Answers in the order of their accesses, behind one that had to be sent again: None until it is answered."""

    def send(self, resource: str, access: Access) -> "Replied | None":
        if self._epoch is not None:
            refusal = self._settle_epoch(self._epoch)
            if refusal is not None:
                return refusal
        words: Command
        if isinstance(access, Apply):
            decode: Decode = answer
            try:
                words = arguments(access.operation, self._t_max)
            except ValueError as error:
                return Failed(f"{self._store.url}: nothing was done: {error}")
        elif isinstance(access, Read):
            decode, words = item, ("read", "", 0)
            self._wire.reader.limit = ITEM_LIMIT
        else:
            return Failed(f"{self._store.url}: a Redis server is not asked to {type(access).__name__}")
        self._write(("EVALSHA", SCRIPT_NAME, 1, f"trinco:{{{resource}}}", *words), decode)
        return None

    def _settle_epoch(self, epoch: bytes) -> StaysOut | None:
        """Stay out while the server may have forgotten; afterwards let everybody know that it has not."""
        now = time.monotonic()
        if self._out is not None and now < self._out.until:
            return StaysOut(f"{self._store.url}: {self._out.in_words(now)}", self._out.until - now)
        self._write(("SET", EPOCH, epoch))
        self._epoch = None
        return None

    def _write(self, command: "Command", decode: "Decode | None" = None) -> None:
        if len(self._sent) >= MOST_AWAITED:
            raise self._wire.broken(f"{MOST_AWAITED} accesses are without an answer; it hangs, or the network does")
        self._sent.append((command, decode))
        self._wire.write(command)

    def fileno(self) -> int:
        return self._wire.fileno()

    def receive(self) -> "list[Replied | Said]":
        arrived: list[Replied | Said] = []
        for reply in self._wire.read():
            if type(reply) is Push:
                self._heard(reply, arrived)
            else:
                self._answered(reply, arrived)
        return arrived

    def _answered(self, reply: "Any", arrived: "list[Replied | Said]") -> None:
        if not self._sent:
            raise self._wire.broken("it answers what nobody asked; is it a Redis server?")
        command, decode = self._sent.popleft()
        if decode is None:
            return
        decoded = decode(reply)
        if decoded is not None:
            said: Replied
            said, self.store_time = decoded
        elif isinstance(reply, ReplyError) and reply.code == "NOSCRIPT":
            self._held_back.append(None)
            self._write(("EVAL", SCRIPT, *command[2:]), decode)
            return
        else:
            said = Failed(f"{self._store.url}: {_complaint(reply)}")
        if decode is item and not any(other is item for _, other in self._sent):
            self._wire.reader.limit = REPLY_LIMIT
        if self._held_back:
            self._in_order(command, said, arrived)
        else:
            arrived.append(said)

    def _in_order(self, command: "Command", said: "Replied", arrived: "list[Replied | Said]") -> None:
        if command[0] == "EVAL":
            self._held_back[self._held_back.index(None)] = said
        else:
            self._held_back.append(said)
        while self._held_back and (first := self._held_back[0]) is not None:
            self._held_back.popleft()
            arrived.append(first)

    def _heard(self, push: "Push", arrived: "list[Replied | Said]") -> None:
        match push:
            case [b"message", _, bytes(payload)]:
                told = handed(payload) if payload[:1] == HANDED else Hint(payload.decode(errors="replace"))
                if told is not None and told.owner in self._owners:
                    arrived.append(told)
            case [b"subscribe", *_] if self._sent and self._sent[0][1] is None:
                self._sent.popleft()

    def expect_hints(self, owner: str) -> None:
        """The first time it subscribes, and then stays subscribed: one channel serves all owners of the process."""
        self._owners.add(owner)
        if not self._subscribed:
            self._write(("SUBSCRIBE", self._channel))
            self._subscribed = True

    def ignore_hints(self, owner: str) -> None:
        self._owners.discard(owner)

    def names(self, prefix: str = "") -> "Iterator[str]":
        """On a connection of its own: the answers and hints of this one are somebody else's."""
        deadline = time.monotonic() + NAMES_TIMEOUT_S
        wire = self._store.dial(deadline)
        try:
            found = self._scan(wire, prefix, deadline)
        finally:
            wire.close()
        return iter(sorted(found))

    def _scan(self, wire: Wire, prefix: str, deadline: float) -> set[str]:
        begin = f"trinco:{{{prefix}"
        pattern = "".join(f"\\{each}" if each in "*?[]\\^" else each for each in begin) + "*}"
        found: set[str] = set()
        cursor: Any = b"0"
        while True:
            (reply,) = wire.exchange([("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)], deadline)
            match reply:
                case ReplyError():
                    raise wire.broken(complaint(reply))
                case [bytes(cursor), list(keys)] if all(isinstance(key, bytes) for key in keys):
                    found.update(key[len("trinco:{") : -1].decode(errors="replace") for key in keys)
                case _:
                    raise wire.broken("its answer to SCAN makes no sense; is it a Redis server?")
            if cursor == b"0":
                return found

    def close(self) -> None:
        with suppress(OSError):
            self._wire.close()
