"""What Campos & Carvalho 1988 claim about messages, section 6, and what is so. Every message takes one time unit."""

import random
from math import sqrt

import pytest

from trinco.core.event import Kind
from trinco.protocols.permission.campos_carvalho import Forks
from trinco.protocols.quorums.padding import padded
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Closed, Scripted, saturated

PLANES = [(7, 2), (13, 3), (21, 4), (31, 5), (57, 7)]
planes = pytest.mark.parametrize(("n", "m"), PLANES)
WIDE = Links(Uniform(0.01, 20.0))


def scenario(n: int, build: Forks = Forks(), **options: object) -> Scenario:
    return Scenario(protocol="campos-carvalho", build=build, claims=build.claims, n=n, **options)  # type: ignore[arg-type]


def one_after_the_other(n: int, *asks: int, build: Forks = Forks()) -> list[int]:
    """What each of these entries costs, each begun when the one before is long over."""
    script = tuple((node, 20.0 * turn, 1.0) for turn, node in enumerate(asks))
    result = run(scenario(n, build, workload=Scripted(script)))
    assert result.violation is None
    return result.metrics.costs


def messages(n: int, workload: object, build: Forks = Forks()) -> int:
    result = run(scenario(n, build, workload=workload, trace=False))
    assert result.violation is None
    return result.metrics.messages


def per_entry_of_all(n: int, build: Forks = Forks(), think: float = 0.0) -> float:
    """In the long run: what three more rounds of everybody cost."""
    short, long = (messages(n, Closed(rounds * n, think=Constant(think)), build) for rounds in (3, 6))
    return (long - short) / (3 * n)


def per_entry_of_two(n: int, one: int, other: int) -> float:
    """When both always ask again at once."""

    def of(rounds: int) -> int:
        return messages(n, Scripted(tuple((node, 0.0, 1.0) for _ in range(rounds) for node in (one, other))))

    return (of(60) - of(20)) / 80


def per_entry_of_the_later(n: int, asks: list[int], first: int) -> float:
    """Of all but so many first ones, where each begins when the one before is over."""
    script = tuple((node, 20.0 * turn, 1.0) for turn, node in enumerate(asks))
    more = messages(n, Scripted(script)) - messages(n, Scripted(script[:first]))
    return more / (len(asks) - first)


def neighbours(n: int) -> tuple[int, int]:
    """A client and another one that runs an arbiter of it: the one they share."""
    return 3, next(each for each in padded(n).quorums[3] if each != 3)


def strangers(n: int) -> tuple[int, int]:
    """Two whose common arbiter runs elsewhere."""
    arbiters = padded(n)
    return 3, next(each for each in range(n) if each != 3 and arbiters.common(3, each) not in (3, each))


# What holds


@planes
def test_the_first_entry_costs_exactly_2m(n: int, m: int) -> None:
    """ "Ao requisitar a exclusão mútua pela primeira vez": m requests, m forks, and one arbiter beside for nothing."""
    assert [one_after_the_other(n, me) for me in range(n)] == [[2 * m]] * n


@planes
def test_a_repeated_entry_costs_nothing(n: int, m: int) -> None:
    """ "Zero mensagens" for whoever is alone."""
    assert one_after_the_other(n, 5, 5, 5, 5) == [2 * m, 0, 0, 0]


@planes
def test_the_worst_case_without_preemption_is_4m(n: int, m: int) -> None:
    """ "Ele não está com nenhum dos recursos e os donos dos mesmos também não": everybody has been inside once, and
    whoever asks now finds each of its forks with somebody else, where that is not beside an arbiter."""
    last = one_after_the_other(n, *range(n), 0)[-1]
    assert last <= 4 * m
    costs = one_after_the_other(n, *range(n), *range(n))
    assert max(costs) == 4 * m


@planes
def test_two_who_take_turns_exchange_two_messages_or_four(n: int, m: int) -> None:
    """ "Dois vértices vizinhos": two. "Se os vértices não forem vizinhos, este número sobe para quatro." """
    one, other = neighbours(n)
    assert one_after_the_other(n, *(one, other) * 5)[2:] == [2] * 8
    one, other = strangers(n)
    assert one_after_the_other(n, *(one, other) * 5)[2:] == [4] * 8


@planes
def test_two_who_always_want_in_exchange_one_message_or_two(n: int, m: int) -> None:
    """ "Fazendo uma média de uma mensagem por exclusão mútua", and of two for strangers."""
    assert per_entry_of_two(n, *neighbours(n)) == 1
    assert per_entry_of_two(n, *strangers(n)) == 2


