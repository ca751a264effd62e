"""Many who want the same lock all the time: how many grants a second, how fairly, and whether it is a lock at all.

Each of n processes (threads, for the store in memory) takes the lock, holds it for a millisecond and gives it back.
Inside, a counter that nothing else protects is read at the beginning and written at the end, and the moments of
entering and leaving are noted; afterwards no two stays may overlap, tokens must rise in the order of the stays, and
the counter must have counted all of them. A grant that came from a fallback poll means that a wake-up was lost.

The processes are spread over the cores, with the servers on the first.
"""

import json
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import trinco.locks.hub
from locks_subjects import NAME, PATIENCE_S, Subject, service, told
from trinco.leases.client import POLL, Stage
from trinco.locks.claimant import Claimant
from yardstick import CORES, end_with_parent, pin

FEW, MANY = 2, 32
HOLD_S = 0.001
GET_GOING_S = 0.05
LIMIT_S = 1.5 * PATIENCE_S
"""To connect, to stand in line, to leave: who takes longer is ended."""

Stay = tuple[int, int, int, bool, int]
"""Token, entered, left (nanoseconds), whether a poll brought it, and how many polls there were while we waited."""


@dataclass
class Crowd:
    """What came of it. ``by_poll``: grants that a fallback poll brought; ``polls``: those that fired at all."""

    grants: list[int]
    seconds: float
    overlaps: int
    disorder: int
    uncounted: int
    by_poll: int
    polls: int

    @property
    def rate(self) -> float:
        return sum(self.grants) / self.seconds

    @property
    def jain(self) -> float:
        squares = sum(each * each for each in self.grants)
        return sum(self.grants) ** 2 / (len(self.grants) * squares) if squares else 0.0


