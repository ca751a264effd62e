"""Reductions leave states out, never verdicts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.check.examples import layers, lease
from tests.check.examples.dice import Dice
from tests.check.examples.notaries import Gossip, Notary, Replayer, SaysYes, Silent, TwoFaced
from tests.check.examples.notaries import system as notaries
from tests.check.examples.timers import Answering, Insistent
from tests.check.examples.waiting import Gambler, starving
from trinco.check.model import Clocks, Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.node import Node
from trinco.lab.exhibits.catalogue import EXHIBITS
from trinco.protocols.catalogue import find


def of_notaries(liar: Node, **options: object) -> Callable[[], Model]:
    nodes = notaries(Notary(), Notary(), liar)
    return lambda: Model(nodes=nodes, byzantine=frozenset({2}), **options)  # type: ignore[arg-type]


def of_leases(kind: type[lease.Tenant], **options: object) -> Callable[[], Model]:
    return lambda: Model(nodes=lease.system(kind, **options), clocks=Clocks(), inputs={"acquire": 2})  # type: ignore[arg-type]


MODELS: dict[str, Callable[[], Model]] = {
    **{exhibit.name: exhibit.model for exhibit in EXHIBITS if not exhibit.name.startswith("lease/")},
    "coordinator": lambda: model_of(find("coordinator"), n=4, rounds=2, symmetry=True),
    "lease": of_leases(lease.Tenant),
    "lease, counted from the return": of_leases(lease.CountsFromTheReturn),
    "lease that drifts": lambda: Model(
        nodes=lease.system(ttl=4, margin=1), clocks=Clocks(drifting=frozenset({1, 2}), window=1)
    ),
    "lease that drifts, with a margin": lambda: Model(
        nodes=lease.system(ttl=4, margin=2), clocks=Clocks(drifting=frozenset({1, 2}), window=1)
    ),
    "honest notaries": lambda: Model(nodes=notaries(Notary(), Notary(), Notary())),
    "a notary that says yes": of_notaries(SaysYes()),
    "a notary with two faces": of_notaries(TwoFaced()),
    "a silent notary": of_notaries(Silent()),
    "a notary that replays": of_notaries(Replayer()),
    "a notary that speaks unasked": of_notaries(Gossip(), inputs={"acquire": 1, "mischief": 1}),
    "a roll call": lambda: Model(nodes=layers.system()),
    "dice": lambda: Model(nodes=[Dice()]),
    "retransmission": lambda: Model(nodes=[Insistent(server=1), Answering(misses=1)]),
    "starvation": starving,
    "livelock": lambda: Model(nodes=[Gambler()]),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
def test_verdict_and_length_of_the_shortest_run_are_the_same_with_and_without_reductions(
    make: Callable[[], Model],
) -> None:
    reduced, plain = (check(replace(make(), reductions=on)) for on in (True, False))
    assert reduced.verdict is plain.verdict
    assert (reduced.violation and reduced.violation.kind) == (plain.violation and plain.violation.kind)
    if reduced.verdict is Verdict.HOLDS:  # a search that ends in the middle of a level has seen as much as it has
        assert reduced.progress.states <= plain.progress.states
    if reduced.verdict is Verdict.VIOLATED and make().byzantine:
        assert reduced.progress.depth <= plain.progress.depth  # what a liar answers arrives in the same step
    elif reduced.verdict is Verdict.VIOLATED:
        assert reduced.progress.depth == plain.progress.depth


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda each: each.name)
def test_an_exhibit_breaks_what_it_says_it_breaks(exhibit) -> None:
    violation = check(exhibit.model()).violation
    assert violation is not None
    assert violation.kind == exhibit.breaks


def test_messages_that_will_never_matter_are_erased_in_flight() -> None:
    reduced, plain = (check(Model(nodes=notaries(*[Notary()] * 3), reductions=on)).progress for on in (True, False))
    assert (reduced.states, plain.states) == (16_154, 51_215)
