"""Hi-ADSD: "um nodo sem-falha testa o próximo nodo no cluster até encontrar um nodo sem-falha"."""

import random
from dataclasses import dataclass
from typing import Any

import pytest

from trinco.check.model import Clocks, Model, Timers
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Codec, Message
from trinco.core.node import Node
from trinco.lab.diagnosis import CLAIMS, FOR_EVER, Diagnosers
from trinco.protocols.detection.hi_adsd import ROUND, TIMEOUT, AreYouAlive, HiAdsd, IAmAlive, Schedule, Timing
from trinco.protocols.detection.perfect import PerfectDetector
from trinco.sim.faults import Crash
from trinco.sim.laws import Constant, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation, run

ONE = Timing(schedule=Schedule.ONE)


class Desk(Context):
    """Plays the world for one detector: keeps whom it asks, and its timers."""

    __slots__ = ("asked", "timers")

    def __init__(self) -> None:
        self.asked: list[tuple[int, Message]] = []
        self.timers: dict[str, float] = {}

    def send(self, to: int, message: Message) -> None:
        self.asked.append((to, message))

    def set_timer(self, name: str, delay: float) -> None:
        self.timers[name] = delay

    def cancel_timer(self, name: str) -> None:
        self.timers.pop(name, None)


def answer(detector: HiAdsd, desk: Desk, suspects: Ids = NOBODY) -> tuple[int, ...]:
    """Whoever was asked last answers."""
    to, question = desk.asked[-1]
    assert isinstance(question, AreYouAlive)
    return detector.on_message(desk, to, IAmAlive(question.nonce, suspects))


def begun(me: int, n: int, timing: Timing = Timing(), first: int = 1) -> tuple[HiAdsd, Desk]:
    detector, desk = HiAdsd(me, n, timing, first), Desk()
    detector.start(desk)
    detector.on_timer(desk, ROUND)
    return detector, desk


def whom(desk: Desk) -> list[int]:
    return [to for to, _ in desk.asked]


def test_all_clusters_are_tested_one_after_the_other_in_each_interval() -> None:
    detector, desk = begun(0, 8)
    for _ in range(3):
        assert answer(detector, desk) == ()
    assert whom(desk) == [1, 2, 4]
    assert desk.timers == {ROUND: 1.0}
    detector.on_timer(desk, ROUND)
    assert whom(desk) == [1, 2, 4, 1]


def test_or_one_in_each_interval_and_the_next_in_the_next() -> None:
    detector, desk = begun(0, 8, ONE, first=2)
    for _ in range(4):
        answer(detector, desk)
        detector.on_timer(desk, ROUND)
    assert whom(desk) == [2, 4, 1, 2, 4]


def test_who_does_not_answer_in_time_is_suspected_and_the_next_of_the_cluster_is_tested() -> None:
    detector, desk = begun(0, 8, ONE, first=3)
    assert desk.timers[TIMEOUT] == 0.04
    assert [detector.on_timer(desk, TIMEOUT) for _ in range(2)] == [(4,), (6,)]
    assert answer(detector, desk) == ()
    assert whom(desk) == [4, 6, 7]
    assert list(members(detector.suspects)) == [4, 6]


def test_a_walk_begins_at_the_head_every_time_also_over_those_known_to_be_faulty() -> None:
    detector, desk = begun(0, 4, ONE, first=2)
    detector.on_timer(desk, TIMEOUT)
    answer(detector, desk)
    for _ in range(2):
        detector.on_timer(desk, ROUND)
        answer(detector, desk)
    assert whom(desk) == [2, 3, 1, 2]


def test_a_cluster_in_which_nobody_answers_is_finished_and_who_was_suspected_is_no_news() -> None:
    detector, desk = begun(0, 4)
    news = [detector.on_timer(desk, TIMEOUT) for _ in range(3)]
    assert (news, desk.timers) == ([(1,), (2,), (3,)], {ROUND: 1.0})
    detector.on_timer(desk, ROUND)
    assert [detector.on_timer(desk, TIMEOUT) for _ in range(3)] == [(), (), ()]


