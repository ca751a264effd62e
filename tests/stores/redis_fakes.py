"""What stands where a Redis server should: one that misbehaves as it is told, and a TLS front for a real one."""

import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from trinco.stores.resp import CHUNK, Reader

INFO = b"run_id:fake\r\nuptime_in_seconds:100000\r\nmaxmemory:0\r\n"
HONEST = {
    b"HELLO": b"%0\r\n",
    b"SELECT": b"+OK\r\n",
    b"INFO": b"$%d\r\n%s\r\n" % (len(INFO), INFO),
    b"TIME": b"*2\r\n$10\r\n1800000000\r\n$1\r\n0\r\n",
    b"GET": b"$-1\r\n",
    b"SCRIPT": b"+OK\r\n",
    b"SET": b"+OK\r\n",
}


class Listener:
    """Serves every connection in a thread of its own until it is left."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def serve(self, connection: socket.socket) -> None:
        raise NotImplementedError

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._connections.append(connection)
                self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.serve(connection)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._threads[0].join()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads[1:]:
            thread.join()


class FakeServer(Listener):
    """Says ``replies[command]`` where there is one, else what an honest server would; and keeps the connection."""

    def __init__(self, replies: dict[bytes, bytes]) -> None:
        super().__init__()
        self._replies = {**HONEST, **replies}

    def serve(self, connection: socket.socket) -> None:
        reader = Reader()
        while data := connection.recv(CHUNK):
            for command in reader.feed(data):
                connection.sendall(self._replies[command[0]])


class Speaker(Listener):
    """Hears whatever it is sent, and says the same to everything."""

    def __init__(self, words: bytes) -> None:
        super().__init__()
        self._words = words

    def serve(self, connection: socket.socket) -> None:
        while connection.recv(CHUNK):
            connection.sendall(self._words)


class TlsFront(Listener):
    """Takes TLS off and passes everything on to a port of this host."""

    def __init__(self, port: int, folder: Path) -> None:
        super().__init__()
        self._behind = port
        self.certificate = folder / "certificate.pem"
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, _make_certificate(folder))

    @property
    def url(self) -> str:
        return f"rediss://127.0.0.1:{self.port}/0"

    def serve(self, connection: socket.socket) -> None:
        with (
            self._context.wrap_socket(connection, server_side=True) as front,
            socket.create_connection(("127.0.0.1", self._behind)) as behind,
        ):
            back = threading.Thread(target=_pass_on, args=(behind.recv, front.sendall))
            back.start()
            _pass_on(front.recv, behind.sendall)
            with contextlib.suppress(OSError):
                behind.shutdown(socket.SHUT_RDWR)
            back.join()


def _pass_on(receive: Callable[[int], bytes], send: Callable[[bytes], Any]) -> None:
    with contextlib.suppress(OSError):
        while data := receive(CHUNK):
            send(data)


def _make_certificate(folder: Path) -> Path:
    key = folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(folder / "certificate.pem"), "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, timeout=20)
    return key
