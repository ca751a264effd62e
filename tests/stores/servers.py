"""Real Redis servers for tests, benches and the demo: each a process of its own, on a free port, with an empty folder.

    with RedisServer() as server:          # started, and answering
        trinco.connect(server.url)

A server that cannot be found is a failure, not a skip: a suite that is green because it did not run says nothing.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest

from tests.stores.binaries import redis_binary

START_LIMIT_S = 10.0
STOP_LIMIT_S = 5.0
TRIES = 5


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class RedisServer:
    """``arguments``: more of them for the command line (``--requirepass``, ``--appendonly`` ...). ``options``: what
    ``url`` ends with; a server that was started for a test has never held a lock, so it need not stay out."""

    def __init__(self, *arguments: str, options: str = "fresh=1") -> None:
        self.arguments = arguments
        self.options = options
        self.folder = Path(tempfile.mkdtemp(prefix="trinco-redis-"))
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0" + (f"?{self.options}" if self.options else "")

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server does not run"
        return self.process.pid

    def start(self, port: int | None = None) -> Self:
        """Returns when it answers. Somebody else may take a free port before the server does: then another one."""
        for _ in range(TRIES):
            self.port = free_port() if port is None else port
            self._spawn()
            if self._answers():
                return self
            self.kill()
        raise AssertionError(f"redis-server did not start: {self.log()[-2000:]}")

    def _spawn(self) -> None:
        command = [redis_binary(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--save", "", "--appendonly", "no", "--daemonize", "no", *self.arguments]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _answers(self) -> bool:
        """Any line is an answer (a password may be wanted), if it is our own process that holds the port."""
        limit = time.monotonic() + START_LIMIT_S
        while time.monotonic() < limit and self.is_running:
            try:
                with self.dial() as connection:
                    connection.settimeout(START_LIMIT_S)
                    connection.sendall(b"PING\r\n")
                    if connection.recv(1) in (b"+", b"-"):
                        return self.is_running
            except OSError:
                time.sleep(0.005)
        return False

    def dial(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=START_LIMIT_S)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def pause(self) -> None:
        """Let it keep its connections and say nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """At once, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_LIMIT_S)
            self.process = None

    def stop(self) -> None:
        """Gracefully, and for good: the folder goes too."""
        if self.process is not None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_LIMIT_S)
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart_empty(self) -> None:
        """A crash that lost everything: the same port, no data."""
        self.kill()
        for path in self.folder.iterdir():
            if path.name != "log":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.start(self.port)

    def restart(self) -> None:
        """A crash that kept what was on disk."""
        self.kill()
        self.start(self.port)

    def __enter__(self) -> Self:
        return self if self.is_running else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One for everybody: use lock names of your own, and leave it running."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_servers() -> Iterator[Callable[..., RedisServer]]:
    """A factory: ``redis_servers("--requirepass", "secret")`` is a running server of this test alone."""
    started: list[RedisServer] = []

    def start(*arguments: str, options: str = "fresh=1") -> RedisServer:
        server = RedisServer(*arguments, options=options)
        started.append(server)
        return server.start()

    yield start
    for server in started:
        server.stop()
