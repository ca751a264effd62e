"""Campos & Carvalho 1988 exhaustively, with the invariants of its proof in every state.

FIFO channels, no reductions, entries without bound. What is explored is a few lines of a plane: a client that never
asks can be left out, and so can an arbiter that only one of the others has, for its fork never comes back. Where the
arbiters run at nodes of their own, every message is one; beside a client they answer at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from tests.mutants.forks import ReturnsAtWill, seated
from trinco.check.components import beyond_cycles
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Search, Verdict
from trinco.check.standard import model_of
from trinco.core.context import Context
from trinco.core.ids import Ids, bit, members
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.lab.exhibits.forks import AsksStronglyOnce
from trinco.lab.forks_invariants import (
    a_fork_is_lost_or_doubled,
    more_are_under_way_than,
    precedence_is_no_total_order,
    somebody_thinks_with_a_clean_fork,
)
from trinco.protocols.catalogue import find
from trinco.protocols.permission.campos_carvalho import ArbiterHost, CamposCarvalho, Forks, Rule

PAIR = {"quorums": ((2,), (2,)), "hosts": {2: 2}}
CONCURRENT = {"quorums": ((3,), (3,), (3,)), "hosts": {3: 3}}
TRIANGLE = {"quorums": ((3, 4), (4, 5), (3, 5)), "hosts": {3: 3, 4: 4, 5: 5}}
PAIR_AT_HOME = {"quorums": ((0,), (0,)), "hosts": {0: 0}}
CONCURRENT_AT_HOME = {"quorums": ((0,), (0,), (0,)), "hosts": {0: 0}}
BROKEN = [a_fork_is_lost_or_doubled, precedence_is_no_total_order, somebody_thinks_with_a_clean_fork]


def model(nodes: Iterable[Node], longest: int = 3, rounds: int | None = None) -> Model:
    broken = [*BROKEN, more_are_under_way_than(longest)]
    return Model(nodes=list(nodes), inputs={"acquire": rounds}, reductions=False, never=broken)


@pytest.mark.parametrize(
    ("seats", "piggy_back", "states"),
    [
        (PAIR, True, 153),
        (PAIR, False, 40),
        (CONCURRENT, True, 8_847),
        (CONCURRENT, False, 1_310),
        (TRIANGLE, False, 8_840),
        (PAIR_AT_HOME, True, 100),
        (CONCURRENT_AT_HOME, True, 4_554),
    ],
)
def test_nobody_starves_and_the_invariants_hold_in_exactly_so_many_states(
    seats: dict, piggy_back: bool, states: int
) -> None:
    """Fairness: every message is delivered and everybody leaves, sooner or later; nobody has to ask."""
    result = check(model(Forks(piggy_back).seated(**seats)))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def test_the_triangle_with_arbiters_apart_and_piggy_backing_has_47_739_states_and_is_safe() -> None:
    """That nobody starves in it takes much longer to see; with arbiters beside the clients it is seen below."""
    result = check(Model(nodes=Forks().seated(**TRIANGLE), inputs={"acquire": None}), liveness=False)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, 47_739)


@pytest.mark.parametrize(("n", "rounds", "states"), [(2, None, 93), (3, 2, 16_327), (3, None, 8_603), (4, 1, 14_217)])
def test_whole_systems_are_safe_and_free_of_deadlock_and_starvation(n: int, rounds: int | None, states: int) -> None:
    """Four with two entries each are more than 1.5 million states."""
    result = check(model_of(find("campos-carvalho"), n=n, rounds=rounds, reductions=False))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


@pytest.mark.parametrize(("seats", "states", "longest"), [(PAIR, 586, 3), (CONCURRENT, 42_084, 4)])
def test_forks_may_be_returned_at_will_whatever_a_predictor_says(seats: dict, states: int, longest: int) -> None:
    result = check(model(seated(**seats, client=ReturnsAtWill), longest))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


@pytest.mark.parametrize(
    ("seats", "client", "most"),
    [
        (PAIR, CamposCarvalho, 2),
        (CONCURRENT, CamposCarvalho, 3),
        (PAIR, ReturnsAtWill, 3),
        (CONCURRENT, ReturnsAtWill, 4),
    ],
)
def test_so_many_messages_are_really_under_way_at_once(seats: dict, client: type[CamposCarvalho], most: int) -> None:
    nodes = seated(**seats, client=client)
    result = check(Model(nodes=nodes, inputs={"acquire": None}, never=[more_are_under_way_than(most - 1)]))
    assert result.violation is not None
    assert result.violation.kind == "never"


@pytest.mark.parametrize(("seats", "rounds"), [(PAIR, 3), (CONCURRENT, 1), (TRIANGLE, 1)])
def test_when_nobody_asks_any_more_messages_cease(seats: dict, rounds: int) -> None:
    """No state comes back: without bound on entries it may, but not by messages alone."""
    search = Search(model(Forks().seated(**seats), rounds=rounds))
    assert search.run() is Verdict.HOLDS
    assert not beyond_cycles(search.seen, lambda state: search.successors((state,)))


# As printed: guarded commands


class Next(Message, tag="next"):
    """To oneself: one more rule may be applied."""


@dataclass(slots=True)
class OneRuleAtATime(CamposCarvalho):
    """The rules as the paper has them: any that applies, to any arbiter, may be the next, and others may come between
    two of them."""

    stepping: bool = False

    def release(self, ctx: Context) -> None:
        self.act(ctx)

    def act(self, ctx: Context) -> None:
        if self.possible(ctx) and not self.stepping:
            self.stepping = True
            ctx.send(self.me, Next())

    def possible(self, ctx: Context) -> list[tuple[Rule, Ids]]:
        return [(rule, bit(each)) for rule, arbiters in self.rules(ctx) for each in members(arbiters)]

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Next):
            self.stepping = False
            possible = self.possible(ctx)
            rule, arbiter = possible[ctx.choose(len(possible))]
            rule(ctx, arbiter)
            self.act(ctx)
        else:
            CamposCarvalho.on_message(self, ctx, source, message)


class OneAnswerAtATime(ArbiterHost):
    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        (arbiter,) = self.arbiters
        _, due = arbiter.act()
        if isinstance(message, Next):
            arbiter, answer = arbiter.act()
            due = None
            assert answer is not None
            self.answer(ctx, arbiter.number, *answer)
        else:
            arbiter = arbiter.told(source, message.code)  # type: ignore[attr-defined]
        self.arbiters = (arbiter,)
        if arbiter.act()[1] and not due:
            ctx.send(self.me, Next())


def one_at_a_time(nodes: Iterable[Node]) -> list[Node]:
    """As they are at the start, when no rule applies."""
    return [
        OneRuleAtATime(node.me, node.arbiters, node.piggy_back, node.quorum, node.requests)
        if isinstance(node, CamposCarvalho)
        else OneAnswerAtATime.in_place_of(node)
        for node in nodes
    ]


@pytest.mark.parametrize(("seats", "states"), [(PAIR, 122), (CONCURRENT, 5_722)])
def test_with_every_rule_a_step_of_its_own_there_are_as_many_states_as_the_spec_found(seats: dict, states: int) -> None:
    result = check(model(one_at_a_time(Forks().seated(**seats))))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def test_so_the_triangle_has_148_638() -> None:
    nodes = one_at_a_time(Forks().seated(**TRIANGLE))
    result = check(Model(nodes=nodes, inputs={"acquire": None}, reductions=False), liveness=False)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, 148_638)


def test_as_guarded_commands_three_clients_of_one_arbiter_are_enough_for_the_deadlock_of_r14() -> None:
    """``forks/F2`` takes four nodes, since ours eat as soon as they can."""
    result = check(Model(nodes=one_at_a_time(seated(**CONCURRENT, arbiter=AsksStronglyOnce)), inputs={"acquire": None}))
    assert result.violation is not None
    assert result.violation.kind == "deadlock"
    assert check(Model(nodes=seated(**CONCURRENT, arbiter=AsksStronglyOnce))).verdict is Verdict.HOLDS
