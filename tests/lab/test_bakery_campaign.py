"""A sample of the campaign; ``make prove`` has the whole. And the campaign itself: what it draws, what it counts."""

import dataclasses
from typing import ClassVar

import pytest

from trinco.core.errors import UsageError
from trinco.lab.bakery_campaign import ENTRIES, KINDS, Batch, Liars, Survey, against, case, outcome, overtakings, survey
from trinco.protocols.bakery.client import Client
from trinco.protocols.bakery.collusion import PAIRS
from trinco.protocols.bakery.lying_servers import GrantAll, Inflate, Mute
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.strategies import CLIENTS, SERVERS
from trinco.protocols.bakery.system import Bakery
from trinco.sim.laws import Constant
from trinco.sim.links import Links
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Scripted


@pytest.mark.parametrize(("kind", "seeds"), [("accurate", 60), ("hasty", 40), ("f2", 16)])
def test_no_violation_everybody_served_nobody_banned(kind, seeds) -> None:
    found = survey(kind, range(seeds))
    assert (found.violations, found.unserved, found.banned) == ((), (), ())
    assert found.seeds == seeds
    assert found.entries >= ENTRIES * seeds
    assert found.highest < 300, "F11: tickets are not made huge"
    if kind != "hasty":
        assert found.overtaken == ()
        assert 0 < found.bypass <= 4, "three to five correct clients contend"


def test_a_seed_is_a_run_and_always_the_same() -> None:
    assert case(7, "accurate") == case(7, "accurate")
    assert case(7, "accurate") != case(8, "accurate")
    assert outcome(case(7, "accurate")) == outcome(case(7, "accurate"))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="the kinds are accurate, hasty, f2"):
        case(0, "slow")


@pytest.mark.parametrize("kind", KINDS)
def test_liars_are_within_what_is_claimed(kind) -> None:
    for seed in range(100):
        scenario = case(seed, kind)
        nodes = scenario.build(scenario.n)
        lying = [nodes[node] for node in scenario.byzantine]
        assert sum(isinstance(node, Server) for node in lying) in (0, KINDS[kind].f)
        assert sum(isinstance(node, Client) for node in lying) <= 3
        correct = sum(isinstance(node, Client) for node in nodes) - sum(isinstance(node, Client) for node in lying)
        assert 3 <= correct <= 5
        for node, liar in scenario.byzantine.items():
            assert issubclass(liar, Server if isinstance(nodes[node], Server) else Client)


def test_every_liar_of_the_library_has_its_turn_and_some_runs_have_no_lying_server() -> None:
    drawn = [set(case(seed, "accurate").byzantine.values()) for seed in range(600)]
    pairs = {kind for pair in PAIRS.values() for kind in (pair.server, pair.client)}
    assert set().union(*drawn) == {*SERVERS.values(), *CLIENTS.values(), *pairs}
    without = sum(not any(issubclass(kind, Server) for kind in kinds) for kinds in drawn)
    assert 0.1 < without / 600 < 0.2


def test_a_survey_adds_up_its_batches() -> None:
    found = survey("accurate", range(25), liars=Liars((Mute,)))
    pieces = [
        each
        for start in (0, 20)
        for each in Batch("accurate", tuple(range(start, min(start + 20, 25))), Liars((Mute,))).do()
    ]
    assert found == Survey(
        "accurate", 25, sum(each.entries for each in pieces), (), (), (), (), max(each.bypass for each in pieces),
        max(each.highest for each in pieces),
    )  # fmt: skip
    assert found.is_clean


def waits(script, delay=1.0):
    scenario = against(Liars(), 0, "accurate").with_changes(
        n=7, workload=Scripted(script), links=Links(Constant(delay)), byzantine={}
    )
    simulation = Simulation(scenario)
    simulation.run()
    return [(wait.contenders, wait.bypass) for wait in overtakings(simulation)]


def test_who_asks_together_with_others_lets_those_pass_that_come_before() -> None:
    assert waits(((0, 1.0, 5.0), (1, 1.0, 5.0), (2, 1.0, 5.0))) == [(2, 0), (2, 1), (2, 2)]


def test_who_comes_again_is_behind() -> None:
    """Client 0 is inside when the others set their tickets, and asks again at once: neither lets it pass."""
    assert waits(((0, 1.0, 50.0), (1, 10.0, 5.0), (2, 20.0, 5.0), (0, 52.0, 5.0))) == [(0, 0), (0, 0), (1, 1), (1, 1)]


class Trusts(Server):
    """F9 in the extreme: lets in whoever asked last, first."""

    __slots__ = ()

    def is_free(self, turn):
        inside = any(other.state.name == "C" for other in self.turns)
        return not inside and turn.client == max(other.client for other in self.turns)


class Unfair(Bakery):
    kind: ClassVar = Trusts

    def __call__(self, n):
        return [self.kind.in_place_of(node) if type(node) is Server else node for node in Bakery.__call__(self, n)]


def test_a_queue_that_is_jumped_shows() -> None:
    """Servers that serve the largest name first: whoever has the smallest is overtaken again and again."""
    found = 0
    for seed in range(12):
        scenario = against(Liars(), seed, "accurate").with_changes(until=20_000.0)
        unfair = scenario.with_changes(build=Unfair(**dataclasses.asdict(scenario.build)))
        found += outcome(unfair).overtaken
    assert found > 0


def test_a_huge_ticket_shows_where_certificates_are_not_looked_at(monkeypatch) -> None:
    """F11: the same run, with and without certificates of tickets."""
    scenario = against(Liars((Inflate,)), 3, "accurate")
    assert outcome(scenario).highest < 100
    monkeypatch.setattr("trinco.protocols.bakery.certificates.Judge.certifies", lambda *_: True)
    assert outcome(scenario).highest > 10**12


def test_a_ban_shows() -> None:
    """A server that lies may ban whom it likes; a correct one that does would be counted."""
    clean = outcome(against(Liars((GrantAll,)), 0, "accurate"))
    assert clean.is_clean
    assert not dataclasses.replace(clean, banned=True).is_clean
    assert not dataclasses.replace(clean, served=False).is_clean
    assert not dataclasses.replace(clean, violation="p0 and p1 are inside together").is_clean