def measure(subject: Subject, how_many: int, seconds: float) -> Crowd:
    """By a process that forks them: none of them outlives it, and it does not outlive us."""
    order = {"subject": asdict(subject), "how_many": how_many, "seconds": seconds}
    process = subprocess.Popen(
        [sys.executable, __file__, json.dumps(order)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent,
    )
    try:
        said, _ = process.communicate(timeout=seconds + LIMIT_S)
    finally:
        process.kill()
        process.wait()
    if not said:
        raise SystemExit(f"the crowd of {how_many} on {subject.what} failed: see above")
    return Crowd(**json.loads(said))


def judged(stays: Sequence[Sequence[Stay]], seconds: float, end: int, counted: int) -> Crowd:
    """Grants count up to ``end``; the rest of the line is still served after it."""
    grants = [sum(stay[1] < end for stay in each) for each in stays]
    ordered = sorted((stay for each in stays for stay in each), key=lambda stay: stay[1])
    pairs = list(pairwise(ordered))
    return Crowd(
        grants,
        seconds,
        overlaps=sum(later[1] < earlier[2] for earlier, later in pairs),
        disorder=sum(later[0] <= earlier[0] for earlier, later in pairs),
        uncounted=abs(len(ordered) - counted),
        by_poll=sum(stay[3] for stay in ordered),
        polls=sum(stay[4] for stay in ordered),
    )


# The crowd's side


polls: dict[int, tuple[bool, int]] = {}
"""By claimant: whether a poll made it ask last, and how often one did since it began."""


def count_polls() -> None:
    """Watch what makes claimants ask, of whichever kind they are."""
    prepare, on_timer, hinted = Claimant.prepare, Claimant.on_timer, Claimant.hinted

    def begins(self: Claimant, terms: Any, info: str) -> None:
        polls[id(self)] = False, 0
        prepare(self, terms, info)

    def polled(self: Claimant, ctx: Any, name: str) -> None:
        if name == POLL and self.stage is Stage.ASKING:
            polls[id(self)] = True, polls[id(self)][1] + 1
        on_timer(self, ctx, name)

    def woken(self: Claimant, ctx: Any, position: int) -> None:
        if not self.bases[position].chain:
            polls[id(self)] = False, polls[id(self)][1]
        hinted(self, ctx, position)

    Claimant.prepare, Claimant.on_timer, Claimant.hinted = begins, polled, woken  # type: ignore[method-assign]


class Shared:
    """Two numbers that all processes of the crowd see: the counter, and when it starts."""

    def __init__(self) -> None:
        self.numbers = memoryview(mmap.mmap(-1, 16)).cast("q")


def contend(lock: "trinco.Lock", shared: Shared, end: int) -> list[Stay]:
    stays: list[Stay] = []
    numbers = shared.numbers
    while time.monotonic_ns() < end:
        with lock.hold(timeout=PATIENCE_S) as lease:
            entered = time.monotonic_ns()
            by_poll, how_often = polls[id(lease.claimant)]
            value = numbers[0]
            time.sleep(HOLD_S)
            numbers[0] = value + 1
            left = time.monotonic_ns()
        stays.append((lease.token or 0, entered, left, by_poll, how_often))
    return stays


def threads(subject: Subject, how_many: int, seconds: float) -> Crowd:
    shared = Shared()
    stays: list[list[Stay]] = []
    with service(subject.urls) as locks:
        lock = locks.lock(NAME)
        end = time.monotonic_ns() + int(seconds * 1e9)
        crowd = [Thread(target=lambda: stays.append(contend(lock, shared, end))) for _ in range(how_many)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
    return judged(stays, seconds, end, shared.numbers[0])


def processes(subject: Subject, how_many: int, seconds: float) -> Crowd:
    """Forked, so that everything is imported once. They are ready when all are connected; the last byte starts them."""
    shared = Shared()
    ready, go = os.pipe(), os.pipe()
    results = [_forked(subject, shared, number, seconds, ready[1], go) for number in range(how_many)]
    waiting = how_many
    os.close(ready[1])
    while waiting and (come := len(os.read(ready[0], waiting))):
        waiting -= come
    start = time.monotonic_ns() + int(GET_GOING_S * 1e9)
    shared.numbers[1] = start
    for end in go:
        os.close(end)
    told = [_all_of(result) for result in results]
    if not all(told):
        raise SystemExit(f"{told.count('')} of {how_many} processes failed")
    stays = [json.loads(each) for each in told]
    return judged(stays, seconds, start + int(seconds * 1e9), shared.numbers[0])


def _forked(subject: Subject, shared: Shared, number: int, seconds: float, ready: int, go: tuple[int, int]) -> int:
    """Where to read what a new process has to tell."""
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        return reader
    os.close(go[1])
    end_with_parent()
    pin(CORES[number % len(CORES)])
    try:
        stays = _one_of_many(subject, shared, seconds, ready, go[0])
        with os.fdopen(writer, "w") as told:
            json.dump(stays, told)
    except BaseException as error:
        print(f"one of the crowd: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def _one_of_many(subject: Subject, shared: Shared, seconds: float, ready: int, go: int) -> list[Stay]:
    with service(subject.urls) as locks:
        lock = locks.lock(NAME)
        with lock.hold(timeout=PATIENCE_S):
            pass
        os.write(ready, b"!")
        os.read(go, 1)
        start = shared.numbers[1]
        time.sleep(max(start - time.monotonic_ns(), 0) / 1e9)
        return contend(lock, shared, start + int(seconds * 1e9))


def _all_of(descriptor: int) -> str:
    with os.fdopen(descriptor) as file:
        return file.read()


def crowd() -> None:
    end_with_parent()
    count_polls()
    order = json.loads(sys.argv[1])
    subject = told(order["subject"])
    run: Callable[[Subject, int, float], Crowd] = threads if subject.store == "memory" else processes
    print(json.dumps(asdict(run(subject, order["how_many"], order["seconds"]))), flush=True)


if __name__ == "__main__":
    crowd()
