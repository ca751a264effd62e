"""RESP3, the language of Redis, read from a server that may say anything, as slowly as it likes.

The vendor's parser believes what it is told: the twelve bytes ``>400000000`` make it take 3 GB and five seconds before
the next byte has come. A store of a quorum may be malicious, so this reader takes memory only for what has arrived,
never starts a reply over, and gives up on one beyond its limit. It has no socket; :class:`Wire` has one.
"""

import ssl
import time
from select import POLLIN, POLLOUT, poll

from trinco.core.errors import ConfigError, StoreUnavailable
from trinco.core.value import Value

try:
    from hiredis import pack_command
except ImportError as missing:
    raise ConfigError("redis:// needs the packages redis and hiredis: pip install 'trinco[redis]'") from missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Word: TypeAlias = str | bytes | int
    Command: TypeAlias = tuple[Word, ...]

REPLY_LIMIT = 1 << 20
LINE_LIMIT = 1 << 16
DEPTH_LIMIT = 8
CHUNK = 1 << 16
UNSENT_LIMIT = 1 << 20
NOT_YET = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ProtocolBroken(Exception):
    """What arrived is not RESP, or more than any honest server says."""


class ReplyError(Value):
    """The server's ``-CODE and some words``."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def code(self) -> str:
        return self.text.partition(" ")[0]


class Push(list):  # type: ignore[type-arg]
    """What the server says unasked."""


def _error(line: bytes) -> ReplyError:
    return ReplyError(line.decode(errors="replace"))


def _boolean(line: bytes) -> bool:
    return {b"t": True, b"f": False}[line]


LINES: "dict[int, Any]" = {
    ord("+"): bytes,
    ord("-"): _error,
    ord(":"): int,
    ord("_"): lambda line: None,
    ord("#"): _boolean,
    ord(","): float,
    ord("("): int,
}
BLOBS: "dict[int, Any]" = {ord("$"): bytes, ord("="): lambda blob: blob[4:], ord("!"): _error}
AGGREGATES: "dict[int, tuple[Any, int]]" = {
    ord("*"): (list, 1),
    ord("~"): (list, 1),
    ord(">"): (Push, 1),
    ord("%"): (list, 2),
}


class Reader:
    """``feed`` it what arrives; it gives what is complete. Maps come as flat lists."""

    __slots__ = ("_buffer", "_consumed", "_open", "limit")

    def __init__(self, limit: int = REPLY_LIMIT) -> None:
        self.limit = limit
        self._buffer: bytes | bytearray = b""
        self._consumed = 0
        """Bytes of the reply under way that have left the buffer."""
        self._open: list[tuple[Any, int]] = []
        """The aggregates that are not complete, each with the number of its elements."""

    def feed(self, data: bytes) -> "list[Any]":
        """Raises ``ProtocolBroken``; then nothing more can be read."""
        try:
            if data.startswith(b"$") and not self._buffer and not self._open:
                end = data.find(b"\r\n")
                if end > 0 and len(data) == end + 4 + int(data[1:end]) and data.endswith(b"\r\n"):
                    return [data[end + 2 : -2]]  # one whole string, as nearly every answer is
            return self._parse(data)
        except (ValueError, LookupError):
            raise ProtocolBroken("what it says is not the language of Redis") from None

    def _parse(self, data: bytes) -> "list[Any]":
        complete: list[Any] = []
        buffer = self._with_rest(data)
        position = 0
        while position < len(buffer):
            after = self._token(buffer, position, complete)
            if after == position:
                break
            self._consumed = self._consumed + after - position if self._open else 0
            position = after
        self._keep(buffer, position)
        return complete

    def _with_rest(self, data: bytes) -> bytes | bytearray:
        if not self._buffer:
            return data
        assert isinstance(self._buffer, bytearray)
        self._buffer += data
        return self._buffer

    def _keep(self, buffer: bytes | bytearray, position: int) -> None:
        if position == len(buffer):
            self._buffer = b""
        elif isinstance(buffer, bytearray):
            del buffer[:position]
        else:
            self._buffer = bytearray(buffer[position:])
        if self._consumed + len(self._buffer) > self.limit:
            raise ProtocolBroken(f"one of its replies is longer than {self.limit >> 20} MiB")

    def _token(self, buffer: bytes | bytearray, position: int, complete: "list[Any]") -> int:
        """Take one token; where it ends, or ``position`` if not all of it has arrived."""
        end = buffer.find(b"\r\n", position)
        if end < 0 or end - position > LINE_LIMIT:
            if len(buffer) - position > LINE_LIMIT:
                raise ProtocolBroken("one of its lines does not end")
            return position
        kind, line, after = buffer[position], bytes(buffer[position + 1 : end]), end + 2
        if kind in BLOBS:
            return self._blob(kind, int(line), buffer, position, after, complete)
        if kind in AGGREGATES:
            self._begin(*AGGREGATES[kind], int(line), complete)
        else:
            self._put(LINES[kind](line), complete)
        return after

    def _blob(
        self, kind: int, size: int, buffer: bytes | bytearray, position: int, start: int, complete: "list[Any]"
    ) -> int:
        if size < 0:
            self._put(None, complete)
            return start
        if size > self.limit:
            raise ProtocolBroken(f"one of its replies is longer than {self.limit >> 20} MiB")
        end = start + size
        if len(buffer) < end + 2:
            return position
        if buffer[end : end + 2] != b"\r\n":
            raise ProtocolBroken("one of its strings does not end where it should")
        self._put(BLOBS[kind](bytes(buffer[start:end])), complete)
        return end + 2

    def _begin(self, make: "Any", factor: int, size: int, complete: "list[Any]") -> None:
        if size <= 0:
            self._put(make() if size == 0 else None, complete)
            return
        if len(self._open) == DEPTH_LIMIT:
            raise ProtocolBroken("one of its replies is nested too deeply")
        self._open.append((make(), size * factor))

    def _put(self, value: "Any", complete: "list[Any]") -> None:
        """Into the aggregate that is open, which may complete it and those around it."""
        while self._open:
            aggregate, size = self._open[-1]
            aggregate.append(value)
            if len(aggregate) < size:
                return
            self._open.pop()
            value = aggregate
        complete.append(value)


def pack(command: "Command") -> bytes:
    """A command as it is sent. The vendor's code crashes if the handler of a signal raises while it makes text of a
    number, so it gets none."""
    words = tuple([str(word) if type(word) is int else word for word in command])
    data: bytes = pack_command(words)  # type: ignore[arg-type]  # its stub allows one word
    return data


def pack_word(word: bytes) -> bytes:
    """A word of a command as it is sent."""
    return b"$%d\r\n%b\r\n" % (len(word), word)


class Wire:
    """A connected socket that never blocks us. ``name`` is the store's, for the errors; after one it is of no use."""

    __slots__ = ("_pending", "_socket", "_unsent", "name", "reader")

    def __init__(self, name: str, connected: "socket.socket") -> None:
        self.name = name
        self.reader = Reader()
        self._socket = connected
        self._unsent = bytearray()
        self._pending: Any = getattr(connected, "pending", None)
        """Of TLS: how much has been read and not been asked for, which no poll will tell."""
        connected.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def broken(self, reason: str) -> StoreUnavailable:
        return StoreUnavailable(f"{self.name}: {reason}")

    def write(self, data: bytes) -> None:
        """What the kernel does not take waits for the next call."""
        if self._unsent:
            self._unsent += data
            self.flush()
            return
        try:
            sent = self._socket.send(data)
        except OSError as error:
            sent = self._nothing_sent(error)
        if sent < len(data):
            self._unsent += data[sent:]

    def flush(self) -> None:
        if not self._unsent:
            return
        try:
            sent = self._socket.send(self._unsent)
        except OSError as error:
            sent = self._nothing_sent(error)
        del self._unsent[:sent]
        if len(self._unsent) > UNSENT_LIMIT:
            raise self.broken("it does not take what it is sent; it hangs, or the network does")

    def _nothing_sent(self, error: OSError) -> int:
        if isinstance(error, NOT_YET):
            return 0
        raise self.broken(f"the connection broke: {error}") from error

    def read(self) -> "list[Any]":
        """The replies and pushes that have arrived."""
        if self._unsent:
            self.flush()
        replies = self._receive()
        while self._pending is not None and self._pending():
            replies += self._receive()
        return replies

    def _receive(self) -> "list[Any]":
        try:
            data = self._socket.recv(CHUNK)
        except NOT_YET:
            return []
        except OSError as error:
            raise self.broken(f"the connection broke: {error}") from error
        if not data:
            raise self.broken("the server closed the connection; it went down, restarted, or does not want us")
        try:
            return self.reader.feed(data)
        except ProtocolBroken as error:
            raise self.broken(f"{error}; is it a Redis server?") from error

    def exchange(self, commands: "Sequence[Command]", deadline: float) -> "list[Any]":
        """Send commands and wait for their replies. Only while nothing else is under way."""
        for command in commands:
            self.write(pack(command))
        replies: list[Any] = []
        while len(replies) < len(commands):
            self._wait(deadline)
            replies += (each for each in self.read() if not isinstance(each, Push))
        if len(replies) > len(commands):
            raise self.broken("it answers what nobody asked; is it a Redis server?")
        return replies

    def _wait(self, deadline: float) -> None:
        poller = poll()
        poller.register(self.fileno(), POLLIN | POLLOUT if self._unsent else POLLIN)
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not poller.poll(remaining * 1000):
            raise self.broken("it does not answer; it hangs, or it is no Redis server")