def test_what_an_answer_says_is_believed_of_that_cluster_alone() -> None:
    """p4 suspects p5 and p7 of its own half, and p1, which is none of p0's cluster 3."""
    detector, desk = begun(0, 8, ONE, first=3)
    assert answer(detector, desk, bit(1) | bit(5) | bit(7)) == (5, 7)
    assert list(members(detector.suspects)) == [5, 7]


def test_an_answer_to_an_older_question_and_one_that_comes_twice_change_nothing() -> None:
    detector, desk = begun(0, 8)
    answer(detector, desk)
    for late in (IAmAlive(1, bit(2)), IAmAlive(1, bit(3))):
        assert detector.on_message(desk, 1, late) == ()
    assert (whom(desk), detector.suspects) == ([1, 2], NOBODY)


def test_after_a_walk_no_answer_is_expected() -> None:
    detector, desk = begun(0, 2)
    answer(detector, desk)
    assert answer(detector, desk, bit(1)) == ()
    assert (whom(desk), detector.cluster) == ([1], 1)


def test_whoever_is_asked_says_whom_it_suspects() -> None:
    detector, desk = HiAdsd(0, 8, suspects=bit(3)), Desk()
    assert detector.on_message(desk, 5, AreYouAlive(7)) == ()
    assert desk.asked == [(5, IAmAlive(7, bit(3)))]


def test_a_round_that_outlasts_its_interval_is_finished_before_the_next_begins() -> None:
    detector, desk = begun(0, 4)
    detector.on_timer(desk, ROUND)
    assert (whom(desk), desk.timers[ROUND]) == ([1], 1.0)


def test_whoever_is_alone_tests_nobody() -> None:
    detector, desk = HiAdsd(0, 1), Desk()
    detector.start(desk)
    assert desk.timers == {}


def test_clusters_in_which_there_is_nobody_are_passed_over() -> None:
    detector, desk = begun(4, 5)
    assert (whom(desk), detector.cluster) == ([0], 3)


def test_both_detectors_tell_their_owner_the_same_way() -> None:
    for detector in (PerfectDetector(), HiAdsd(0, 4)):
        assert detector.suspects == NOBODY
        assert detector.on_message(Desk(), 1, IAmAlive(99, NOBODY)) == ()


def test_the_messages_can_travel() -> None:
    codec: Codec[Any] = Codec(AreYouAlive, IAmAlive)
    for message in (AreYouAlive(3), IAmAlive(3, bit(15))):
        assert codec.decode(codec.encode(message)) == message


@pytest.mark.parametrize("timeout", [0.015, 0.02])
def test_a_timeout_that_is_no_longer_than_a_round_trip_is_refused(timeout: float) -> None:
    with pytest.raises(UsageError, match=r"can take 0\.02"):
        Timing(timeout=timeout, delta=0.01)


def test_rounds_without_any_time_between_them_are_refused() -> None:
    with pytest.raises(UsageError):
        Timing(interval=0.0)


def watched(n: int, timing: Timing, links: Links, seed: int = 0, **faults: Any) -> Simulation:
    """After twenty seconds."""
    simulation = Simulation(
        Scenario(
            protocol="hi-adsd", build=Diagnosers(timing), claims=CLAIMS, n=n, seed=seed, workload=FOR_EVER,
            links=links, until=20.0, trace=False, **faults,
        )
    )  # fmt: skip
    simulation.run()
    return simulation


def suspected(simulation: Simulation) -> list[Ids]:
    """By each of the living."""
    return [host.node.detector.suspects for host in simulation.hosts if host.alive]  # type: ignore[attr-defined]


