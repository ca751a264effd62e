"""One Redis server (or Valkey, or any that speaks RESP3 and runs Lua) as a store: one access is one round trip.

The item is one string under ``trinco:{name}``, with a sorted set and a hash beside it while somebody waits;
``redis.lua`` is the twin of ``Item.apply`` and runs inside the server, by whose own clock it goes. What is let go of is
handed over to the first in line, and the script publishes that to the channel of the waiter's process. One connection
carries accesses, answers and what is published.

The vendor's client makes the connection (DNS, TLS, unix sockets). From then on it is ours, so that no server can make
us wait or fill our memory: see ``resp``. A server that may have forgotten stays out: see ``redis_epoch``.
"""

import time
from collections import deque
from contextlib import suppress

from trinco.core.errors import ConfigError, Denial, StoreForbidden, StoreUnavailable
from trinco.leases.accesses import Access, Apply, Read
from trinco.stores.redis_epoch import (
    EPOCH,
    NEVER_HELD,
    SEEN,
    Recovery,
    Standing,
    life,
    read_epoch,
    recovery,
    write_epoch,
    write_seen,
)
from trinco.stores.redis_names import scan
from trinco.stores.redis_url import parse, refuse_unknown_options
from trinco.stores.redis_words import (
    ADVICE,
    HANDED,
    MICRO,
    SCRIPT,
    SENTINEL,
    Packed,
    answer,
    call,
    complaint,
    connect_advice,
    handed,
    is_denial,
    item,
    micros,
    with_life,
)
from trinco.stores.resp import REPLY_LIMIT, Push, ReplyError, Wire, pack, pack_word
from trinco.stores.store import Failed, Hint, Link, StaysOut, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from trinco.stores.resp import Command
    from trinco.stores.store import Replied, Said

    Decode: TypeAlias = Callable[[Any], tuple[Replied, int] | None]

MOST_AWAITED = 4096
ITEM_LIMIT = 8 * REPLY_LIMIT
"""Of the reply to a read: 1024 waiters with entries of 4 KiB each."""
NAMES_TIMEOUT_S = 30.0
UPTIME_DIGITS = 12
HANDSHAKE_SHARE = 0.8
"""Of the time to connect: a server without TLS says nothing to whoever begins with it, and then there is time left to
say so."""


# The store


