"""The active set: who has joined and not left is in it; who reads it comes to an end."""

from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import ClassVar

import pytest

from tests.mutants import bakery_objects as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.context import WAITING, Context
from trinco.core.event import Event, Kind
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Codec, Message
from trinco.core.monitor import Monitor
from trinco.core.node import Node, Process
from trinco.lab.exhibits.bakery_objects import AsPrinted
from trinco.protocols.bakery.active_set import (
    AckAdd,
    AckRemove,
    Add,
    Awaited,
    Collect,
    CollectReplica,
    Data,
    ListenedReplica,
    Listener,
    ReadComplete,
    ReadSet,
    Remove,
)
from trinco.protocols.bakery.quorums import quorum


class Ear(Context):
    """Keeps what is sent."""

    __slots__ = ("me", "sent")

    def __init__(self, me: int) -> None:
        self.me = me
        self.sent: list[tuple[int, Message]] = []

    def send(self, to: int, message: Message) -> None:
        self.sent.append((to, message))


# A server


@pytest.mark.parametrize("replica", [ListenedReplica(), CollectReplica()], ids=["listener", "collect"])
def test_a_client_adds_and_removes_nobody_but_itself(replica: ListenedReplica | CollectReplica) -> None:
    """ "The reception of ADD and REMOVE includes or removes only who sent them"."""
    ear = Ear(0)
    for source, message in ((4, Add(1)), (5, Add(1)), (4, Remove(2)), (6, Remove(1))):
        replica.on_message(ear, source, message)
    assert replica.members == bit(5)
    assert ear.sent == [(4, AckAdd(1)), (5, AckAdd(1)), (4, AckRemove(2)), (6, AckRemove(1))]


def test_a_listener_is_sent_the_set_and_every_change_until_it_says_that_it_is_done() -> None:
    replica, ear = ListenedReplica(), Ear(0)
    replica.on_message(ear, 7, ReadSet(1))
    replica.on_message(ear, 4, Add(1))
    replica.on_message(ear, 4, Remove(2))
    replica.on_message(ear, 7, ReadComplete(1))
    replica.on_message(ear, 5, Add(1))
    assert [message for to, message in ear.sent if to == 7] == [Data(1, NOBODY), Data(1, bit(4)), Data(1, NOBODY)]
    assert replica.listeners == ()


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_listener_that_never_says_so_is_sent_t_sets_and_told_which_is_the_last(limit: int) -> None:
    """ "Servers notify each client in L at most T times; then it is removed from this set"."""
    replica, ear = ListenedReplica(limit), Ear(0)
    replica.on_message(ear, 7, ReadSet(1))
    for turn in range(10):
        replica.on_message(ear, 4, Add(turn))
    told = [message.last for to, message in ear.sent if isinstance(message, Data)]
    assert told == [False] * (limit - 1) + [True]
    assert replica.listeners == ()


def test_a_server_that_goes_by_the_clients_numbers_needs_no_order() -> None:
    words: list[Message] = [Add(1), Remove(2), Add(3)]
    for order in permutations(words):
        replica = CollectReplica()
        for word in order:
            replica.on_message(Ear(0), 4, word)
        assert replica.members == bit(4)


# A reader


def read(kind: type[Collect], *answers: tuple[int, Ids]) -> tuple[Ids | None, list[tuple[int, Message]]]:
    """What a client of four servers makes of these sets, (by whom, what), and what it then sends."""
    client, ear = kind(4, 3), Ear(9)
    client.get_set(ear)
    ear.sent.clear()
    found = [client.on_message(ear, source, Data(1, members)) for source, members in answers]
    return found[-1], ear.sent


def test_a_listener_returns_the_first_set_that_three_of_four_servers_have_shown_and_says_so() -> None:
    """Line 13: "until there is an S that appears in at least 2f+1 R_s"."""
    found, sent = read(Listener, (0, 1), (1, 3), (1, 1), (2, 2), (2, 3), (0, 3))
    assert found == 3
    assert sent == [(server, ReadComplete(1)) for server in range(4)]


def test_a_listener_is_not_convinced_by_one_server_that_says_the_same_again_and_again() -> None:
    found, sent = read(Listener, (0, 1), (0, 1), (0, 1), (1, 1))
    assert (found, sent) == (None, [])


def test_a_listener_to_whom_no_more_is_sent_takes_the_union() -> None:
    client, ear = Listener(4, 3), Ear(9)
    client.get_set(ear)
    answers = [(0, Data(1, 1)), (1, Data(1, 2, last=True)), (2, Data(1, 4))]
    assert [client.on_message(ear, source, data) for source, data in answers] == [None, None, 7]
    assert client == Listener(4, 3, access=1), "nothing of the read is left"


def test_collect_returns_the_union_of_three_of_four_at_once() -> None:
    assert read(Collect, (0, 1), (1, 3), (2, 8)) == (11, [])


@pytest.mark.parametrize("kind", [Collect, Listener])
def test_answers_to_an_earlier_read_of_clients_or_without_sense_do_not_count(kind: type[Collect]) -> None:
    client, ear = kind(4, 3), Ear(9)
    client.get_set(ear)
    for server in range(3):
        client.on_message(ear, server, Data(1, 1))
    client.get_set(ear)
    stray = [(3, Data(1, 1)), (7, Data(2, 1)), (8, Data(2, 1)), (0, Data(2, -1)), (1, AckAdd(2)), (2, AckRemove(2))]
    assert [client.on_message(ear, source, message) for source, message in stray] == [None] * 6
    assert client.answered == NOBODY


