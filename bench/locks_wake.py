"""How long it takes from the release of a lock until the one who waits for it owns it.

The bench holds the lock, and another process waits for it:

    bench                                     waiter (a process of its own)
    acquire
    "wait for subject 3"  ------------------> acquire, and sleep
    ... a little while ...
    note the time, release
                                              owns it: note the time, release
    <---------------------------------------- the time

Both read the host's CLOCK_MONOTONIC, so the difference means something.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from locks_subjects import Opened, Subject, opened, told
from yardstick import MODES, Samples, Yardstick, end_with_parent, pin

FALL_ASLEEP_S = 0.004
"""So long the waiter has to get in line and to fall asleep."""
SHORTEST_WAIT_NS = 2_000_000
STOP_LIMIT_S = 5.0


class Waiter:
    """The other process."""

    def __init__(self, subjects: Sequence[Subject], cores: Sequence[int]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *map(str, cores)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent,
        )
        self._tell(json.dumps([asdict(subject) for subject in subjects]))
        self.hears()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def waits_for(self, position: int) -> None:
        self._tell(str(position))

    def hears(self) -> list[int]:
        """What it says next: the moments when it asked and when it owned."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the waiter ended: see above")
        return [int(word) for word in line.split()]

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_LIMIT_S)
        finally:
            self._process.kill()


def measure(
    subjects: Sequence[Subject],
    mode: str,
    yardstick: Yardstick,
    rounds: int,
    per_round: int,
    say: Callable[[str], None],
) -> list[Samples]:
    """``rounds`` blocks of ``per_round`` wake-ups each, for every subject, in turns with PING."""
    pin(*MODES[mode])
    results = [Samples() for _ in subjects]
    waiter = Waiter(subjects, MODES[mode])
    handles: list[Opened] = []
    try:
        handles += [opened(subject) for subject in subjects]
        for each in range(rounds):
            say(f"wake-up, {mode}: round {each + 1} of {rounds}")
            for position, handle in enumerate(handles):
                ping = yardstick.measure(0.02)
                results[position].add(_block(handle, waiter, position, per_round), ping)
    finally:
        waiter.stop()
        for handle in handles:
            handle.close()
    return results


def _block(handle: Opened, waiter: Waiter, position: int, samples: int) -> list[int]:
    """A waiter that was not asleep yet is no sample; a subject that never sleeps is a failure."""
    took: list[int] = []
    for _ in range(2 * samples):
        handle.acquire()
        waiter.waits_for(position)
        time.sleep(FALL_ASLEEP_S)
        released = time.monotonic_ns()
        handle.release()
        asked, owned = waiter.hears()
        if released - asked >= SHORTEST_WAIT_NS:
            took.append(owned - released)
        if len(took) == samples:
            return took
    raise SystemExit("the waiter does not fall asleep in time: the host is too busy to measure wake-ups")


def wait() -> None:
    """The waiter's side: for each line on stdin acquire that subject, and say when."""
    end_with_parent()
    pin(*map(int, sys.argv[1:]))
    handles = [opened(told(each)) for each in json.loads(sys.stdin.readline())]
    for handle in handles:
        handle.acquire()
        handle.release()
    print(0, flush=True)
    for line in sys.stdin:
        handle = handles[int(line)]
        asked = time.monotonic_ns()
        handle.acquire()
        owned = time.monotonic_ns()
        handle.release()
        print(asked, owned, flush=True)
    for handle in handles:
        handle.close()


if __name__ == "__main__":
    wait()
