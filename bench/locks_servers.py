"""The servers of the locks' bench, in the hands of a process that ends with whoever started it.

    python bench/locks_servers.py          says one line of JSON (the URLs), and stops all of it when its stdin ends

So nothing is left running even when the bench is killed with -9. Everything here is on the first core, until a line
names a mode: then it moves to where servers are in that mode, and says so.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import yardstick

ROOT = Path(__file__).resolve().parent.parent
REDIS_SERVERS = 4
STOP_LIMIT_S = 30.0


class Servers:
    """``redis``: four URLs, ``postgres``: one. ``folder``: for the files of this run; it goes with the servers."""

    def __init__(self) -> None:
        self._host = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        said = json.loads(self._hears())
        self.redis: list[str] = said["redis"]
        self.postgres: str = said["postgres"]
        self.folder: str = said["folder"]

    def move(self, mode: str) -> None:
        """To where servers run in this mode; whoever serves a connection that is open moves too."""
        assert self._host.stdin is not None
        self._host.stdin.write(f"{mode}\n")
        self._host.stdin.flush()
        self._hears()

    def _hears(self) -> str:
        assert self._host.stdout is not None
        line = self._host.stdout.readline()
        if not line:
            raise SystemExit("the servers did not start: see above")
        return line

    def stop(self) -> None:
        assert self._host.stdin is not None
        self._host.stdin.close()
        self._host.wait(STOP_LIMIT_S)


def host() -> None:
    """Ctrl-C reaches the whole group: whoever started us decides when we end."""
    sys.path.insert(0, str(ROOT))
    from tests.stores.postgres_server import PostgresServer, make_template, own_folder
    from tests.stores.servers import RedisServer

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    yardstick.pin(yardstick.CORES[0])
    with ExitStack() as stack:
        redis = [stack.enter_context(RedisServer()) for _ in range(REDIS_SERVERS)]
        files = stack.enter_context(tempfile.TemporaryDirectory(prefix="trinco-bench-", ignore_cleanup_errors=True))
        template = own_folder()
        stack.callback(shutil.rmtree, template, ignore_errors=True)
        postgres = PostgresServer(make_template(template), "max_connections=200")
        stack.callback(postgres.stop)
        postgres.start()
        urls = {"redis": [server.url for server in redis], "postgres": f"{postgres.url}?fresh=1"}
        print(json.dumps({**urls, "folder": files}), flush=True)
        for line in sys.stdin:
            for process in descendants(os.getpid()):
                move(process, yardstick.home_of_servers(line.strip()))
            print("moved", flush=True)


def descendants(process: int) -> Iterator[int]:
    for thread in threads(process):
        with suppress(FileNotFoundError):
            for child in map(int, Path(f"/proc/{thread}/task/{thread}/children").read_text(encoding="ascii").split()):
                yield child
                yield from descendants(child)


def move(process: int, cores: list[int]) -> None:
    for thread in threads(process):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cores)


def threads(process: int) -> list[int]:
    """None of one that has ended: whoever served a connection ends with it."""
    with suppress(FileNotFoundError):
        return [int(thread.name) for thread in Path(f"/proc/{process}/task").iterdir()]
    return []


if __name__ == "__main__":
    host()