class RedisStore(Store):
    """``trinco.connect("redis://host:6379/0")``; options: ``t_max=60s``, ``fresh=1`` (it has never held a lock)."""

    __slots__ = ("_place",)

    def __init__(self, url: str) -> None:
        self._place = place = parse(url)
        super().__init__(place.shown, "handing-over", place.domain, local=False, t_max=place.t_max)
        self._vendor_connection(1.0)  # whose options are refused here, and not when somebody waits for a lock

    def connect(self, address: str, timeout: float = 5.0) -> "RedisLink":
        deadline = time.monotonic() + timeout
        wire = self.dial(deadline)
        try:
            standing = self._standing(wire, deadline)
            out = recovery(self.t_max, self._place.fresh, standing, time.monotonic())
            if out is not None and standing.seen_for() is None:  # whoever may not write it counts by itself
                wire.exchange([("SET", SEEN, write_seen(standing))], deadline)
        except BaseException:
            wire.close()
            raise
        known, t_max = read_epoch(standing.epoch)
        is_known = standing.is_life(known) and t_max >= self.t_max
        stayed_out = NEVER_HELD if known is None and self._place.fresh else self.t_max
        epoch = None if is_known else write_epoch(standing.life, stayed_out)
        return RedisLink(self, wire, address, known if is_known and known else standing.life, epoch, out)

    def dial(self, deadline: float) -> Wire:
        """A connection that is logged in, and nothing else."""
        vendor = self._vendor_connection(max(deadline - time.monotonic(), 0.001))
        wire = Wire(self.url, self._connected(vendor))
        login: Command = ("AUTH", vendor.username or "default", vendor.password) if vendor.password else ()
        try:
            self._greet(wire, ("HELLO", 3, *login, "SETNAME", "trinco"), deadline)
            if vendor.db:
                self._checked(wire.exchange([("SELECT", vendor.db)], deadline))
        except BaseException:
            wire.close()
            raise
        return wire

    def _greet(self, wire: Wire, greeting: "Command", deadline: float) -> None:
        """By itself: a server that does not want us says why, and hangs up without looking at what comes next."""
        try:
            replies = wire.exchange([greeting], deadline)
        except StoreUnavailable as error:
            if not self.url.startswith("redis://") or time.monotonic() >= deadline:
                raise
            raise StoreUnavailable(f"{error}; if that port speaks TLS, write rediss://") from error
        self._checked(replies)

    def _vendor_connection(self, timeout: float) -> "Any":
        try:
            from ssl import TLSVersion

            from redis import RedisError
            from redis.connection import Connection, parse_url
        except ImportError as missing:
            raise ConfigError("redis:// needs the packages redis and hiredis: pip install 'trinco[redis]'") from missing
        try:
            bare, options = map(parse_url, (self._place.vendor.partition("?")[0], self._place.vendor))
            refuse_unknown_options(self._place, bare.get("connection_class", Connection))
            options |= {"socket_connect_timeout": timeout, "socket_timeout": timeout * HANDSHAKE_SHARE}
            TLSVersion(options.get("ssl_min_version", TLSVersion.MAXIMUM_SUPPORTED))  # the vendor looks too late
            return options.pop("connection_class", Connection)(**options)
        except ConfigError:
            raise
        except (ValueError, RedisError) as error:
            raise ConfigError(f"{self.url}: an option of this URL is wrong: {error}") from None
        except OSError as error:  # it looks its own version up, in a file
            raise self._not_connected(error) from error

    def _connected(self, vendor: "Any") -> "socket.socket":
        from redis import RedisError

        try:
            connected: socket.socket = vendor._connect()
        except (OSError, RedisError) as error:
            raise self._not_connected(error) from error
        return connected

    def _not_connected(self, error: Exception) -> StoreUnavailable:
        advice = connect_advice(error, tls=self.url.startswith("rediss://"))
        return StoreUnavailable(f"{self.url}: cannot connect: {error}; {advice}")

    def _checked(self, replies: "list[Any]") -> "list[Any]":
        for each in replies:
            if isinstance(each, ReplyError):
                kind = StoreForbidden if is_denial(each) else StoreUnavailable
                raise kind(f"{self.url}: {complaint(each)}")
        return replies

    def _standing(self, wire: Wire, deadline: float) -> Standing:
        questions: list[Command] = [("INFO",), ("TIME",), ("GET", EPOCH), ("GET", SEEN), ("SCRIPT", "LOAD", SCRIPT)]
        info, clock, epoch, seen, _ = wire.exchange(questions, deadline)
        facts = _facts(info)
        if facts.get(b"redis_mode") == b"sentinel":
            raise wire.broken(SENTINEL)
        self._checked([info, clock, epoch, seen])
        run_id, uptime = facts.get(b"run_id"), facts.get(b"uptime_in_seconds", b"")
        if not run_id or not uptime.isdigit() or len(uptime) > UPTIME_DIGITS:
            raise wire.broken("its INFO does not tell a run id and an uptime; is it a Redis server?")
        if facts.get(b"role") == b"slave":
            raise wire.broken(ADVICE["READONLY"])
        if facts.get(b"maxmemory_policy", b"").startswith(b"allkeys") and facts.get(b"maxmemory") != b"0":
            reason = "it throws any key away when its memory is full (maxmemory-policy allkeys-...), locks too; "
            raise wire.broken(reason + "set maxmemory-policy to noeviction or to one of volatile-...")
        match clock, epoch, seen:
            case [bytes(seconds), bytes(micros)], bytes() | None, bytes() | None if (seconds + micros).isdigit():
                this = life(run_id, facts.get(b"master_replid2", b""))
                return Standing(this, int(uptime), epoch, seen, int(seconds) + int(micros) / MICRO)
        raise wire.broken("its answers to TIME and GET make no sense; is it a Redis server?")


def _facts(info: "Any") -> dict[bytes, bytes]:
    lines = info.split(b"\r\n") if isinstance(info, bytes) else ()
    return {name: value for name, colon, value in (each.partition(b":") for each in lines) if colon}


def _reason(url: str, reply: "Any") -> str:
    if not isinstance(reply, ReplyError):
        return f"{url}: its answer makes no sense"
    words = f"{url}: {complaint(reply)}"
    return Denial(words) if is_denial(reply) else words


# The link

packed = Packed()


