from dataclasses import dataclass, field, replace

import pytest

from tests.sim.toys import ONE_INSIDE, events_of, known, times_of, toy
from trinco.core.errors import ContractBroken
from trinco.core.event import Kind
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.core.signed import Signed
from trinco.core.verify import verify
from trinco.protocols.permission.ricart_agrawala import CLAIMS, Ok, RicartAgrawala
from trinco.sim.faults import Crash, Restart
from trinco.sim.simulation import run
from trinco.sim.workload import Closed, Scripted

LIARS_WELCOME = replace(CLAIMS, byzantine=Formula("n"), crashes=Formula("n"), deadlock_free=False)


class Boaster(RicartAgrawala):
    """Believes itself inside whenever anybody speaks to it, and says OK to everything."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        ctx.grant()
        ctx.send(source, Ok())


class Mute(RicartAgrawala):
    """Never answers."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        pass


def with_liars(byzantine, **rest):
    return known("ricart-agrawala", 3, claims=LIARS_WELCOME, byzantine=byzantine, **rest)


def test_what_a_liar_believes_is_not_monitored():
    result = run(with_liars({2: Boaster}, workload=Closed(10)))
    assert events_of(result, Kind.GRANT, 2)
    assert result.violation is None


def test_a_liars_entries_are_not_counted():
    result = run(with_liars({2: Boaster}, workload=Closed(10)))
    assert result.metrics.entries == 10


def test_what_a_liar_does_to_honest_nodes_is_monitored():
    result = run(
        with_liars({2: Mute}, workload=Closed(10)).with_changes(claims=replace(LIARS_WELCOME, deadlock_free=True))
    )
    assert result.violation.property == "EveryoneServed"


def test_a_liar_is_not_asked_to_enter():
    result = run(with_liars({1: Mute, 2: Boaster}, workload=Closed(10)))
    assert {event.node for event in events_of(result, Kind.ACQUIRE)} == {0}


def test_the_trace_tells_the_class_of_a_liar():
    assert run(with_liars({2: Mute})).recording.header.roles == ("RicartAgrawala", "RicartAgrawala", "Mute")


def test_the_trace_of_a_run_with_a_liar_is_judged_as_the_run_was():
    recording = run(with_liars({2: Boaster}, workload=Closed(10))).recording
    assert verify(recording.header, list(recording.events()), LIARS_WELCOME).violation is None


def test_with_and_without_a_trace_a_liar_does_the_same():
    scenario = with_liars({2: Boaster}, workload=Closed(10))
    assert run(scenario).metrics.messages == run(scenario.with_changes(trace=False)).metrics.messages


def test_a_liar_can_crash_in_the_middle_of_a_multi_send():
    result = run(with_liars({2: Boaster}, workload=Closed(10), faults=(Crash(2, 0.0, after_sends=0),)))
    assert len(times_of(result, Kind.CRASH, 2)) == 1
    assert events_of(result, Kind.SEND, 2) == []


class Vote(Message, tag="vote"):
    signed: Signed


@dataclass(slots=True)
class Voter(Process):
    """Sends its signed yes to everybody and keeps what it is sent."""

    kept: frozenset[Signed] = frozenset()

    def acquire(self, ctx):
        ctx.grant()
        ctx.broadcast(Vote(ctx.sign("yes")), to=range(3))

    def on_message(self, ctx, source, message):
        if ctx.verify(message.signed):
            self.kept |= {message.signed}

    def release(self, ctx):
        pass


class Replayer(Voter):
    """Passes on what it was shown, and adds its own."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        Voter.on_message(self, ctx, source, message)
        ctx.broadcast(message, to=range(3))
        ctx.send(1, Vote(ctx.sign(("two", "faces"))))
        for signed in sorted(self.kept, key=repr):
            ctx.send(1, Vote(signed))


class Forger(Voter):
    """Signs in the name of node 1."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        ctx.send(0, Vote(Signed(1, "no")))


