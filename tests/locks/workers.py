"""Processes of their own for the tests of locks: they race, fork, are stopped, and end in every way that there is.

python -m tests.locks.workers COMMAND ARGUMENT...
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import trinco
from trinco.guards import FileGuard, StaleToken
from trinco.stores.clock import boottime

LIMIT = 30.0
NAME = "shared"


# Starting and stopping them


class Worker:
    """A process that says lines and is told lines."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-X", "dev", "-W", "ignore::ResourceWarning", "-m", "tests.locks.workers", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def hears(self) -> str:
        """The next line that it says; a worker that says nothing more has ended, and its complaint is shown."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.finish())
        return line.strip()

    def tell(self, line: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def finish(self) -> str:
        """Everything else that it says; it must end by itself."""
        said, complaint = self.process.communicate(timeout=LIMIT)
        return said if said and not self.process.returncode else said + complaint

    def close(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=LIMIT)


@contextmanager
def worker(*arguments: str, env: dict[str, str] | None = None) -> Iterator[Worker]:
    started = Worker(*arguments, env=env)
    try:
        yield started
    finally:
        started.close()


def say(text: object) -> None:
    os.write(1, f"{text}\n".encode())


def wait_to_be_told() -> None:
    sys.stdin.readline()


# Races


def race(folder: str, rounds: str, hold: str, ttl: str, *urls: str) -> None:
    """Take a lock again and again; inside, add one to a counter that nothing else protects, and note the interval."""
    place = Path(folder)
    f = str((len(urls) - 1) // 3)
    with (
        trinco.connect("quorum:", stores=list(urls), f=int(f)) as locks,
        (place / f"log-{os.getpid()}").open("w") as log,
    ):
        lock = locks.lock(NAME, ttl=float(ttl))
        say("ready")
        wait_to_be_told()
        done = 0
        while done < int(rounds):
            try:
                log.write(_one_turn(lock, place / "counter", float(hold)))
                done += 1
            except trinco.LeaseLost as loss:
                say(f"lost {loss.reason}")
    say("finished")


def _one_turn(lock: "trinco.Lock", counter: Path, hold: float) -> str:
    asked = boottime()
    with lock.hold(timeout=LIMIT) as lease:
        began = boottime()
        value = int(counter.read_text())
        time.sleep(hold)
        lease.check()
        counter.write_text(str(value + 1))
        ended = boottime()
        return f"{lease.token} {began!r} {ended!r} {began - asked!r} {' '.join(lease.votes)}\n"


# Holders that are stopped, killed, or end in some way


def hold_and_write(url: str, path: str) -> None:
    """Hold a lock; when told, write under its token whatever has happened meanwhile, and say what came of it."""
    with trinco.connect(url) as locks:
        lease = locks.lock(NAME, ttl=1).hold(timeout=LIMIT).__enter__()
        FileGuard(path).write(b"first", lease.token or 0)
        say(lease.token)
        wait_to_be_told()
        for attempt in (lease.renew, lease.check, lambda: FileGuard(path).write(b"late", lease.token or 0)):
            try:
                attempt()
            except (trinco.LeaseLost, StaleToken) as error:
                say(type(error).__name__)
            else:
                say("nothing was refused")
        lease.release()
        say("released")


def wait_for_a_signal() -> None:
    """Python looks for signals between two steps of its own: one that came just before a call that blocks for ever
    would be seen when that returns."""
    for _ in range(int(LIMIT / 0.02)):
        time.sleep(0.02)


def hold_and_end(url: str, how: str) -> None:
    """Take a lock for long, and end: by returning, by an error, by ``os._exit``, or as we are told from outside."""
    locks = trinco.connect(url)
    lease = locks.lock(NAME, ttl=30).hold(timeout=LIMIT).__enter__()
    assert lease.valid
    say("holding")
    if how == "wait":
        wait_for_a_signal()
    elif how == "error":
        raise ValueError("an error that nobody catches")
    elif how == "exit":
        sys.exit(3)
    elif how == "abort":
        os._exit(0)


def wait_and_say(url: str) -> None:
    """Get in line, and say when and with which token we got it."""
    locks = trinco.connect(url)
    say("ready")
    with locks.lock(NAME, ttl=1).hold(timeout=LIMIT) as lease:
        say(f"{time.monotonic()} {lease.token}")


def hold_without_the_service(url: str) -> None:
    """Keep the lease and let the service go, as ``trinco.connect(url).lock(name).try_acquire()`` does."""
    lease = _only_a_lease(url)
    say("holding" if lease.valid else "not holding")


def _only_a_lease(url: str) -> "trinco.Lease":
    return trinco.connect(url).lock(NAME, ttl=30).hold(timeout=LIMIT).__enter__()


def close_under_a_waiter(url: str) -> None:
    """One thread waits for ever, another closes the service."""
    locks = trinco.connect(url)
    said: list[str] = []

    def wait() -> None:
        try:
            locks.lock(NAME).hold().__enter__()
        except BaseException as error:
            said.append(type(error).__name__)
        else:
            said.append("got it")

    waiter = Thread(target=wait, daemon=True)
    waiter.start()
    wait_to_be_told()
    locks.close()
    waiter.join(3)
    say(said[0] if said else "still waiting")
    os._exit(0)


# Forks


def fork_while_holding(url: str) -> None:
    """The child has the same objects, and none of the leases."""
    locks = trinco.connect(url)
    lock = locks.lock(NAME, ttl=30)
    lock.acquire()
    lease = lock.lease
    assert lease is not None
    if not (child := os.fork()):
        _child_of_a_holder(locks, lock, lease)
    _, status = os.waitpid(child, 0)
    say(f"child ended: {status}")
    lease.renew()
    say(f"parent: {lease.valid} {locks.inspect(NAME).held} {locks.inspect(NAME).token == lease.token}")
    locks.close()


def _child_of_a_holder(locks: "trinco.LockService", lock: "trinco.Lock", lease: "trinco.Lease") -> None:
    try:
        lease.check()
    except trinco.LeaseLost as loss:
        say(f"child: {lease.valid} {loss.reason}")
    else:
        say("child: believes that it holds")
    lease.release()
    with suppress(trinco.NotHeld):
        lock.release()
    got = lock.acquire(timeout=0.1)
    say(f"child: acquired {got}")
    with locks.lock("another").hold(timeout=LIMIT) as own:
        say(f"child: another {own.valid}")
    sys.exit(0)


def fork_without_the_service(url: str) -> None:
    lease = _only_a_lease(url)
    if not (child := os.fork()):
        say(f"child: {lease.valid}")
        lease.release()
        os._exit(0)
    os.waitpid(child, 0)
    with trinco.connect(url) as onlooker:
        say(f"held: {onlooker.inspect(NAME).held}")
    lease.release()


def fork_and_close(url: str) -> None:
    """The child goes on alone with what both had open."""
    locks = trinco.connect(url)
    locks.lock("warm").hold(timeout=LIMIT).__enter__().release()
    if os.fork():
        os._exit(0)
    lease = locks.lock(NAME, ttl=30).hold(timeout=LIMIT).__enter__()
    say("child: holds")
    sys.stdin.readline()
    lease.renew()
    say(f"child: {locks.inspect(NAME).held}")


def fork_amid_threads(url: str) -> None:
    """Threads wait and renew while the process forks; the child must be able to lock all the same."""
    locks = trinco.connect(url)
    held = locks.lock("held", ttl=1).hold(timeout=LIMIT).__enter__()
    waiters = [Thread(target=_wait_in_vain, args=(locks,), daemon=True) for _ in range(4)]
    for waiter in waiters:
        waiter.start()
    while len(locks.inspect("held").waiters) < len(waiters):
        time.sleep(0.01)
    for number in range(5):
        if not (child := os.fork()):
            with locks.lock(f"child {number}").hold(timeout=5) as lease:
                os._exit(0 if lease.valid and not held.valid else 1)
        _, status = os.waitpid(child, 0)
        say(f"child: {status}")
    held.release()
    for waiter in waiters:
        waiter.join(LIMIT)
    say(f"parent: {sum(waiter.is_alive() for waiter in waiters)} still wait")
    locks.close()


def _wait_in_vain(locks: "trinco.LockService") -> None:
    with locks.lock("held", ttl=5).hold(timeout=LIMIT):
        return


def make_keys(path: str) -> None:
    """The first use of a quorum: its secret does not exist yet."""
    from trinco.locks.keyfile import keyring_for

    say("ready")
    wait_to_be_told()
    say(keyring_for("secret", path).signing_key().fingerprint)


def main() -> None:
    command, *arguments = sys.argv[1:]
    globals()[command.replace("-", "_")](*arguments)


if __name__ == "__main__":
    main()