class RedisLink(Link):
    """Call ``expect_hints`` before the request that waits: a waiter whose process nobody hears is dropped by whoever
    releases or asks next (it is back with its ticket at its next poll). ``store_time``: what the server's clock said in
    the latest answer, in microseconds."""

    __slots__ = (
        "_channel",
        "_epoch",
        "_held_back",
        "_life",
        "_out",
        "_owners",
        "_packed_life",
        "_sent",
        "_store",
        "_subscribed",
        "_t_max",
        "_unsettled",
        "_wire",
        "store_time",
    )

    def __init__(
        self, store: RedisStore, wire: Wire, address: str, life: bytes, epoch: "bytes | None", out: Recovery | None
    ) -> None:
        """``life``: the server's. ``epoch``: what tells everybody of it, to be written down as soon as the server may
        grant; None if it is known already."""
        self._store = store
        self._t_max = micros(store.t_max)
        self._wire = wire
        self._channel = f"trinco:wake:{address}"
        self._life = life
        self._packed_life = pack_word(life)
        self._epoch = epoch
        self._unsettled: Failed | None = None
        """Why the epoch could not be written."""
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
        if isinstance(access, Apply):
            try:
                command, data = packed.call(resource, access.operation, self._t_max, self._packed_life)
            except ValueError as error:
                return Failed(f"{self._store.url}: nothing was done: {error}")
            self._send(command, data, answer)
        elif isinstance(access, Read):
            self._wire.reader.limit = ITEM_LIMIT
            self._write(call(resource, ("read", "", 0)), item)
        else:
            return Failed(f"{self._store.url}: a Redis server is not asked to {type(access).__name__}")
        return None

    def _settle_epoch(self, epoch: bytes) -> StaysOut | None:
        """Stay out while the server may have forgotten; afterwards let everybody know that it has not."""
        refusal = self._stays_out()
        if refusal is None:
            self._write(("SET", EPOCH, epoch))
            self._epoch = self._unsettled = None
        return refusal

    def _stays_out(self) -> StaysOut | None:
        now = time.monotonic()
        if self._out is None or now >= self._out.until:
            return None
        return StaysOut(f"{self._store.url}: {self._out.in_words(now)}", self._out.until - now)

    def _write(self, command: "Command", decode: "Decode | None" = None) -> None:
        self._send(command, pack(command), decode)

    def _send(self, command: "Command", data: bytes, decode: "Decode | None") -> None:
        if len(self._sent) >= MOST_AWAITED:
            raise self._wire.broken(f"{MOST_AWAITED} accesses are without an answer; it hangs, or the network does")
        self._sent.append((command, decode))
        self._wire.write(data)

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
        if isinstance(reply, ReplyError) and self._may_forget(reply):
            raise self._wire.broken(complaint(reply))  # look anew
        if decode is None:
            if isinstance(reply, ReplyError) and command[0] == "SET":
                self._epoch = command[2]  # type: ignore[assignment]  # nobody knows of it yet
                self._unsettled = Failed(_reason(self._store.url, reply))
            return
        decoded = decode(reply)
        if decoded is not None:
            said: Replied
            said, self.store_time = decoded
        elif isinstance(reply, ReplyError) and reply.code == "NOSCRIPT":
            self._held_back.append(None)
            self._write(("EVAL", SCRIPT, *with_life(command, self._life)[2:]), decode)
            return
        else:
            said = self._unsettled or Failed(_reason(self._store.url, reply))
        if decode is item and not any(other is item for _, other in self._sent):
            self._wire.reader.limit = REPLY_LIMIT
        if self._held_back:
            self._in_order(command, said, arrived)
        else:
            arrived.append(said)

    def _may_forget(self, error: ReplyError) -> bool:
        """Whether the server is a replica, or its life is another than ours. Where nobody knows of ours since we could
        not write it down, that says nothing."""
        return "READONLY" in error.text or ("FORGOTTEN" in error.text and self._unsettled is None)

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
        refusal = self._stays_out()
        if refusal is not None:
            raise StoreUnavailable(refusal.reason)
        deadline = time.monotonic() + NAMES_TIMEOUT_S
        wire = self._store.dial(deadline)
        try:
            return iter(sorted(scan(wire, prefix, deadline)))
        finally:
            wire.close()

    def close(self) -> None:
        with suppress(OSError):
            self._wire.close()
