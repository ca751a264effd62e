"""Lin's decentralised voting, with the sentences of the slides as tests."""

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.mutants import voting as mutants
from trinco.check.model import Model
from trinco.check.run import Result, check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.context import IDLE, Context
from trinco.core.errors import BeyondClaims, UsageError
from trinco.core.event import Event, Kind
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.protocols.catalogue import find
from trinco.protocols.permission.voting import CLAIMS, Client, Coordinator, Request, VotingSystem
from trinco.sim.faults import Crash, Restart
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result as Run
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, OneShot, Scripted, saturated

OUT_OF_ORDER = Links(Uniform(0.1, 20.0), ordered=False)
JITTER = Links(Uniform(0.5, 1.5))


def scenario(m: int, clients: int, votes: int | None = None, **options: object) -> Scenario:
    """What else is said about it, and what else the system has of its own."""
    own = {name: options.pop(name) for name in ("slot", "doublings") if name in options}
    build = VotingSystem(m, votes, **own)  # type: ignore[arg-type]
    return Scenario(**{"protocol": "voting", "build": build, "claims": CLAIMS, "n": m + clients, **options})  # type: ignore[arg-type]


def events(result: Run, kind: Kind) -> list[Event]:
    assert result.recording is not None
    return [event for event in result.recording.events_without_clocks() if event.kind is kind]


class BacksOffForAnyTime(Client):
    """A message to oneself takes as long as it likes, as often as it must: what a random time is to the checker, which
    allows a timer only so many times."""

    __slots__ = ()

    def back_off(self, ctx: Context) -> None:
        ctx.send(ctx.me, Request())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if source == ctx.me:
            self.ask(ctx)
        else:
            Client.on_message(self, ctx, source, message)


class KeepsItsVotesForEver(BacksOffForAnyTime, mutants.KeepsItsVotes):
    __slots__ = ()


def model(
    m: int,
    votes: int,
    *,
    client: type[Client] = Client,
    coordinator: type[Coordinator] = Coordinator,
    rounds: int | None = 1,
    **options: object,
) -> Model:
    """Two clients. How long they back off makes no difference here: an armed timer may fire at any time."""
    nodes = [*(coordinator() for _ in range(m)), *(client(m, votes, doublings=0) for _ in range(2))]
    return Model(nodes=nodes, network=CLAIMS.network, inputs={"acquire": rounds}, **options)  # type: ignore[arg-type]


def everybody_was_served(view: View) -> bool:
    return all(view.phase(node) is IDLE and view.local(node).left == (("acquire", 0),) for node in view.processes)


def kind_of(result: Result) -> str | None:
    return result.violation.kind if result.violation else None


# Messages and delay


@pytest.mark.parametrize("m", [4, 8, 16, 32, 64])
def test_who_asks_alone_takes_3m_messages_and_two_message_times(m: int) -> None:
    result = run(scenario(m, 1, workload=saturated(10)))
    assert result.violation is None
    assert set(result.metrics.costs) == {3 * m}
    assert result.metrics.waiting is not None
    assert result.metrics.waiting.max == 2.0 == CLAIMS.delay.high()
    idle_others = run(scenario(m, 5, workload=Scripted(((m, 0.0, 1.0), (m + 1, 10.0, 1.0)))))
    assert idle_others.metrics.costs == [3 * m, 3 * m]


@pytest.mark.parametrize("m", [1, 2, 3, 4, 8])
def test_an_attempt_takes_2m_messages_and_every_vote_that_was_given_is_returned(m: int) -> None:
    sent = run(scenario(m, 5, workload=saturated(60), links=OUT_OF_ORDER)).metrics.messages_by_kind
    assert sent["request"] % m == 0
    assert sent["ok"] + sent["nok"] == sent["request"]
    assert sent["release"] == sent["ok"]
    assert sent["request"] > 60 * m, "some attempts must fail"


@pytest.mark.parametrize(("m", "messages", "attempts"), [(8, 71.3, 3.81), (32, 284.1, 3.8)])
def test_five_contenders_cost_what_the_specification_measured(m: int, messages: float, attempts: float) -> None:
    """The slides' 2mk + m leaves out the votes of the attempts that failed, a few in a hundred."""
    runs = [
        run(scenario(m, 5, workload=OneShot(hold=Constant(2.0)), links=JITTER, seed=seed, trace=False)).metrics
        for seed in range(80)
    ]
    entries = sum(each.entries for each in runs)
    measured = sum(each.messages for each in runs) / entries
    k = sum(each.messages_by_kind["request"] for each in runs) / m / entries
    assert entries == 5 * 80
    assert measured == pytest.approx(messages, rel=0.15)
    assert k == pytest.approx(attempts, rel=0.15)
    assert 1.02 < measured / (2 * m * k + m) < 1.08