@planes
def test_two_who_ask_at_random_come_near_one_message_or_two(n: int, m: int) -> None:
    """Half of the entries are repeated ones."""
    rng = random.Random(n)
    for pair, average in ((neighbours(n), 1), (strangers(n), 2)):
        asks = [*pair, *(rng.choice(pair) for _ in range(2000))]
        assert per_entry_of_the_later(n, asks, 2) == pytest.approx(average, rel=0.05)


@planes
def test_when_everybody_always_wants_in_an_entry_costs_2m_and_twice_as_much_without_piggy_backing(
    n: int, m: int
) -> None:
    assert per_entry_of_all(n) == 2 * m
    assert per_entry_of_all(n, Forks(piggy_back=False)) == 4 * m


@planes
def test_who_pauses_however_shortly_gives_its_forks_back_first_and_pays_3m(n: int, m: int) -> None:
    assert per_entry_of_all(n, think=0.01) == 3 * m
    assert per_entry_of_all(n, Forks(piggy_back=False), think=0.01) == 4 * m


@planes
def test_who_asks_alone_enters_at_once_or_after_two_messages_or_four(n: int, m: int) -> None:
    one, other = strangers(n)
    script = Scripted(((one, 0.0, 1.0), (one, 20.0, 1.0), (other, 40.0, 1.0)))
    recording = run(scenario(n, workload=script)).recording
    assert recording is not None
    events = list(recording.events_without_clocks())
    asked = [event.at for event in events if event.kind is Kind.ACQUIRE]
    entered = [event.at for event in events if event.kind is Kind.GRANT]
    assert [there - here for here, there in zip(asked, entered, strict=True)] == [2, 0, 4]
    assert Forks().claims.delay.high() == 4


# What does not hold


@pytest.mark.parametrize(("n", "m"), PLANES[:4])
def test_the_average_of_one_and_a_half_sqrt_n_takes_one_to_hold_half_of_its_forks(n: int, m: int) -> None:
    """Where all ask equally often, one at a time, it holds one in m+1: 4m^2/(m+1)."""
    rng = random.Random(n)
    average = per_entry_of_the_later(n, [rng.randrange(n) for _ in range(3000)], 1000)
    assert average == pytest.approx(4 * m * m / (m + 1), rel=0.03)
    assert average > 1.5 * sqrt(n)


def test_one_entry_can_cost_more_than_4_sqrt_n_because_it_loses_forks_before_it_has_eaten() -> None:
    n = 57
    result = run(scenario(n, workload=Closed(200, think=Exponential(200.0)), links=WIDE))
    assert result.metrics.worst_messages_per_entry is not None
    assert result.metrics.worst_messages_per_entry > 4 * sqrt(n)


def test_even_the_average_can_exceed_4m_and_without_piggy_backing_4_sqrt_n() -> None:
    n, m = 21, 4
    light = Closed(3 * n, think=Exponential(10.0 * n))

    def worst_average(build: Forks) -> float:
        runs = (run(scenario(n, build, workload=light, links=WIDE, seed=seed, trace=False)) for seed in range(12))
        return max(result.metrics.messages_per_entry or 0 for result in runs)

    assert worst_average(Forks()) > 4 * m
    assert worst_average(Forks(piggy_back=False)) > 4 * sqrt(n)


@pytest.mark.parametrize("n", [4, 7, 16, 32, 64])
@pytest.mark.parametrize("build", [Forks(), Forks(piggy_back=False), Forks(returns=True)], ids=str)
def test_the_average_stays_below_what_is_claimed(n: int, build: Forks) -> None:
    """7m, or 8m without piggy-backing: an entry takes one fork at most from a client of each arbiter."""
    for workload in (saturated(3 * n), Closed(3 * n, think=Exponential(10.0 * n)), Closed(3 * n, think=Constant(5.0))):
        for seed in range(2):
            assert run(scenario(n, build, workload=workload, links=WIDE, seed=seed, trace=False)).violation is None


# Symmetry: "cada nodo deve ter as mesmas responsabilidades que qualquer outro"


def heaviest_share(n: int) -> float:
    """The load of the busiest node, by that of all on average."""
    load = run(scenario(n, workload=saturated(8 * n))).metrics.load
    assert load is not None
    return load.max / load.mean


@planes
def test_on_a_plane_all_nodes_have_nearly_the_same_load(n: int, m: int) -> None:
    assert heaviest_share(n) < 1.03


@pytest.mark.parametrize("n", [20, 30, 55])
def test_where_there_is_no_plane_for_n_whoever_runs_two_arbiters_has_up_to_two_fifths_more(n: int) -> None:
    assert max(map(len, padded(n).run_by)) == 2
    assert 1.2 < heaviest_share(n) < 1.4
