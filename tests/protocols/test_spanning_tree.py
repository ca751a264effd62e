"""The spanning tree: "todos os nodos recebem uma única cópia da mensagem enviada inicialmente".

Here is its shape, and what it does call by call; ``test_spanning_tree_checked`` goes through every run of small
systems, ``test_spanning_tree_runs`` through many of larger ones.
"""

from collections import deque
from collections.abc import Iterator
from itertools import combinations
from math import ceil, log2

import pytest

from tests.mutants import spanning_tree as mutants
from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Codec, Message, describe
from trinco.protocols.broadcast.spanning_tree import Ack, Rules, SpanningTree, Tree


class Word(Message, tag="word"):
    number: int


WORD = Word(1)


class Post(Context):
    """Keeps what a node sends until it is fetched. Timers are not looked at."""

    __slots__ = ("me", "sent")

    def __init__(self, me: int) -> None:
        self.me = me
        self.sent: list[tuple[int, Message]] = []

    def send(self, to: int, message: Message) -> None:
        self.sent.append((to, message))

    def set_timer(self, name: str, delay: float) -> None: ...

    def cancel_timer(self, name: str) -> None: ...


Copy = tuple[int, int, int, int]
"""(in which hop, by whom, to whom, with how many hops left)"""


def copies(n: int, root: int, faulty: Ids = NOBODY, kind: type[SpanningTree] = SpanningTree) -> list[Copy]:
    """How a message goes down the tree when all know who is faulty. The dead say nothing."""
    trees, told = [kind(me, n) for me in range(n)], []
    post = Post(root)
    trees[root].broadcast(post, WORD, faulty)
    under_way = deque((1, root, to, message) for to, message in post.sent)
    while under_way:
        hop, source, to, message = under_way.popleft()
        assert not faulty & bit(to), "a message was sent to somebody whom all suspect"
        if isinstance(message, Ack):
            trees[to].on_message(Post(to), source, message, faulty)
            continue
        assert isinstance(message, Tree)
        told.append((hop, source, to, message.hops))
        post = Post(to)
        assert trees[to].on_message(post, source, message, faulty) == WORD
        under_way += [(hop + 1, to, receiver, passed_on) for receiver, passed_on in post.sent]
    assert (trees[root].awaited, trees[root].body) == (NOBODY, None), "the root knows that all have heard it"
    return told


def fault_sets(n: int, root: int) -> Iterator[Ids]:
    others = [node for node in range(n) if node != root]
    return (sum(map(bit, dead)) for count in range(n) for dead in combinations(others, count))


@pytest.mark.parametrize("n", range(2, 11))
def test_every_living_process_gets_exactly_one_copy_whoever_is_known_to_be_dead(n: int) -> None:
    for root in range(n):
        for faulty in fault_sets(n, root):
            told = copies(n, root, faulty)
            assert sorted(to for _, _, to, _ in told) == [x for x in range(n) if x != root and not faulty & bit(x)]
            assert max((hop for hop, *_ in told), default=0) <= ceil(log2(n))


def test_sixteen_processes_are_told_by_fifteen_messages_in_four_hops() -> None:
    told = copies(16, 0)
    assert (len(told), max(hop for hop, *_ in told)) == (15, 4)


def test_figure_3a_n0_sends_to_the_head_of_each_cluster_and_n4_and_n2_and_n6_pass_it_on() -> None:
    sent = [(source, to, hops) for _, source, to, hops in copies(8, 0)]
    assert sent == [(0, 1, 1), (0, 2, 2), (0, 4, 3), (2, 3, 1), (4, 6, 2), (4, 5, 1), (6, 7, 1)]


def test_figure_3b_without_n4_n6_takes_its_place_and_n5_has_nobody_to_pass_it_on_to() -> None:
    sent = [(source, to, hops) for _, source, to, hops in copies(8, 0, bit(4))]
    assert sent == [(0, 1, 1), (0, 2, 2), (0, 6, 3), (2, 3, 1), (6, 5, 2), (6, 7, 1)]


def test_passing_on_only_if_hops_are_above_one_after_counting_down_as_the_prose_says_does_not_reach_all() -> None:
    with pytest.raises(AssertionError, match="the root knows that all have heard it"):
        copies(8, 0, kind=mutants.CountsDownFirst)


def test_whoever_is_alone_tells_nobody_and_waits_for_nobody() -> None:
    for n, suspects in ((1, NOBODY), (4, 0b1110)):
        tree, post = SpanningTree(0, n), Post(0)
        for number in (1, 2):
            tree.broadcast(post, Word(number), suspects)
        assert (post.sent, tree.queue, tree.body) == ([], (), None)


def test_when_the_last_to_be_waited_for_crashes_the_rest_of_the_queue_goes_to_nobody() -> None:
    tree, post = SpanningTree(0, 2), Post(0)
    for number in (1, 2, 3):
        tree.broadcast(post, Word(number), NOBODY)
    tree.forget(post, 1, bit(1))
    assert post.sent == [(1, Tree(0, 1, 1, Word(1)))]
    assert (tree.queue, tree.body, tree.number) == ((), None, 3)


def test_messages_travel_with_what_they_carry_and_say_what_they_are() -> None:
    codec: Codec[Message] = Codec(Tree[Word], Ack)
    message = Tree(3, 1, 2, WORD)
    assert codec.decode(codec.encode(message)) == message
    assert describe(message) == "tree(p3's 1, hops 2: word(1))"


def test_an_answer_to_an_older_word_is_no_acknowledgement_of_the_present_one() -> None:
    tree, post = SpanningTree(0, 2, Rules(owner_answers=True)), Post(0)
    for number in (1, 2):
        tree.broadcast(post, Word(number), NOBODY)
    for number in (1, 1):
        tree.answered(post, 1, Word(number), NOBODY)
    assert (tree.body, list(members(tree.awaited))) == (Word(2), [1])
    tree.answered(post, 1, Word(2), NOBODY)
    assert tree.body is None