# What is safe


@pytest.mark.parametrize(
    ("m", "votes", "rounds", "fires", "states"),
    [
        (1, 1, 2, 3, 2_835),
        (2, 2, 1, 3, 17_160),
        (2, 2, 2, 1, 19_482),
        (3, 2, 1, 3, 27_447),
        (3, 3, 1, 0, 3_698),
    ],
)
def test_at_most_one_gets_a_majority_of_the_votes(m: int, votes: int, rounds: int, fires: int, states: int) -> None:
    """S1: "no máximo só um processo é que recebe uma maioria de votos OK". Each client may try again so many times."""
    result = check(model(m, votes, rounds=rounds, fires=fires, reductions=False))
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, states)


def test_three_coordinators_and_two_entries_each_are_safe() -> None:
    """Every entry at the first attempt. If each client may try again once there are 572,535 states, if twice
    1,394,903: safe as well, but too many for here."""
    result = check(model(3, 2, rounds=2, fires=0, reductions=False), liveness=False)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, 120_735)


@pytest.mark.parametrize("workload", [saturated(24), Closed(24, think=Exponential(200.0))], ids=["saturated", "light"])
def test_random_runs_are_safe_and_everybody_is_lucky_in_the_end(workload: Closed) -> None:
    swarm = Swarm(scenario(3, 5, workload=workload, links=OUT_OF_ORDER))
    swarm.run(range(200))
    assert (swarm.violations, swarm.done, swarm.unfinished) == ([], 200, 0)
    assert swarm.entries == 200 * 24


def test_a_request_that_overtakes_its_own_release_gets_a_nok() -> None:
    """A single client, so there is nobody else to have the vote."""
    for ordered in (True, False):
        result = run(scenario(1, 1, workload=saturated(20), links=Links(Uniform(0.1, 20.0), ordered)))
        assert result.metrics.entries == 20
        assert ("nok" in result.metrics.messages_by_kind) == (not ordered)


BROKEN = {
    "half of the votes is enough": (model(2, 1), "safety"),
    "whoever has the vote may have it again": (
        model(1, 1, coordinator=mutants.GivesAgainToTheSame, rounds=2, fires=1),
        "safety",
    ),
    "a client gives up at the first NOK": (model(2, 2, client=mutants.GivesUpAtTheFirstNok, fires=1), "safety"),
}


@pytest.mark.parametrize(("broken", "kind"), BROKEN.values(), ids=BROKEN.keys())
def test_a_rule_that_is_dropped_is_missed(broken: Model, kind: str) -> None:
    assert kind_of(check(broken)) == kind


# What is not live, and what chance does for it


def test_clients_can_spoil_each_others_majority_for_ever() -> None:
    """ "Não satisfaz as propriedades de liveness V1 e V2": nobody enters, and nobody is at fault."""
    result = check(model(2, 2, client=BacksOffForAnyTime))
    assert kind_of(result) == "livelock"
    assert not CLAIMS.deadlock_free


def test_a_client_can_be_unlucky_for_ever_while_another_enters_again_and_again() -> None:
    assert kind_of(check(model(1, 1, client=BacksOffForAnyTime, rounds=None))) == "starvation"
    assert not CLAIMS.starvation_free


@pytest.mark.parametrize(("m", "votes"), [(1, 1), (2, 2), (3, 2)])
def test_with_luck_everybody_can_still_be_served_from_every_state(m: int, votes: int) -> None:
    reachable = {"everybody is served": everybody_was_served}
    lucky = check(model(m, votes, client=BacksOffForAnyTime, reachable=reachable), liveness=False)
    assert lucky.verdict is Verdict.HOLDS


def test_who_keeps_votes_that_are_not_enough_needs_more_than_luck() -> None:
    reachable = {"everybody is served": everybody_was_served}
    stuck = check(model(2, 2, client=KeepsItsVotesForEver, reachable=reachable), liveness=False)
    assert kind_of(stuck) == "unreachable"


def test_an_even_split_is_given_back_and_both_get_in() -> None:
    """Each client is quicker to two of four coordinators: neither has a majority."""
    slower = {(4 if node >= 2 else 5, node): Constant(1.5) for node in range(4)}
    result = run(scenario(4, 2, workload=OneShot(), links=Links(per_link=slower)))
    sent = result.metrics.messages_by_kind
    assert result.metrics.entries == 2
    assert sent["request"] >= 4 * 4


