"""Uses that nobody had in mind: copies, odd arguments, threads that ask at once, children that are told to end."""

import copy
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from inspect import getattr_static
from subprocess import run
from threading import Barrier, Event, Thread
from typing import Any

import anyio
import pytest

import trinco
from tests.locks.services import LIMIT, Crowd, TamperedStore, one_store, take
from tests.locks.test_lock import Nonsense
from trinco.core.errors import ConfigError, TrincoError, UsageError
from trinco.leases.accesses import Apply
from trinco.leases.claim import Claim
from trinco.leases.operation import Request
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore


@pytest.fixture
def service() -> Iterator[LockService]:
    with one_store() as made:
        yield made


# Names


def test_a_name_that_no_lock_can_have_does_not_hide_the_others() -> None:
    """Another program has written them into the store."""
    store = MemoryStore()
    link = store.connect("0" * 20)
    for name in ("", "a\x1b[31m", "b" * 201, "nightly"):
        link.send(name, Apply(Request(Claim("ana/1", 1), 30.0, None, 0, 0, b"")))
    with LockService([store]) as service:
        assert [info.name for info in service.list()] == ["nightly"]
        assert anyio.run(names_of_tasks, service) == ["nightly"]


async def names_of_tasks(service: LockService) -> list[str]:
    return [info.name async for info in service.aio.list()]


# Copies

COPIERS: list[Callable[[Any], object]] = [copy.copy, copy.deepcopy, pickle.dumps]


@pytest.mark.parametrize("duplicate", COPIERS)
def test_a_lease_has_no_copy_that_could_outlive_it(service: LockService, duplicate: Callable[[Any], object]) -> None:
    lease = take(service.lock("door"))
    with pytest.raises(TypeError, match="a lease is of one process"):
        duplicate(lease)
    lease.release()


@pytest.mark.parametrize("duplicate", COPIERS)
def test_locks_and_holds_are_of_one_process(service: LockService, duplicate: Callable[[Any], object]) -> None:
    for lock in (service.lock("door"), service.semaphore("gpu", 2), service.aio.lock("door")):
        with pytest.raises(TypeError, match="a lock is of one process"):
            duplicate(lock)
    for hold in (service.lock("door").hold(), service.aio.lock("door").hold()):
        with pytest.raises(TypeError, match="a hold is of one process"):
            duplicate(hold)


@pytest.mark.parametrize("duplicate", COPIERS)
def test_elections_are_of_one_process(service: LockService, duplicate: Callable[[Any], object]) -> None:
    for election in (service.election("head"), service.aio.election("head")):
        with pytest.raises(TypeError, match="an election is of one process"):
            duplicate(election)


# What is given where something else is meant


@pytest.mark.parametrize(
    "given",
    [
        {"client": ""},
        {"client": "x\ny"},
        {"client": "x" * 201},
        {"client": "\ud800"},
        {"client": 5},
        {"config": 1},
        {"stores": [5]},
        {"stores": "memory:"},
        {"keyring": 5},
        {"f": float("nan")},
        {"f": ""},
        {"f": True},
    ],
)
def test_a_service_of_odd_parts_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises((ConfigError, UsageError)):
        trinco.connect("memory:", **given)


def test_tokens_and_prefixes_of_odd_kinds_are_refused(service: LockService) -> None:
    with pytest.raises(UsageError, match="a token is a whole number"):
        service.break_("door", token="123")  # type: ignore[arg-type]
    for prefix in (5, None, b"x"):
        with pytest.raises(UsageError, match="begin with text"):
            list(service.list(prefix))  # type: ignore[arg-type]
    assert list(service.list("\ud800")) == []


