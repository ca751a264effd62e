"""Voting over totally ordered multicast, with the sentences of the slides as tests."""

import pytest

from tests.mutants import ordered_voting as mutants
from trinco.check.model import Model
from trinco.check.run import Result, check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.cost import messages_per_entry
from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.message import Codec, Message
from trinco.core.node import Node
from trinco.protocols.broadcast.sequencer import NUMBERS, HoldBack, Numbered, Sequencer
from trinco.protocols.catalogue import find
from trinco.protocols.permission.ordered_voting import (
    CLAIMS,
    Client,
    Ok,
    OrderedVotingSystem,
    Release,
    Request,
    Voter,
)
from trinco.sim.laws import Constant, Exponential, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, saturated

OUT_OF_ORDER = Links(Uniform(0.1, 20.0), ordered=False)


def scenario(m: int, clients: int, **options: object) -> Scenario:
    build = OrderedVotingSystem(m)
    return Scenario(  # type: ignore[arg-type]
        **{"protocol": "ordered-voting", "build": build, "claims": CLAIMS, "n": m + 1 + clients, **options}
    )


def model(
    m: int,
    clients: int = 2,
    rounds: int | None = 1,
    *,
    numbers: int = NUMBERS,
    voter: type[Voter] = Voter,
    client: type[Client] = Client,
    network: Network = Network.UNORDERED,
) -> Model:
    nodes: list[Node] = [*(voter(HoldBack(numbers)) for _ in range(m)), Sequencer(m, numbers)]
    nodes += [client(m, numbers) for _ in range(clients)]
    return Model(nodes=nodes, network=network, inputs={"acquire": rounds}, reductions=False)


def kind_of(result: Result) -> str | None:
    return result.violation.kind if result.violation else None


# Messages and delay


@pytest.mark.parametrize("contenders", [1, 5])
@pytest.mark.parametrize("m", [4, 8, 16, 32, 64])
def test_an_entry_takes_3m_plus_2_messages(m: int, contenders: int) -> None:
    """(1+m) for the request, m votes, (1+m) for the release. The run ends when the last has left: its release has not
    been passed on."""
    result = run(scenario(m, contenders, workload=saturated(20)))
    assert result.violation is None
    assert result.recording is not None
    costs = messages_per_entry(result.recording.events_without_clocks())
    assert costs == [3 * m + 2] * 19 + [2 * m + 2]
    assert result.metrics.messages == 20 * (3 * m + 2) - m


@pytest.mark.parametrize("m", [1, 4, 64])
def test_who_asks_alone_enters_after_three_message_times(m: int) -> None:
    waiting = run(scenario(m, 5, workload=Scripted(((m + 1, 0.0, 1.0), (m + 2, 50.0, 1.0))))).metrics.waiting
    assert waiting is not None
    assert waiting.max == 3.0 == CLAIMS.delay.high()


@pytest.mark.parametrize(
    "law", [Uniform(0.1, 20.0), Exponential(1.0), Lognormal(1.0, 1.0)], ids=lambda law: type(law).__name__
)
@pytest.mark.parametrize("m", [2, 3, 9])
def test_on_average_no_entry_takes_more_than_claimed_however_late_votes_come(m: int, law: Uniform) -> None:
    for seed in range(4):
        links = Links(law, ordered=False)
        result = run(scenario(m, 6, workload=saturated(40, hold=Constant(0.0)), links=links, seed=seed))
        assert result.violation is None
        sent = result.metrics.messages_by_kind
        assert (sent["request"], sent["release"]) == (40, 40)
        assert 40 * m <= sent["numbered"] <= 2 * 40 * m


# Safe and live


@pytest.mark.parametrize(
    ("m", "clients", "rounds", "states"),
    [(1, 2, 2, 515), (1, 3, 1, 594), (2, 2, 2, 3_443), (2, 3, 1, 4_074), (3, 2, 1, 6_044)],
)
def test_voting_in_one_order_is_safe_deadlock_free_and_starvation_free(
    m: int, clients: int, rounds: int, states: int
) -> None:
    """S1, V1 and V2, on a network that reorders."""
    result = check(model(m, clients, rounds))
    assert (result.verdict, result.liveness, result.progress.states) == (Verdict.HOLDS, True, states)


def test_three_voters_and_two_entries_each_are_safe_and_deadlock_free() -> None:
    """With ordered channels; on a network that reorders there are more than 1,500,000 states."""
    result = check(model(3, 2, 2, network=Network.FIFO), liveness=False)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, 100_021)