class BroadcastForger(Voter):
    __slots__ = ()

    def on_message(self, ctx, source, message):
        ctx.broadcast(Vote(Signed(1, "no")), to=range(3))


class SilentForger(Voter):
    """Keeps a forgery for later."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        self.kept |= {Signed(1, "no")}


class StoringForger(Voter):
    """Stores the forgery before it sends it, to claim that it was there."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        ctx.store(Signed(1, "no"))
        ctx.send(0, Vote(Signed(1, "no")))


class SelfForger(Voter):
    """Passes a forgery to itself, to have been shown it."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        ctx.send(ctx.me, Vote(Signed(1, "no")))


@dataclass(slots=True)
class Archivist(Voter):
    """A liar that stores what it was shown and passes it on after a restart: all of that is allowed."""

    def on_message(self, ctx, source, message):
        ctx.store(message.signed)

    def on_restart(self, ctx, stored):
        ctx.send(1, Vote(stored))


def voters(n):
    return [Voter() for _ in range(n)]


def election(liar, **rest):
    """Node 0 votes; node 2 lies."""
    return toy(voters, 3, byzantine={2: liar}, workload=Scripted(((0, 0.0, 20.0),)), **rest)


@pytest.mark.parametrize("liar", [Forger, BroadcastForger, SilentForger, StoringForger, SelfForger])
@pytest.mark.parametrize("trace", [True, False], ids=["traced", "quiet"])
def test_a_liar_that_forges_breaks_the_contract(liar, trace):
    with pytest.raises(ContractBroken, match="p2 forged"):
        run(election(liar, trace=trace))


def test_a_liar_may_replay_and_sign_for_itself():
    result = run(election(Replayer, until=10.0))
    votes = {event.message.signed for event in events_of(result, Kind.RECEIVE, 1)}
    assert votes == {Signed(0, "yes"), Signed(2, ("two", "faces"))}


def test_a_liar_may_pass_on_after_a_restart_what_it_had_stored():
    result = run(election(Archivist, faults=(Crash(2, 5.0), Restart(2, 6.0))))
    late = [event.message.signed for event in events_of(result, Kind.RECEIVE, 1) if event.at > 5.0]
    assert late == [Signed(0, "yes")]


@dataclass(slots=True)
class Book:
    pages: int = 1


@dataclass(slots=True)
class Reader(Process):
    """Has a part."""

    book: Book = field(default_factory=Book)

    def acquire(self, ctx):
        ctx.grant()
        ctx.broadcast(Vote(ctx.sign("read")), to=range(2))

    def on_message(self, ctx, source, message):
        self.book.pages += 1

    def release(self, ctx):
        pass


class LyingReader(Reader):
    __slots__ = ()

    def on_message(self, ctx, source, message):
        self.book.pages += 100


def readers(n):
    return [Reader() for _ in range(n)]


def test_a_liar_has_the_parts_of_the_honest_class():
    result = run(toy(readers, 2, byzantine={1: LyingReader}, workload=Scripted(((0, 0.0, 5.0),))))
    assert [event.state["book"] for event in result.recording.events() if event.node == 1 and event.state] == [
        (Book, 1),
        (Book, 101),
    ]


@dataclass(slots=True)
class Spy(Voter):
    """What a liar knows is a field that the honest class does not have."""

    heard: int = 0

    def on_message(self, ctx, source, message):
        self.heard += 1


def test_a_liar_may_have_fields_of_its_own():
    result = run(election(Spy))
    assert [event.state["heard"] for event in result.recording.events() if "heard" in event.state] == [0, 1]


def test_an_honest_node_beside_a_liar_is_still_watched():
    scenario = toy(voters, 3, ONE_INSIDE, byzantine={2: Spy}, workload=Scripted(((0, 0.0, 5.0), (1, 1.0, 5.0))))
    assert run(scenario).violation.property == "AtMostInside"