# Threads that ask at once


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """They take turns after every few steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_a_lease_has_one_lost_event_whichever_threads_ask_for_it(service: LockService) -> None:
    leases = [take(service.lock(f"door {number}")) for number in range(100)]
    line = Barrier(4)
    events: list[list[Event]] = [[] for _ in leases]

    def ask(number: int) -> None:
        for lease, seen in zip(leases, events, strict=True):
            line.wait(LIMIT)
            seen.append(lease.lost)

    Crowd(ask, 4).join()
    assert all(len(set(map(id, seen))) == 1 for seen in events)


# Odd arguments


def test_errors_are_those_that_users_of_threading_catch(service: LockService) -> None:
    with pytest.raises(RuntimeError):
        service.lock("door").release()
    with pytest.raises(ValueError, match="ttl"):
        service.lock("door", ttl=-1)


BEYOND_NUMBERS: dict[str, Any] = {
    "a class": timedelta,
    "an integer": 10**400,
    "an integer that Python does not print": 10**5000,
    "a fraction": Fraction(10**400),
    "a decimal": Decimal("1e400"),
    "a signalling NaN": Decimal("sNaN"),
    "a complex number": 1j,
}


@pytest.mark.parametrize("endless", BEYOND_NUMBERS.values(), ids=BEYOND_NUMBERS.keys())
def test_a_time_beyond_all_numbers_is_refused(service: LockService, endless: Any) -> None:
    with pytest.raises(trinco.UsageError, match="ttl"):
        service.lock("door", ttl=endless)
    with pytest.raises(trinco.UsageError, match="max_hold"):
        service.lock("door", max_hold=endless)
    with pytest.raises(trinco.UsageError, match="timeout"):
        service.lock("door").hold(endless)


@pytest.mark.parametrize("number", [Decimal("2.5"), Fraction(5, 2)])
def test_numbers_of_any_kind_are_times(service: LockService, number: Any) -> None:
    lock = service.lock("door", ttl=number, max_hold=number)
    with lock.hold(timeout=number) as lease:
        assert 1 < lease.remaining <= 2.5


async def coroutine(lease: object) -> None:
    raise AssertionError("nobody awaits it")


class Coroutine:
    async def __call__(self, lease: object) -> None:
        raise AssertionError("nobody awaits it")


@pytest.mark.parametrize("on_lost", [coroutine, partial(coroutine), Coroutine(), Coroutine().__call__])
def test_a_blocking_lock_refuses_what_somebody_would_have_to_await(service: LockService, on_lost: Any) -> None:
    for make in (service.lock, service.election, partial(service.semaphore, limit=2)):
        with pytest.raises(trinco.UsageError, match=r"\.aio"):
            make("door", on_lost=on_lost)
    assert service.aio.lock("door", on_lost=on_lost).name == "door"


@pytest.mark.parametrize("on_lost", [5, "print", True])
def test_what_cannot_be_called_is_refused_before_anything_is_lost(service: LockService, on_lost: Any) -> None:
    for make in (service.lock, service.aio.lock):
        with pytest.raises(trinco.UsageError, match="on_lost"):
            make("door", on_lost=on_lost)


@pytest.mark.parametrize("option", ["auto_renew", "reentrant"])
@pytest.mark.parametrize("given", ["no", "", 0, 1, None])
def test_yes_and_no_are_not_words(service: LockService, option: str, given: Any) -> None:
    options: Any = {option: given}
    with pytest.raises(trinco.UsageError, match=option):
        service.lock("door", **options)


# Bodies that fail


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("by_hold", [True, False])
def test_the_error_of_a_task_survives_a_release_that_fails(backend: str, by_hold: bool) -> None:
    nonsense = Nonsense()
    lock = one_store(TamperedStore(MemoryStore(), before=nonsense)).aio.lock("door")

    async def main() -> None:
        async with lock.hold() if by_hold else lock:
            nonsense.arm()
            raise KeyError("body")

    with pytest.raises(KeyError, match="body"):
        anyio.run(main, backend=backend)


# What there is to see

PUBLIC = (
    trinco.Lock,
    trinco.Semaphore,
    trinco.Lease,
    trinco.Election,
    trinco.AsyncLock,
    trinco.AsyncSemaphore,
    trinco.AsyncLease,
    trinco.AsyncElection,
)


@pytest.mark.parametrize("kind", PUBLIC)
def test_everything_public_says_what_it_does(kind: type) -> None:
    assert kind.__doc__
    public = [name for name in vars(kind) if not name.startswith("_")]
    members = {name: getattr_static(kind, name) for name in public}
    speaking = {name: each for name, each in members.items() if callable(each) or isinstance(each, property)}
    assert [name for name, each in speaking.items() if not each.__doc__] == []


def test_what_is_printed_names_the_lock(service: LockService) -> None:
    hold = service.lock("door").hold()
    assert repr(hold) == "<Hold 'door' outside>"
    with hold:
        assert repr(hold).startswith("<Hold 'door' <Lease 'door' token=")
    assert repr(service.aio.lock("door").hold()) == "<AsyncHold 'door' outside>"
    assert repr(service.election("throne")) == "<Election 'throne'>"
    assert repr(service.aio.election("throne")) == "<AsyncElection 'throne'>"


# Children that are told to end

forking = multiprocessing.get_context("fork")
ENDED_BY_SIGTERM = -signal.SIGTERM


def dawdle() -> None:
    time.sleep(LIMIT)


def work_without_end() -> None:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        pass


@pytest.fixture
def sigterm() -> Iterator[None]:
    """As a program finds it, so that our handler is set."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with one_store():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        yield
    signal.signal(signal.SIGTERM, before)