@pytest.mark.parametrize(
    ("m", "clients", "numbers", "network", "states"),
    [
        (1, 2, 1, Network.UNORDERED, 93),
        (1, 3, 1, Network.UNORDERED, 597),
        (2, 2, 3, Network.FIFO, 2_934),
        (2, 2, 3, Network.UNORDERED, 12_924),
    ],
)
def test_v2_holds_without_any_bound_on_entries(
    m: int, clients: int, numbers: int, network: Network, states: int
) -> None:
    """With as few numbers as will do, the states come to an end: one more than there are clients may be under way."""
    result = check(model(m, clients, None, numbers=numbers, network=network))
    assert (result.verdict, result.liveness, result.progress.states) == (Verdict.HOLDS, True, states)


def test_a_single_vote_for_this_turn_would_be_enough() -> None:
    """All voters vote alike, so whoever has one vote is the head everywhere: the majority guards against nothing that
    can happen here. It does no harm, and the slides want it."""
    for result in (
        check(model(2, 2, 1, client=mutants.OneVoteIsEnough)),
        check(model(3, 2, 1, client=mutants.OneVoteIsEnough)),
    ):
        assert (result.verdict, result.liveness) == (Verdict.HOLDS, True)


@pytest.mark.parametrize("workload", [saturated(24), Closed(24, think=Exponential(200.0))], ids=["saturated", "light"])
def test_random_runs_keep_to_the_claims(workload: Closed) -> None:
    swarm = Swarm(scenario(3, 5, workload=workload, links=OUT_OF_ORDER))
    swarm.run(range(200))
    assert (swarm.violations, swarm.done, swarm.unfinished) == ([], 200, 0)


def test_clients_enter_in_the_order_in_which_the_sequencer_was_reached() -> None:
    """ "Difusão totalmente ordenada": first at the sequencer is first inside, however slow the voters are."""
    for seed in range(20):
        result = run(scenario(3, 5, workload=saturated(40), links=OUT_OF_ORDER, seed=seed))
        assert result.recording is not None
        events = list(result.recording.events_without_clocks())
        numbered = [event.peer for event in events if event.node == 3 and isinstance(event.message, Request)]
        assert [event.node for event in events if event.kind is Kind.GRANT] == numbered


# Each rule is needed

BROKEN = {
    "voters deliver as it arrives": (model(2, voter=mutants.DeliversAsItArrives), "deadlock"),
    "numbers begin again too soon": (model(2, 2, None, numbers=2), "deadlock"),
    "the vote is not passed on": (model(1, voter=mutants.KeepsItsVote), "deadlock"),
    "voters prefer the newest": (model(1, 2, None, numbers=1, voter=mutants.VotesForTheLast), "starvation"),
}


@pytest.mark.parametrize(("broken", "kind"), BROKEN.values(), ids=BROKEN.keys())
def test_a_rule_that_is_dropped_is_missed(broken: Model, kind: str) -> None:
    assert kind_of(check(broken)) == kind


def test_votes_without_their_turn_let_two_in_at_the_third_entry() -> None:
    """Of three votes one comes late. It takes two of those to make a majority: the second turn is won with a late vote
    of the first, so two come late for the third. Two entries each are too few to see it."""
    late = model(3, 2, 3, client=mutants.CountsLateVotes, network=Network.FIFO)
    result = check(late, liveness=False)
    assert kind_of(result) == "safety"
    assert result.counterexample is not None
    assert sum(step.endswith("acquire") for step in result.counterexample.script) >= 4


def test_random_runs_find_votes_without_their_turn_too() -> None:
    def build(n: int) -> list[Node]:
        return [*OrderedVotingSystem(3)(n)[:4], *(mutants.CountsLateVotes(3) for _ in range(n - 4))]

    links = Links(Uniform(0.1, 20.0), ordered=False)
    swarm = Swarm(scenario(3, 3, build=build, letters={"m": 3}, workload=saturated(40), links=links), collect=True)
    swarm.run(range(20))
    assert len(swarm.violations) > 10
    assert all(brief.violation and brief.violation.property == "AtMostInside" for brief in swarm.violations)


# What can be set, and what travels


def test_three_voters_or_half_of_the_others_unless_something_else_is_said() -> None:
    entry = find("ordered-voting")
    assert [entry.letters(n)["m"] for n in (3, 4, 5, 6, 7, 64)] == [1, 1, 2, 2, 3, 3]
    nodes = entry.set("m=4").nodes(7)
    assert nodes == [*(Voter() for _ in range(4)), Sequencer(4), Client(4), Client(4)]


@pytest.mark.parametrize(("m", "n"), [(3, 4), (0, 5), (1, 2)])
def test_a_system_needs_a_voter_a_sequencer_and_a_client(m: int, n: int) -> None:
    with pytest.raises(UsageError, match="a voter, a sequencer and a client"):
        OrderedVotingSystem(m)(n)


def test_all_messages_have_a_form_for_the_wire() -> None:
    codec: Codec[Message] = Codec(Request, Ok, Release, Numbered[Request | Release])
    for message in (Request(3), Ok(3), Release(), Numbered(0, 5, Request(3)), Numbered(1, 5, Release())):
        assert codec.decode(codec.encode(message)) == message