@pytest.mark.parametrize("delay", [0.01, 0.0100001])
def test_if_messages_take_longer_than_promised_the_living_suspect_each_other(delay: float) -> None:
    """F6. With an answer that comes in the very moment of the timeout too: that is why a round trip is not enough."""
    assert suspected(watched(2, Timing(timeout=0.02, delta=0.009), Links(Constant(delay)))) == [bit(1), bit(0)]


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("part", range(2))
def test_all_the_living_suspect_just_the_dead_whoever_crashes_and_however_long_messages_take(
    schedule: Schedule, part: int
) -> None:
    """The last crash is at 2 at the latest; the 18 intervals that are left are more than log^2 n."""
    for seed in range(50 * part, 50 * part + 50):
        n, chance = 2 + seed % 15, random.Random(seed)
        faults = tuple(Crash(node, chance.uniform(0, 2)) for node in chance.sample(range(n), chance.randrange(n)))
        links = Links(Uniform(0.0, 0.01), ordered=False)
        simulation = watched(n, Timing(schedule=schedule), links, seed, faults=faults)
        assert set(suspected(simulation)) == {sum(bit(fault.node) for fault in faults)}


def test_the_same_seed_gives_the_same_trace() -> None:
    scenario = Scenario(
        protocol="hi-adsd", build=Diagnosers(), claims=CLAIMS, n=5, workload=FOR_EVER, seed=1, until=5.0,
        links=Links(Uniform(0.0, 0.01)), faults=(Crash(3, 1.5),),
    )  # fmt: skip
    assert run(scenario).trace_hash == run(scenario).trace_hash


@dataclass(slots=True)
class Watch(Node):
    detector: HiAdsd

    def on_start(self, ctx: Context) -> None:
        self.detector.start(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.detector.on_message(ctx, source, message)

    def on_timer(self, ctx: Context, name: str) -> None:
        self.detector.on_timer(ctx, name)


class Guessing(HiAdsd):
    """Takes the next of a cluster for dead too when one does not answer."""

    __slots__ = ()

    def on_timer(self, ctx: Context, name: str) -> tuple[int, ...]:
        news = HiAdsd.on_timer(self, ctx, name)
        return news if name == ROUND or self.place is None else (*news, *self.learn(bit(self._walk[self.place])))


def dead_in(view: View) -> Ids:
    return sum(bit(node) for node in view.ids if not view.alive(node))


def suspects_in(view: View) -> list[Ids]:
    return [view.node(node).detector.suspects for node in view.ids if view.alive(node)]


def slandered(view: View) -> bool:
    """somebody alive is suspected"""
    return any(suspects & ~dead_in(view) for suspects in suspects_in(view))


def two_crashes_are_known(view: View) -> bool:
    dead = dead_in(view)
    return dead.bit_count() == 2 and all(suspects == dead for suspects in suspects_in(view))


def two_may_crash(n: int, kind: type[HiAdsd], fires: int) -> Model:
    """A message is quicker than any timer: the paper's synchrony, in its simplest form."""
    timing = Timing(interval=8, timeout=1, delta=0.25)
    return Model(
        nodes=[Watch(kind(me, n, timing)) for me in range(n)],
        network=Network.UNORDERED,
        inputs={},
        crashes=2,
        timers=Timers.PUNCTUAL,
        fires=fires,
        clocks=Clocks(),
        reductions=False,
        never=[slandered],
        sometimes={"all the living know of two crashes": two_crashes_are_known},
    )


@pytest.mark.parametrize(("n", "fires", "states"), [(3, 3, 2_973), (4, 2, 15_213)])
def test_in_every_run_nobody_alive_is_suspected(n: int, fires: int, states: int) -> None:
    result = check(two_may_crash(n, HiAdsd, fires))
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, states)


def test_a_detector_that_guesses_slanders() -> None:
    violation = check(two_may_crash(4, Guessing, fires=2)).violation
    assert violation is not None
    assert violation.text == slandered.__doc__
