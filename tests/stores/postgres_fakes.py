"""What stands where a PostgreSQL server should: one that says what it is told to, and a front that makes a real one
stall."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterable, Iterator

from tests.stores.redis_fakes import Listener
from trinco.stores.postgres import LAYOUT, _functions
from trinco.stores.resp import CHUNK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Row: TypeAlias = "list[bytes | None]"
    Said: TypeAlias = "list[Row] | Iterator[bytes]"

READY = b"Z\0\0\0\5I"
WITHOUT_TLS = "sslmode=disable&gssencmode=disable"
HONEST: "dict[bytes, Said]" = {
    b"pg_catalog.pg_proc": [[b"2", b"%d" % len(_functions())]],
    b"SELECT layout": [[b"%d" % LAYOUT]],
    b".entered(": [[b"0", b"0"]],
}


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", 4 + len(body)) + body


def cell(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value


def row(cells: "Iterable[bytes | None]") -> bytes:
    values = [cell(each) for each in cells]
    return message(b"D", struct.pack("!h", len(values)) + b"".join(values))


def description(columns: int) -> bytes:
    return message(b"T", struct.pack("!h", columns) + columns * (b"x\0" + struct.pack("!ihihih", 0, 0, 20, 8, -1, 1)))


def table(rows: "list[Row]") -> bytes:
    head = description(len(rows[0])) if rows else b""
    return head + b"".join(map(row, rows)) + message(b"C", b"SELECT 1\0")


SETTINGS = b"".join(
    message(b"S", each + b"\0")
    for each in (
        b"server_version\x0016.2",
        b"client_encoding\0UTF8",
        b"in_hot_standby\0off",
        b"default_transaction_read_only\0off",
    )
)
"""What libpq wants to know before it says that it is connected to a primary."""


class FakePostgres(Listener):
    """Answers what contains one of the words as it is told (with rows, or with bytes that it sends on and on), else as
    an honest server would. ``sent``: how many bytes it got rid of in this way."""

    def __init__(self, answers: "dict[bytes, Said]") -> None:
        super().__init__()
        self.answers = {**HONEST, **answers}
        self.sent = 0

    @property
    def url(self) -> str:
        return f"postgresql://ana@127.0.0.1:{self.port}/locks?{WITHOUT_TLS}"

    def serve(self, connection: socket.socket) -> None:
        connection.recv(CHUNK)
        connection.sendall(message(b"R", bytes(4)) + SETTINGS + READY)
        asked = b""
        for kind, body in _messages(connection):
            asked += body
            if kind in b"QS":
                self._answer(connection, asked)
                asked = b""

    def _answer(self, connection: socket.socket, asked: bytes) -> None:
        told = [] if b"PREPARE" in asked else [said for words, said in self.answers.items() if words in asked]
        if told and not isinstance(told[0], list):
            for piece in told[0]:
                connection.sendall(piece)
                self.sent += len(piece)
        else:
            connection.sendall(table(told[0] if told else []) + READY)


def _messages(connection: socket.socket) -> "Iterator[tuple[bytes, bytes]]":
    with connection.makefile("rb") as stream:
        while head := stream.read(5):
            yield head[:1], stream.read(struct.unpack("!i", head[1:])[0] - 4)


class Stalling(Listener):
    """Passes everything on to a real server; but who connects while it ``stalls`` hears nothing after the login."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._behind = port
        self.stalls = False

    @property
    def url(self) -> str:
        return f"postgresql://trinco@127.0.0.1:{self.port}/postgres?{WITHOUT_TLS}"

    def cut(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def serve(self, connection: socket.socket) -> None:
        stalls = self.stalls
        with socket.create_connection(("127.0.0.1", self._behind)) as behind:
            back = threading.Thread(target=_bring_back, args=(behind, connection, stalls))
            back.start()
            with contextlib.suppress(OSError):
                while data := connection.recv(CHUNK):
                    behind.sendall(data)
            behind.shutdown(socket.SHUT_RDWR)
            back.join()


def _bring_back(source: socket.socket, target: socket.socket, stalls: bool) -> None:
    is_in = False
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            if not (stalls and is_in):
                target.sendall(data)
            is_in = is_in or data.endswith(READY)