def test_the_back_off_is_random_never_nothing_and_doubles_as_ethernet_s_does() -> None:
    """p1 holds for a thousand message times; p2 tries again and again."""
    gaps: list[float] = []
    for seed in range(40):
        script = Scripted(((1, 0.0, 1000.0), (2, 5.0, 1.0)))
        asked = [event.at for event in events(run(scenario(1, 2, workload=script, seed=seed)), Kind.TIMER)]
        gaps += [later - earlier - 2.0 for earlier, later in pairwise(asked)][:4]
    assert all(gap % 2.0 == 0.0 for gap in gaps), "slots of two message times"
    assert min(gaps) == 2.0
    first, last = gaps[0::4], gaps[3::4]
    assert max(first) == 2.0 * 4
    assert 2.0 * 16 < max(last) <= 2.0 * 32
    assert len(set(last)) > 10


# Coordinators that fail


@pytest.mark.parametrize("votes", [2, 3])
def test_a_coordinator_that_stays_away_blocks_everybody_whatever_the_votes(votes: int) -> None:
    with pytest.raises(BeyondClaims):
        scenario(3, 2, votes, faults=(Crash(0, 1.0),))
    assert kind_of(check(model(3, votes, crashes=1, fires=0))) == "deadlock"


def reset(*nodes: int) -> dict[str, object]:
    """These coordinators are reset at time 5: they have stored nothing and know nothing."""
    faults = [fault for node in nodes for fault in (Crash(node, 5.0), Restart(node, 5.0))]
    return {"faults": tuple(faults), "beyond_claims": True}


@pytest.mark.parametrize("votes", [3, 4, 5])
@pytest.mark.parametrize("forgetful", [0, 1, 2, 3, 4])
def test_more_votes_bear_more_forgetful_coordinators(votes: int, forgetful: int) -> None:
    """ "Pode tolerar faltas se aumentarmos o número de votos OK necessários": two clients share 2v - m of five
    coordinators. The first is quicker to v of them, the second to the others."""
    slower = {(5 if node >= votes else 6, node): Constant(1.5) for node in range(5)}
    script = Scripted(((5, 0.0, 60.0), (6, 0.0, 1.0)))
    result = run(
        scenario(
            5, 2, votes, slot=4.0, workload=script, links=Links(per_link=slower), until=50.0, **reset(*range(forgetful))
        )
    )
    two_get_in = 2 * votes - 5 <= forgetful
    assert (result.violation is not None) == two_get_in


@pytest.mark.parametrize(("coordinator", "waits"), [(Coordinator, True), (mutants.TakesAnybodysRelease, False)])
def test_a_release_of_a_forgotten_vote_does_not_free_the_vote_given_since(
    coordinator: type[Coordinator], waits: bool
) -> None:
    """p1 holds until 12; p0 forgets at 5 and lets p2 in, which holds until 102. At 20 p3 asks."""

    def build(n: int) -> list[Coordinator | Client]:
        return [coordinator(), *(Client(1, 1) for _ in range(n - 1))]

    tolerant = replace(CLAIMS, k=Formula("2"), messages_per_entry=Formula("0..inf"))
    script = Scripted(((1, 0.0, 10.0), (2, 6.0, 100.0), (3, 20.0, 1.0)))
    result = run(scenario(1, 3, build=build, claims=tolerant, workload=script, **reset(0)))
    entered = {event.node: event.at for event in events(result, Kind.GRANT)}
    assert entered[2] == 8.0
    assert (entered[3] > 108.0) == waits


# What can be set


def test_three_coordinators_or_half_of_the_nodes_unless_something_else_is_said() -> None:
    entry = find("voting")
    assert [entry.letters(n)["m"] for n in (2, 3, 4, 5, 6, 64)] == [1, 1, 2, 2, 3, 3]
    nodes = entry.set("m=5", "votes=4").nodes(8)
    assert nodes == [*(Coordinator() for _ in range(5)), *(Client(5, 4) for _ in range(3))]


@pytest.mark.parametrize(("m", "votes", "n"), [(3, 1, 5), (4, 2, 6), (3, 4, 5), (5, None, 5), (0, None, 3)])
def test_votes_that_two_could_have_and_systems_without_anybody_are_refused(m: int, votes: int | None, n: int) -> None:
    with pytest.raises(UsageError):
        VotingSystem(m, votes)(n)