def test_the_union_of_a_quorum_misses_nobody_whom_a_quorum_has_heard_whichever_server_lies() -> None:
    q = quorum(4, 1)
    for joined, asked in product(combinations(range(4), q), repeat=2):
        for liar in range(4):
            answers = [(server, bit(5) if server in joined and server != liar else NOBODY) for server in asked]
            assert read(Collect, *answers)[0] == bit(5)


# In the checker


@dataclass(slots=True)
class Server(Node):
    active: CollectReplica | ListenedReplica

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.active.on_message(ctx, source, message)


class Mute(Server):
    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        pass


@dataclass(slots=True)
class Member(Process):
    """Inside while it is in the set for certain: it has joined, and not begun to leave."""

    active: Collect

    def acquire(self, ctx: Context) -> None:
        if self.active.awaited is Awaited.NOTHING:
            self.active.join(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        is_over = self.active.on_message(ctx, source, message) is not None
        if is_over and isinstance(message, AckAdd):
            ctx.grant()
        elif is_over and ctx.phase is WAITING:
            self.active.join(ctx)

    def release(self, ctx: Context) -> None:
        self.active.leave(ctx)


class Returning(Member):
    """Joins, leaves, and joins again before it is inside; and stays in the set."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if self.active.on_message(ctx, source, message) is not None:
            match self.active.access:
                case 1:
                    self.active.leave(ctx)
                case 2:
                    self.active.join(ctx)
                case _:
                    ctx.grant()

    def release(self, ctx: Context) -> None:
        pass


@dataclass(slots=True)
class Reader(Process):
    """Inside when it has read."""

    active: Collect

    def acquire(self, ctx: Context) -> None:
        self.active.get_set(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        members = self.active.on_message(ctx, source, message)
        if members is not None:
            ctx.grant(members)

    def release(self, ctx: Context) -> None:
        pass


@dataclass(slots=True)
class NobodyIsMissed(Monitor):
    """Who was a member when a read began, and still is when it ends, is in it."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.ACQUIRE, Kind.GRANT, Kind.RELEASE})
    member: int
    inside: bool = False
    expected: bool = False

    def observe(self, event: Event) -> str | None:
        if event.node == self.member:
            self.inside = event.kind is Kind.GRANT
            self.expected &= self.inside
        elif event.kind is Kind.ACQUIRE:
            self.expected = self.inside
        elif event.kind is Kind.GRANT and self.expected and not event.token & bit(self.member):
            return f"p{self.member} was a member all the time, and was missed"
        return None


def model(
    servers: list[Server],
    f: int,
    kind: type[Collect],
    rounds: int = 1,
    network: Network = Network.FIFO,
    member: type[Member] = Member,
) -> Model:
    """A member that comes and goes, and a reader."""
    n = len(servers)
    clients: list[Process] = [member(kind(n, quorum(n, f))), Reader(kind(n, quorum(n, f)))]
    return Model(
        nodes=[*servers, *clients],
        k=2,
        network=network,
        inputs={"acquire": rounds},
        byzantine=frozenset(me for me, server in enumerate(servers) if isinstance(server, Mute)),
        reductions=False,
        monitors=[NobodyIsMissed(n)],
    )


def listened(count: int, limit: int) -> list[Server]:
    return [Server(ListenedReplica(limit)) for _ in range(count)]


def collected(count: int, replica: type[CollectReplica] = CollectReplica) -> list[Server]:
    return [Server(replica()) for _ in range(count)]


HOLDS = {
    "collect, one of four mute": (model([*collected(3), Mute(CollectReplica())], 1, Collect), 28_086),
    "collect, unordered": (model(collected(2), 0, Collect, 2, Network.UNORDERED), 2_039),
    "listener, T=1": (model(listened(2, 1), 0, Listener, 2), 3_096),
    "listener, T=3": (model(listened(2, 3), 0, Listener, 2), 49_181),
    "listener, one of four mute": (model([*listened(3, 2), Mute(ListenedReplica())], 1, Listener), 183_648),
}


@pytest.mark.parametrize(("sound", "states"), HOLDS.values(), ids=HOLDS.keys())
def test_nobody_is_missed_and_every_operation_ends(sound: Model, states: int) -> None:
    result = check(sound)
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def test_the_printed_listener_hangs_when_t_sets_were_not_alike() -> None:
    result = check(model(listened(2, 1), 0, AsPrinted))
    assert result.violation is not None
    assert result.violation.kind == "deadlock"


def returning(servers: list[Server], kind: type[Collect]) -> Model:
    return model(servers, 0, kind, network=Network.UNORDERED, member=Returning)


BROKEN = {
    "printed servers, a network that reorders": returning(listened(3, 1), Listener),
    "collect without numbers": returning(collected(3, mutants.TakesTheLastToCome), Collect),
}


def test_with_numbers_nobody_is_missed_in_any_order() -> None:
    result = check(returning(collected(3), Collect), liveness=False)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, 193_004)


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_without_order_or_numbers_a_late_remove_takes_away_who_has_joined_again(broken: Model) -> None:
    result = check(broken, liveness=False)
    assert result.violation is not None
    assert result.violation.text == "p3 was a member all the time, and was missed"


def test_all_messages_have_a_form_for_the_wire() -> None:
    codec: Codec[Message] = Codec(Add, AckAdd, Remove, AckRemove, ReadSet, Data, ReadComplete)
    for message in (Add(1), AckAdd(1), Remove(1), AckRemove(1), ReadSet(1), Data(1, 6, last=True), ReadComplete(1)):
        assert codec.decode(codec.encode(message)) == message
