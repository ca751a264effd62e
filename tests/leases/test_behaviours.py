"""Lying stores, as many as are allowed to: every behaviour on every kind of store (12.14 of the specification)."""

from itertools import cycle, islice
from typing import Any

import pytest

from tests.leases.driving import KINDS, RenewedLease, scenario
from trinco.core.event import Kind
from trinco.leases.keys import Keyring, MacKey
from trinco.leases.nodes.behaviours import BEHAVIOURS
from trinco.leases.nodes.client import Body
from trinco.leases.nodes.messages import Access, Reply
from trinco.leases.nodes.store import Store
from trinco.leases.nodes.system import QuorumLease
from trinco.leases.operation import Answer, Grade, Request
from trinco.leases.terms import Policy
from trinco.sim.laws import Constant, Exponential
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation, run
from trinco.sim.workload import Scripted

MIXED = ("object", "queue", "conditional", "transactional")
every_behaviour = pytest.mark.parametrize("behaviour", BEHAVIOURS)


def served(setting: Scenario, entries: int) -> None:
    """Nothing that is claimed was broken, and everybody who asked got in."""
    result = run(setting)
    assert result.violation is None
    assert result.finished
    assert result.metrics.entries == entries


# The matrix: one liar of four


@pytest.mark.parametrize("policy", [Policy.PRIORITY, Policy.BACKOFF], ids=lambda policy: policy.value)
@pytest.mark.parametrize("kind", KINDS)
@every_behaviour
def test_three_clients_survive_one_lying_store(behaviour: str, kind: str, policy: Policy) -> None:
    system = QuorumLease(stores=(kind,) * 4, clients=3, policy=policy, ttl=5.0)
    for seed, position in ((0, 0), (1, 3)):
        served(scenario(system, liars={position: BEHAVIOURS[behaviour]}, seed=seed, entries=6), 6)


@every_behaviour
def test_a_mix_of_all_kinds_survives_one_lying_store(behaviour: str) -> None:
    system = QuorumLease(stores=MIXED, clients=3, ttl=5.0)
    for position in range(4):
        served(scenario(system, liars={position: BEHAVIOURS[behaviour]}, seed=position, entries=6), 6)


@every_behaviour
def test_real_signatures_survive_one_lying_store(behaviour: str) -> None:
    system = QuorumLease(clients=3, ttl=5.0, keyring=Keyring(MacKey(b"k" * 32)))
    served(scenario(system, liars={1: BEHAVIOURS[behaviour]}, entries=6), 6)


