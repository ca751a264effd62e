"""The library of liars: what each one does, what becomes of it, and the rules that it takes to survive it."""

import dataclasses
from typing import ClassVar

import pytest

from tests.protocols.bakery.desk import LOCK, desk, get, set_ticket, suspect, suspicion
from trinco.core.ids import bit
from trinco.lab.bakery_campaign import Liars, against, outcome
from trinco.protocols.bakery.certificates import Ticket
from trinco.protocols.bakery.client import Client
from trinco.protocols.bakery.collusion import PAIRS, Informer
from trinco.protocols.bakery.lying_clients import HoldForever, Leapfrog, PartialExit, PartialSet
from trinco.protocols.bakery.lying_servers import GrantAll, Inflate, Mute
from trinco.protocols.bakery.messages import Certified, Certify, Exit, GetReply, Listen, Removal, Removed, Suspect
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.strategies import CLIENTS, SERVERS, STRATEGIES
from trinco.protocols.bakery.system import Bakery
from trinco.protocols.catalogue import find
from trinco.sim.simulation import Simulation

BANNED = {
    "skip-exit", "no-justification", "forged-justification", "low-ticket", "huge-ticket", "mute-inside", "replay",
}  # fmt: skip
"""Clients that do what no correct one does, at one server. The others only do less, or more often, or something else
at another."""


def every(names):
    return pytest.mark.parametrize("name", sorted(names))


@every(STRATEGIES)
def test_a_strategy_says_what_it_does_in_a_line_and_is_listed(name) -> None:
    kind = STRATEGIES[name]
    assert issubclass(kind, Server if "server" in name.split("/") else Client)
    assert kind.__doc__.split("\n")[0].endswith(".")
    assert find("bakery").strategies[name] is kind


@every(PAIRS)
def test_a_pair_is_a_server_and_a_client(name) -> None:
    pair = PAIRS[name]
    assert issubclass(pair.server, Server)
    assert issubclass(pair.client, Client)
    assert pair.what


@every(SERVERS)
def test_a_lying_server_is_survived(name) -> None:
    """Acceptance check 6; ``make prove`` has 500 seeds of each."""
    for seed in range(4):
        assert outcome(against(Liars((SERVERS[name],)), seed, "accurate")).is_clean, seed


@every(CLIENTS)
def test_a_lying_client_is_survived_when_a_server_is_silent_too(name) -> None:
    """Acceptance check 7."""
    for seed in range(4):
        assert outcome(against(Liars((Mute,), (CLIENTS[name],)), seed, "accurate")).is_clean, seed


@every(PAIRS)
def test_a_pair_is_survived(name) -> None:
    pair = PAIRS[name]
    for seed in range(4):
        assert outcome(against(Liars((pair.server,), (pair.client,)), seed, "accurate")).is_clean, seed


def bans(kind, seeds):
    """In how many runs a correct server has banned the liar."""
    found = 0
    for seed in seeds:
        simulation = Simulation(against(Liars((), (kind,)), seed, "accurate"))
        simulation.run()
        (liar,) = simulation.scenario.byzantine
        servers = [host.node for host in simulation.hosts if isinstance(host.node, Server)]
        found += any(server.banned & bit(liar) for server in servers)
    return found


@every(CLIENTS)
def test_who_does_what_no_correct_client_does_is_banned_and_nobody_else(name) -> None:
    """Acceptance checks 8 and 9."""
    assert (bans(CLIENTS[name], range(12)) > 0) is (name in BANNED)


def test_every_lying_client_gets_as_far_as_to_ask() -> None:
    """Nobody asks a liar to enter: it must do something by itself, or nothing is shown."""
    for kind in CLIENTS.values():
        simulation = Simulation(against(Liars((), (kind,)), 1, "accurate"))
        simulation.run()
        (liar,) = simulation.scenario.byzantine
        assert sum(simulation.hosts[liar].sent.values()) > 0, kind


def test_who_never_leaves_is_put_out_after_the_extension() -> None:
    """F17: a live holder is never mute, so a vote is renewed for so long only."""
    simulation = Simulation(against(Liars((), (HoldForever,)), 0, "accurate"))
    simulation.run()
    (liar,) = simulation.scenario.byzantine
    servers = [host.node for host in simulation.hosts if isinstance(host.node, Server)]
    assert all(dict(server.removed).get(liar) for server in servers)


def test_a_server_that_signs_everything_makes_no_certificate() -> None:
    """F11: f signatures are none. It is asked to sign 7, and signs 10^12 as well."""
    liar = desk(3)
    liar.node = Inflate.in_place_of(liar.node)
    sent = liar.receives(4, Certify(7, (), desk(4).sign(Ticket(LOCK, 7))))
    assert [(to, type(each), each.ticket.body.number) for to, each in sent] == [
        (4, Certified, 7),
        (4, Certified, 10**12),
    ]
    honest = desk(5)
    for _, message in sent:
        honest.receives(3, message)
    assert honest.node.tickets.certified == 0
    ((_, reply),) = [each for each in honest.receives(0, get(0)) if isinstance(each[1], GetReply)]
    assert reply.highest.body.number == 0


# What the liars taught us: four rules without which somebody correct waits for ever


def kinds(sent):
    return [(to, type(message)) for to, message in sent]