def ended(target: Callable[[], object], codes: "list[int | None]", delay: float = 0) -> None:
    """How a child ends that is told to, right after its birth or a little later."""
    process = forking.Process(target=target)
    process.start()
    time.sleep(delay)
    process.terminate()
    process.join(LIMIT / 2)
    codes.append(process.exitcode)
    process.kill()
    process.join(LIMIT)


@pytest.mark.usefixtures("sigterm")
@pytest.mark.parametrize("delay", [0, 0.001, 0.1])
def test_sigterm_ends_a_forked_child_as_if_we_were_not_there(delay: float) -> None:
    codes: list[int | None] = []
    for target in (dawdle, work_without_end):
        ended(target, codes, delay)
    assert codes == [ENDED_BY_SIGTERM] * 2


@pytest.mark.usefixtures("sigterm")
def test_sigterm_ends_a_child_that_a_thread_has_forked() -> None:
    codes: list[int | None] = []
    thread = Thread(target=ended, args=(dawdle, codes))
    thread.start()
    thread.join(2 * LIMIT)
    assert codes == [ENDED_BY_SIGTERM]
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.usefixtures("sigterm")
def test_a_worker_that_is_told_to_end_does_not_end_who_waits_for_it() -> None:
    with ProcessPoolExecutor(1, mp_context=forking) as pool:
        worker = pool.submit(os.getpid).result(LIMIT)
        answer = pool.submit(work_without_end)
        while not answer.running():
            time.sleep(0.01)
        os.kill(worker, signal.SIGTERM)
        with pytest.raises(BrokenProcessPool):
            answer.result(LIMIT)


def release_when_told(url: str) -> None:
    with trinco.connect(url).lock("door").hold(LIMIT):
        os.kill(os.getpid(), signal.SIGTERM)
        dawdle()


@pytest.mark.usefixtures("sigterm")
def test_a_child_that_connects_by_itself_releases_what_it_holds(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    process = forking.Process(target=release_when_told, args=(url,))
    process.start()
    process.join(LIMIT)
    assert process.exitcode == 128 + signal.SIGTERM
    with trinco.connect(url) as onlooker:
        assert not onlooker.inspect("door").held


FORK_AND_BE_TOLD = """
import os, signal, threading, time
me = os.getpid()
os.register_at_fork(before=lambda: (os.kill(me, signal.SIGTERM), time.sleep(0.01)))
import trinco
locks = trinco.connect("memory:")
threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
if os.fork() == 0:
    os._exit(0)
time.sleep(9)
"""


def test_a_parent_that_is_told_to_end_while_it_forks_ends() -> None:
    """Python swallows what is raised amid a fork."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK_AND_BE_TOLD]  # Python 3.12 warns of forks
    ending = run(command, timeout=30, capture_output=True, text=True, check=False)
    assert (ending.returncode, ending.stderr) == (128 + signal.SIGTERM, "")


# Exit codes


def test_the_errors_that_have_further_bases_keep_their_exit_codes() -> None:
    from trinco.cli import exits
    from trinco.cli.main import CODES

    def code(error: TrincoError) -> int:
        return next(code for kind, code in CODES if isinstance(error, kind))

    assert code(trinco.UsageError("")) == exits.USAGE
    assert code(trinco.ConfigError("")) == exits.CONFIG
    assert code(trinco.NotHeld("")) == exits.VIOLATED
