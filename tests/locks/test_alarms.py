"""A program that sets itself a time-out by SIGALRM hears of it, wherever in trinco it is interrupted. What its handler
raises is an ``OSError``, as a time-out is, and stores take those for a trouble of their files or connections."""

import linecache
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import trinco
from tests.locks.services import LIMIT, Waiter, in_line, take
from tests.stores.servers import RedisServer
from trinco.locks.lock import Lock

SOURCES = str(Path(trinco.__file__).parent)
PLACES = {
    "folder": ["return os.open(path, os.O_WRONLY", "os.unlink(path)", "os.rename(unfinished,", "content = os.read("],
    "redis": ["sent = self._socket.send(data)", "data = self._socket.recv(CHUNK)"],
}
MET = [(store, place) for store, places in PLACES.items() for place in places]


class Alarm(TimeoutError):
    """What a program's own handler raises."""


@pytest.fixture(autouse=True)
def _alarm() -> Iterator[None]:
    def ring(number: int, frame: object) -> None:
        raise Alarm

    before, tracing = signal.signal(signal.SIGALRM, ring), sys.gettrace()
    yield
    signal.signal(signal.SIGALRM, before)
    sys.settrace(tracing)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer) -> str:
    return redis_server.url if request.param == "redis" else f"dir://{tmp_path}"


def ring_at(words: str, work: Callable[[], object]) -> bool:
    """Whether the work came to the line with these words, where the alarm rings."""
    is_met = False

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal is_met
        if not frame.f_code.co_filename.startswith(SOURCES):
            return None
        if event == "line" and words in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
            is_met = True
            sys.settrace(None)
            signal.raise_signal(signal.SIGALRM)
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return is_met


def come_and_go(lock: Lock) -> None:
    with lock.hold(LIMIT):
        pass


@pytest.mark.parametrize(("url", "place"), MET, indirect=["url"])
def test_an_alarm_in_the_middle_of_a_store_is_no_trouble_of_the_store(url: str, place: str) -> None:
    with trinco.connect(url) as locks:
        come_and_go(locks.lock("door"))
        with pytest.raises(Alarm):
            ring_at(place, lambda: come_and_go(locks.lock("door")))
        come_and_go(locks.lock("door"))


@pytest.mark.parametrize(
    ("place", "look"),
    [
        ("with os.scandir(self", lambda locks: list(locks.list())),
        ("content = os.read(", lambda locks: list(locks.list())),
        ("return os.open(path, os.O_WRONLY", lambda locks: locks.health()),
        ("content = os.read(", lambda locks: locks.health()),
    ],
)
def test_an_alarm_of_who_looks_into_a_store_is_no_trouble_of_the_store(
    place: str, look: Callable[[trinco.LockService], object], tmp_path: Path
) -> None:
    with trinco.connect(f"dir://{tmp_path}") as locks:
        come_and_go(locks.lock("door"))
        with pytest.raises(Alarm):
            ring_at(place, lambda: look(locks))


def test_an_alarm_of_who_rings_at_another_is_no_trouble_of_the_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with trinco.connect(url) as ana, trinco.connect(url) as bruno:
        lease = take(ana.lock("door"))
        waiter = Waiter(bruno.lock("door"))
        in_line(ana, "door")
        with pytest.raises(Alarm):
            ring_at("self._socket().sendto(", lease.release)
        waiter.join().release()


def test_an_alarm_of_who_waits_for_a_file_is_no_trouble_of_its_socket(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with trinco.connect(url) as ana, trinco.connect(url) as bruno:
        take(bruno.lock("door"))
        with pytest.raises(Alarm):
            ring_at("return os.stat(f", lambda: come_and_go(ana.lock("door")))


def test_an_alarm_of_who_looks_after_all_leaves_nobody_waiting_for_ever(tmp_path: Path) -> None:
    """One thread fires the timers of all who wait, and is interrupted when it has taken one: that was the next poll."""
    with trinco.connect(f"dir://{tmp_path}") as locks, trinco.connect(f"dir://{tmp_path}") as others:
        come_and_go(locks.lock("window"))
        theirs, waiting = take(others.lock("door")), locks.desk.waiting
        waiters: list[Waiter] = []

        def begin() -> bool:
            if not waiters:
                waiters.append(Waiter(locks.lock("door")))
            return False

        def look_after_all() -> None:
            with waiting.mutex:
                waiting.until(begin, locks.desk.hub.clock() + LIMIT)

        with pytest.raises(Alarm):
            ring_at("self.on_timer(self.world, name)", look_after_all)
        theirs.release()
        waiters[0].join().release()
