"""The demo: several processes count in a plain file, under a lock on four stores of which one lies.

Reading a number, thinking, and writing it back loses increments unless only one does it at a time. One of the workers
is killed with -9 while it holds the lock; the others go on when its lease has run out. At the end every increment must
be there, every token must be larger than the one before it, and the store that lied must be named.
"""

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from trinco.leases.keys import Keyring
from trinco.locks.keyfile import keyring_for, new_key, write_keyring
from trinco.locks.service import LockService
from trinco.stores.sqlite import SQLiteStore
from trinco.testing.lying import LyingStore

STORES = 4
TTL = 2.0
THINKS = 0.002
LIMIT_S = 120.0
LOOK_EVERY_S = 0.2
MOMENT_S = 5.0


def service(folder: Path) -> LockService:
    """Four files, f = 1. The last one grants everything to everybody."""
    stores = [SQLiteStore(str(folder / f"store-{each}.db")) for each in range(1, STORES)]
    liar = LyingStore(SQLiteStore(str(folder / f"store-{STORES}.db")), "grant-all")
    return LockService([*stores, liar], 1, keyring=keyring_for("secret", str(folder / "keys.json")))


def work(folder: Path, number: int, increments: int, dies_at: int) -> None:
    """Increment so many times; the victim stops in the middle of one and waits for its end."""
    counter, ledger = folder / "counter", folder / "ledger"
    locks = service(folder)
    lock = locks.lock("counter", ttl=TTL, metadata=f"worker {number}")
    for done in range(increments):
        _tell(number, "waits", done)
        with lock.hold() as lease:
            _tell(number, "holds", done, lease.token)
            value = int(counter.read_text())
            if done == dies_at:
                _tell(number, "dies", done, lease.token)
                time.sleep(LIMIT_S)
            time.sleep(THINKS)
            lease.check()
            counter.write_text(str(value + 1))
            with ledger.open("a") as book:
                book.write(f"{lease.token} {number}\n")
    _tell(number, "done", increments)
    locks.close()


def work_while_wanted(parent: int, folder: Path, *arguments: int) -> None:
    """Whoever started us may be killed. Then nobody hears us or cleans up: what was made for this run goes with us."""
    leaving = threading.Thread(target=_leave_with, args=(parent, folder), daemon=True)
    leaving.start()
    try:
        work(folder, *arguments)
    except BrokenPipeError:
        leaving.join()
    except Exception:
        leaving.join(MOMENT_S)  # another may have left, and taken the folder with it
        raise


def _leave_with(parent: int, folder: Path) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY_S)
    for _ in range(100):  # others may be making files yet
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
    os._exit(1)


def _tell(number: int, state: str, done: int, token: int | None = None) -> None:
    print(json.dumps({"worker": number, "state": state, "done": done, "token": token}), flush=True)


class Show:
    """What the workers said last, as a table that changes while they work."""

    def __init__(self, workers: int, increments: int) -> None:
        self.increments = increments
        self.said: dict[int, dict[str, Any]] = {
            each: {"state": "starts", "done": 0, "token": None} for each in range(1, workers + 1)
        }

    def table(self) -> Table:
        table = Table(title="four stores, one of which lies; a counter in a plain file")
        for column in ("worker", "state", "increments", "token"):
            table.add_column(column, justify="right" if column in ("increments", "token") else "left")
        for number, said in self.said.items():
            colour = {"holds": "green", "killed": "red", "done": "dim"}.get(said["state"], "")
            state = f"[{colour}]{said['state']}[/]" if colour else said["state"]
            table.add_row(f"{number}", state, f"{said['done']}/{self.increments}", str(said["token"] or ""))
        return table


def run(workers: int, increments: int) -> int:
    console = Console(soft_wrap=True, highlight=False)
    with tempfile.TemporaryDirectory(prefix="trinco-demo-") as name:
        folder = Path(name)
        (folder / "counter").write_text("0")
        (folder / "ledger").touch()
        write_keyring(Keyring(new_key("secret")), str(folder / "keys.json"))
        started = time.monotonic()
        show = Show(workers, increments)
        _watch(console, show, [_start(folder, each, increments) for each in range(1, workers + 1)])
        console.print()
        return _judge(console, folder, show, time.monotonic() - started)


def _start(folder: Path, number: int, increments: int) -> "subprocess.Popen[str]":
    """Worker 2 is the one to be killed, half way through."""
    dies_at = increments // 2 if number == 2 else -1
    command = [sys.executable, "-m", "demo.counter", "--folder", str(folder), "--worker", str(number)]
    command += ["--increments", str(increments), "--dies-at", str(dies_at), "--parent", str(os.getpid())]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _watch(console: Console, show: Show, processes: "list[subprocess.Popen[str]]") -> None:
    """Follow what the workers say until the last has ended; nothing is left running whatever happens."""
    said: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    for process in processes:
        threading.Thread(target=_listen, args=(process, said), daemon=True).start()
    running, deadline = len(processes), time.monotonic() + LIMIT_S
    try:
        with Live(show.table(), console=console, refresh_per_second=10) as live:
            while running and time.monotonic() < deadline:
                news = said.get(timeout=LIMIT_S)
                if news is None:
                    running -= 1
                    continue
                if news["state"] == "dies":
                    processes[news["worker"] - 1].kill()
                    news["state"] = "killed"
                show.said[news["worker"]] = news
                live.update(show.table())
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _listen(process: "subprocess.Popen[str]", said: "queue.SimpleQueue[dict[str, Any] | None]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.put(json.loads(line))
    said.put(None)


def _judge(console: Console, folder: Path, show: Show, seconds: float) -> int:
    counted = int((folder / "counter").read_text())
    ledger = [line.split() for line in (folder / "ledger").read_text().splitlines()]
    tokens = [int(token) for token, _ in ledger]
    killed = [number for number, said in show.said.items() if said["state"] == "killed"]
    expected = sum(said["done"] for said in show.said.values())
    in_order = all(first < second for first, second in pairwise(tokens))
    with service(folder) as locks:
        health = locks.health()
    console.print(f"counter    {counted:,}, and {expected:,} increments were made: {_verdict(counted == expected)}")
    console.print(f"tokens     {len(tokens):,}, each larger than the one before: {_verdict(in_order)}")
    console.print(
        f"killed     worker {killed[0]} while it held the lock; {len(show.said) - 1} others went on"
        if killed
        else "killed     nobody"
    )
    liars = [store for store in health if store.lies]
    for store in health:
        told = (
            f"lies: {'; '.join(store.lies)}"
            if store.lies
            else store.trouble or f"sound, {1e6 * (store.latency or 0):,.0f} us"
        )
        console.print(f"store      {Path(store.url.partition('?')[0]).name}  {told}")
    console.print(f"took       {seconds:.1f} s, {len(tokens) / seconds:,.0f} increments a second")
    good = counted == expected == len(tokens) and in_order and bool(killed) and len(liars) == 1
    console.print("verdict    no violation" if good else "verdict    [bold red]violated[/]")
    return 0 if good else 1


def _verdict(holds: bool) -> str:
    return "right" if holds else "[bold red]wrong[/]"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m demo.counter", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--increments", type=int, default=100, help="by each worker (100)")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--dies-at", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is None:
        for number in (signal.SIGTERM, signal.SIGHUP):  # what was made for this run goes with it
            signal.signal(number, lambda number, frame: sys.exit(128 + number))
        return run(options.workers, options.increments)
    work_while_wanted(options.parent, options.folder, options.worker, options.increments, options.dies_at)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
