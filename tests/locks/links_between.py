"""A wire between a lock service and its server that a test can cut, and that can go deaf without anybody being told."""

import socket
from contextlib import suppress
from threading import Thread
from types import TracebackType


class Between:
    """Passes on what either side says. ``port``: where to connect to. ``accepted``: how many have."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._deaf: set[socket.socket] = set()
        self._mute: set[socket.socket] = set()
        self.port: int = self._listener.getsockname()[1]
        self.accepted = 0
        self.turned_away = 0
        """How many of the next connections are."""
        Thread(target=self._accept, daemon=True).start()

    def go_deaf(self) -> None:
        """From now on the open connections bring no answers; new ones do."""
        self._deaf.update(server for _, server in self._pairs)

    def go_mute(self) -> None:
        """From now on the open connections bring nothing to the server; new ones do."""
        self._mute.update(client for client, _ in self._pairs)

    def cut(self) -> None:
        for pair in self._pairs:
            for end in pair:
                _shut(end)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.turned_away:
                    self.turned_away -= 1
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._server))
                self.accepted += 1
                self._pairs.append((client, server))
                Thread(target=self._pass_on, args=(client, server, self._mute), daemon=True).start()
                Thread(target=self._pass_on, args=(server, client, self._deaf), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, swallowed: set[socket.socket]) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if source not in swallowed:
                    target.sendall(data)
        _shut(source)
        _shut(target)

    def __enter__(self) -> "Between":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()
        for pair in self._pairs:
            for end in pair:
                end.close()


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