@pytest.mark.parametrize("kind", KINDS)
@every_behaviour
def test_alone_a_client_succeeds_at_the_first_attempt_whoever_lies(behaviour: str, kind: str) -> None:
    """12.7: also where somebody was before it. Refused, it would not try again."""
    system = QuorumLease(stores=(kind,) * 4, clients=2, policy=Policy.ONCE, attempt_timeout=15.0)
    one_after_the_other = Scripted(((0, 0.0, 0.5), (1, 20.0, 0.5)))
    for position in (0, 3):
        setting = scenario(system, liars={position: BEHAVIOURS[behaviour]}, workload=one_after_the_other)
        simulation = Simulation(setting)
        simulation.run()
        assert simulation.result().violation is None
        assert [kind for _, _, kind in simulation.history if kind in (Kind.GRANT, Kind.REFUSE)] == [Kind.GRANT] * 2
        assert [simulation.hosts[client].node.attempt for client in (0, 1)] == [1, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
def test_a_lease_that_is_renewed_past_a_liar_is_never_held_by_two(kind: str) -> None:
    """Held for many terms, with answers that take as long as a term."""
    system = RenewedLease(stores=(kind,) * 4, clients=3, ttl=2.0)
    renewed = 0
    for seed, (behaviour, position) in enumerate(zip(BEHAVIOURS, cycle(range(4)))):
        setting = scenario(
            system,
            liars={position: BEHAVIOURS[behaviour]},
            seed=seed,
            hold=Exponential(6.0),
            delay=Exponential(0.05 if seed % 2 else 0.15),
            until=20.0,
        )
        simulation = Simulation(setting)
        simulation.run()
        assert simulation.violation is None
        renewed += sum(kind is Kind.RENEW for _, _, kind in simulation.history)
    assert renewed >= 10


# More stores


@pytest.mark.parametrize("kind", ["one-access", "conditional"])
@every_behaviour
def test_of_five_stores_one_may_lie(behaviour: str, kind: str) -> None:
    system = QuorumLease(stores=(kind,) * 5, f=1, clients=3, ttl=5.0)
    assert system.terms.quorum == 4
    served(scenario(system, liars={2: BEHAVIOURS[behaviour]}, entries=6), 6)


@pytest.mark.parametrize("step", [1, 5])
@every_behaviour
def test_of_seven_stores_two_may_lie_each_in_its_own_way(behaviour: str, step: int) -> None:
    other = next(islice(cycle(BEHAVIOURS), list(BEHAVIOURS).index(behaviour) + step, None))
    stores = ("one-access",) * 7 if step == 1 else (*MIXED, "one-access", "object", "queue")
    system = QuorumLease(stores=stores, f=2, clients=3, ttl=5.0)
    assert system.terms.quorum == 5
    served(scenario(system, liars={0: BEHAVIOURS[behaviour], 4: BEHAVIOURS[other]}, entries=6), 6)


# Liars of our own


class Repeats(Store):
    """Says everything three times, the second time the opposite."""

    __slots__ = ()

    def on_message(self, ctx: Any, source: int, message: Any) -> None:
        reply = self.reply(ctx, source, message.access)
        opposite = Answer(Grade.REFUSED if reply.grade is Grade.COMMITTED else Grade.COMMITTED)
        for each in (reply, opposite, reply):
            ctx.send(source, Reply(message.claim, each))


class MixesThemUp(Store):
    """Answers everybody with what it last said to somebody else."""

    __slots__ = ("last",)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.last: Any = None

    def reply(self, ctx: Any, client: int, access: Any) -> Any:
        said, self.last = self.last, super().reply(ctx, client, access)
        return said or self.last


class Boasts(Store):
    """Has committed a token that no entry can hold."""

    __slots__ = ()

    def reply(self, ctx: Any, client: int, access: Any) -> Any:
        return Answer(Grade.COMMITTED, 2**60)


class SignsItself(Store):
    """Vouches for a token and a ticket that no client ever had, under its own name."""

    __slots__ = ()

    def reply(self, ctx: Any, client: int, access: Any) -> Any:
        if isinstance(access.operation, Request):
            invented = ctx.sign(Body(access.operation.claim, 2**60, 2**60))
            return Answer(Grade.TENTATIVE, evidence=invented, ticket=invented)
        return super().reply(ctx, client, access)


class SignsNonsense(Store):
    """Vouches for a ticket that is no number."""

    __slots__ = ()

    def reply(self, ctx: Any, client: int, access: Any) -> Any:
        return Answer(Grade.REFUSED, ticket=ctx.sign(Body(access.operation.claim, None, "first")))


class SpeaksOutOfTurn(Store):
    """Talks to a client as if it were a store."""

    __slots__ = ()

    def on_message(self, ctx: Any, source: int, message: Any) -> None:
        ctx.send(source, Access(message.claim, message.access))


@pytest.mark.parametrize("liar", [Repeats, MixesThemUp])
@pytest.mark.parametrize("policy", [Policy.PRIORITY, Policy.BACKOFF], ids=lambda policy: policy.value)
def test_clients_survive_a_store_that_confuses_them(liar: type[Store], policy: Policy) -> None:
    for seed in range(4):
        system = QuorumLease(clients=3, ttl=5.0, policy=policy)
        served(scenario(system, liars={seed: liar}, seed=seed), 12)


def test_clients_survive_a_store_that_speaks_out_of_turn() -> None:
    served(scenario(QuorumLease(clients=3, ttl=5.0), liars={0: SpeaksOutOfTurn}), 12)


def test_clients_that_sign_survive_a_store_that_boasts() -> None:
    system = QuorumLease(clients=3, ttl=5.0, keyring=Keyring(MacKey(b"k" * 32)))
    served(scenario(system, liars={0: Boasts}), 12)


def largest_token(liar: type[Store]) -> int:
    setting = scenario(QuorumLease(clients=3, ttl=5.0), liars={0: liar}, delay=Constant(0.05))
    simulation = Simulation(setting)
    simulation.run()
    assert simulation.violation is None
    return max(host.node.token for host in simulation.hosts[:3])  # type: ignore[attr-defined]


@pytest.mark.parametrize("liar", [Boasts, SignsItself])
def test_a_store_cannot_invent_a_token(liar: type[Store]) -> None:
    assert largest_token(liar) < 2**53


def test_clients_survive_a_store_that_signs_nonsense() -> None:
    served(scenario(QuorumLease(clients=3, ttl=5.0), liars={0: SignsNonsense}), 12)