def accused_server():
    """It knows p0 in its first turn, whose ticket is set behind p1's; server 4 suspects p0."""
    server = desk(3)
    for client in (1, 0):
        server.receives(client, get(client))
    server.receives(0, set_ticket(0))
    server.receives(4, suspect(4, 0))
    return server


def test_who_has_suspected_a_turn_is_answered_when_it_ends_here() -> None:
    """An EXIT to some servers only, after another one has suspected the turn and asked these: F25 answers only who asks
    after the end."""
    sent = accused_server().receives(0, Exit(1, ()))
    assert (4, suspect(3, 0, asks=False)) in sent


def test_who_has_suspected_a_turn_that_never_came_is_answered_when_the_next_one_begins() -> None:
    """Leapfrog, with the suspicion between the two turns."""
    server = desk(3)
    server.receives(4, suspect(4, 0))
    sent = server.receives(0, get(0, sid=2))
    assert (4, suspect(3, 0, asks=False)) in sent


def test_who_has_suspected_a_turn_is_answered_when_its_client_is_banned() -> None:
    """Here the suspicion of an unknown turn outlives the ban, and its timer still counts."""
    server = desk(3)
    server.receives(0, get(0))
    server.receives(0, Exit(1, ()))
    server.receives(4, suspect(4, 0, sid=5))
    server.receives(0, set_ticket(0, sid=3))
    assert server.node.banned & bit(0)
    assert (4, Suspect) in kinds(server.fires("muteness/accused/0/5"))


def test_an_answer_is_not_answered_when_the_turn_ends() -> None:
    server = desk(3)
    server.receives(0, get(0))
    server.receives(4, suspect(4, 0, asks=False))
    assert Suspect not in [kind for _, kind in kinds(server.receives(0, Exit(1, ())))]


def test_a_removal_is_passed_on_once_to_the_servers_and_the_client() -> None:
    """A liar that completes the certificate may show it to one server only."""
    certificate = tuple(suspicion(signer, 0) for signer in (4, 5, 6))
    server = desk(3)
    server.receives(0, get(0))
    sent = server.receives(6, Removal(0, 1, certificate))
    assert kinds(sent) == [(4, Removal), (5, Removal), (6, Removal), (0, Removed)]
    assert sent[0][1].certificate == sent[-1][1].certificate == certificate
    assert server.receives(5, Removal(0, 1, certificate)) == []


def test_no_sign_of_life_saves_a_turn_that_more_than_f_servers_have_given_up() -> None:
    server = accused_server()
    server.receives(0, Listen(1, (), 1))
    assert not server.node.turns[0].dead
    assert (5, Suspect) in kinds(server.receives(5, suspect(5, 0)))
    assert [turn.client for turn in server.node.turns] == [1], "three suspicions remove it"


def test_nor_does_a_ticket_that_is_set_too_late() -> None:
    server = desk(3)
    for client in (1, 0):
        server.receives(client, get(client))
    for signer in (4, 5):
        server.receives(signer, suspect(signer, 0))
    assert not any(turn.dead for turn in server.node.turns), "who chooses is given the time for it"
    assert (4, Suspect) in kinds(server.receives(0, set_ticket(0)))
    assert [turn.client for turn in server.node.turns] == [1]


class AnswersNobody(Server):
    """Forgets who has suspected a turn when that ends."""

    __slots__ = ()

    def _close(self, ctx, client, sid):
        self.muteness.forget(ctx, client, sid)


class KeepsRemovals(Server):
    """Acts upon a removal certificate and tells nobody."""

    __slots__ = ()

    def _from_server(self, ctx, source, message):
        if not isinstance(message, Removal):
            Server._from_server(self, ctx, source, message)
        elif self.judge.removes(ctx, message.certificate, message.client, message.sid):
            self._remove(ctx, message.client, message.sid)


class HeedsHeartbeats(Server):
    """Never suspects who waits and gives signs of life."""

    __slots__ = ()

    def _join_if_hopeless(self, ctx, client, sid):
        pass


class Without(Bakery):
    kind: ClassVar = Server

    def __call__(self, n):
        return [self.kind.in_place_of(node) if type(node) is Server else node for node in Bakery.__call__(self, n)]


class WithoutAnswers(Without):
    kind: ClassVar = AnswersNobody


class WithoutPassingOn(Without):
    kind: ClassVar = KeepsRemovals


class WithoutGivingUp(Without):
    kind: ClassVar = HeedsHeartbeats


@pytest.mark.parametrize(
    ("broken", "liars", "seed"),
    [
        pytest.param(WithoutAnswers, Liars((Mute,), (PartialExit,)), 7, id="partial exit"),
        pytest.param(WithoutAnswers, Liars((Mute,), (Leapfrog,)), 6, id="leapfrog"),
        pytest.param(WithoutPassingOn, Liars((Informer,), (PartialSet,)), 8, id="informer"),
        pytest.param(WithoutGivingUp, Liars((GrantAll,), (PartialSet,)), 3, id="partial set"),
    ],
)
def test_without_one_of_these_rules_somebody_correct_waits_for_ever(broken, liars, seed) -> None:
    scenario = against(liars, seed, "accurate").with_changes(until=40_000.0)
    assert outcome(scenario).is_clean
    settings = dataclasses.asdict(scenario.build)
    assert not outcome(scenario.with_changes(build=broken(**settings))).served
