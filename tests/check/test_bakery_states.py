"""The Byzantine bakery, exhaustively: exact numbers of states, and the mutants that must not get through.

Timers never fire unless a test says so, and a process enters so many times. With f=0 and one server the algorithm is
Lamport's bakery with messages; each further server multiplies what can be under way.
"""

import math
from dataclasses import replace

import pytest

from tests.mutants import bakery as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.monitor import TokenRises
from trinco.lab.exhibits.bakery_tickets import OnTrust, RestartsTickets
from trinco.protocols.bakery.client import Client
from trinco.protocols.bakery.lying_servers import GrantAll
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.system import Bakery

NEVER = dict.fromkeys(("hold", "extension", "silence", "choosing", "cap"), math.inf)


class SmallQuorums(Bakery):
    """F1, as printed: 2f+1 of any number of servers."""

    def judge(self, n):
        return replace(Bakery.judge(self, n), quorum=2 * self.f + 1)


def model(system, *kinds, clients=2, rounds=1, **options):
    """``kinds`` take the places of the client and the server."""
    nodes = list(system(system.size + clients))
    for kind in kinds:
        honest = Client if issubclass(kind, Client) else Server
        nodes = [kind.in_place_of(node) if isinstance(node, honest) else node for node in nodes]
    return Model(nodes=nodes, inputs={"acquire": rounds}, **options)


def untimed(f=0, servers=1, kind=Bakery):
    return kind(f=f, servers=servers, drift=0.0, **NEVER)


@pytest.mark.parametrize(
    ("servers", "clients", "rounds", "states"),
    [(1, 2, 2, 1_268), (1, 2, 3, 3_943), (1, 3, 1, 3_429), (2, 2, 1, 3_962)],
)
def test_it_is_safe_and_nobody_starves_in_exactly_so_many_states(servers, clients, rounds, states) -> None:
    result = check(model(untimed(servers=servers), clients=clients, rounds=rounds, reductions=False))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def test_tokens_rise_in_every_run() -> None:
    result = check(model(untimed(), rounds=3, monitors=[TokenRises()]))
    assert (result.verdict, result.violation) == (Verdict.HOLDS, None)


@pytest.mark.parametrize(
    ("mutant", "breaks"),
    [
        (mutants.IgnoresOrder, "safety"),
        (mutants.IgnoresChoosing, "safety"),
        (RestartsTickets, "monitor"),
        (mutants.DeafToExits, "deadlock"),
        (mutants.TellsNobody, "deadlock"),
        (mutants.DoesNotListen, "deadlock"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_every_rule_is_needed(mutant, breaks) -> None:
    result = check(model(untimed(), mutant, monitors=[TokenRises()]))
    assert result.violation is not None
    assert result.violation.kind == breaks


def test_quorums_of_2f_plus_1_are_too_small_when_there_are_more_servers() -> None:
    """F1 with f=0: two servers, each a quorum by itself, and nobody in both."""
    result = check(model(untimed(servers=2, kind=SmallQuorums)))
    assert result.violation is not None
    assert result.violation.kind == "safety"


def test_of_four_servers_one_may_grant_everything_to_everybody() -> None:
    """f=1, two clients that enter once each; votes without LISTEN, the honest servers merged. Tickets are taken on
    trust: mutual exclusion does not rest on their certificates, and without them far fewer messages are under way."""
    honest = model(untimed(f=1, servers=4, kind=OnTrust), mutants.Patient, mutants.Pushes)
    nodes = [*honest.nodes[:-1], GrantAll.in_place_of(honest.nodes[-1])]
    result = check(Model(nodes=nodes, byzantine=frozenset({5}), symmetric=[frozenset({2, 3, 4})]))
    assert (result.verdict, result.violation) == (Verdict.HOLDS, None)
    assert result.progress.states == 515_531


def test_one_vote_is_not_enough() -> None:
    result = check(model(untimed(servers=3), mutants.CountsOneVoteOfPushed, mutants.Pushes))
    assert result.violation is not None
    assert result.violation.kind == "safety"


def test_a_server_that_removes_whom_it_suspects_lets_two_in() -> None:
    """F4, as printed: "o cliente não consegue mais executar o algoritmo se é removido ... por mais de f servidores".
    Three servers, f=0; only the second one's timer ever runs out, and once."""
    suspecting = model(untimed(servers=3), mutants.Patient, mutants.RemovesAloneAndPushes, fires=1)
    server = suspecting.nodes[3]
    server.timing = server.muteness.timing = replace(server.timing, choosing=1.0, cap=1.0)
    result = check(suspecting, liveness=False)
    assert result.violation is not None
    assert result.violation.kind == "safety"
