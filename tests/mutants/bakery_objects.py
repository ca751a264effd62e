"""The objects of the Byzantine bakery, Bracha's broadcast and algorithm 2, with one rule broken each."""

from dataclasses import replace

from trinco.protocols.bakery.active_set import CollectReplica
from trinco.protocols.bakery.algorithm2 import Client, Line
from trinco.protocols.bakery.register import RegisterClient, RegisterReplica, Value, Written
from trinco.protocols.broadcast.bracha import Bracha


class KeepsTheLastToCome(RegisterReplica):
    """Does not look at timestamps."""

    __slots__ = ()

    def keep(self, ctx, source, signed):
        others = (each for each in self.records if each.body.register != signed.body.register)
        self.records = (*others, signed)


class LooksAtNoSignature(RegisterClient):
    """Takes the greatest timestamp, whoever signed it."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Value) and message.record is not None and self.record is not None:
            self.record = max(self.record, message.record.body, key=lambda record: record.timestamp)
        return RegisterClient.on_message(self, ctx, source, message)


class TakesLateAnswers(RegisterClient):
    """Counts an answer for what is going on, whatever it was an answer to."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Written):
            message = Written(self.access)
        return RegisterClient.on_message(self, ctx, source, message)


class TakesTheLastToCome(CollectReplica):
    """Does not look at a client's own numbers."""

    __slots__ = ()

    def _note(self, source, access, *, joined):
        others = tuple(each for each in self.latest if each[0] != source)
        self.latest = tuple(sorted((*others, (source, access, joined))))


class IgnoresChoosing(Client):
    """Without line 13."""

    __slots__ = ()

    def must_wait(self, me, value):
        return self.line is Line.WAIT_FOR_TURN and Client.must_wait(self, me, value)


class NeverSaysItChooses(Client):
    """Without line 7."""

    __slots__ = ()

    def _on_members(self, ctx, members):
        if self.line is Line.JOIN:
            self._get_set(ctx, Line.GET_SET)
        else:
            Client._on_members(self, ctx, members)


class BreaksNoTies(Client):
    """Line 14 with numbers only."""

    __slots__ = ()

    def must_wait(self, me, value):
        if self.line is Line.WAIT_FOR_TURN:
            return value != 0 and value < self.number
        return Client.must_wait(self, me, value)


class WaitsForTies(Client):
    """Line 14 with numbers only, the other way."""

    __slots__ = ()

    def must_wait(self, me, value):
        if self.line is Line.WAIT_FOR_TURN:
            return value != 0 and value <= self.number
        return Client.must_wait(self, me, value)


class LooksOnce(Client):
    """Without line 11: waits for those who were there when it chose."""

    __slots__ = ()

    def _get_set(self, ctx, line):
        if line is Line.GET_SET_AGAIN:
            self._wait_for_the_next(ctx)
        else:
            Client._get_set(self, ctx, line)

    def _read_numbers(self, ctx):
        everybody = self.others
        Client._read_numbers(self, ctx)
        self.others = everybody


class NeverResets(Client):
    """Without line 17."""

    __slots__ = ()

    def release(self, ctx):
        self.number, self.line = 0, Line.LEAVE
        self.active.leave(ctx)


class NeverJoins(Client):
    """Without line 6: members that it does not know of it never waits for, nor they for it."""

    __slots__ = ()

    def _enter(self, ctx):
        self._write(ctx, Line.CHOOSE, "choosing", 1)


class ReadyAfterFewEchoes(Bracha):
    """Says READY after f+1 echoes."""

    __slots__ = ()

    def is_ready(self, instance, body):
        return sum(each == body for _, each in instance.echoes) > self.f or Bracha.is_ready(self, instance, body)


class ReadyByEchoesOnly(Bracha):
    """Does not say READY because others do."""

    __slots__ = ()

    def is_ready(self, instance, body):
        return Bracha.is_ready(self, replace(instance, readies=()), body)


class DeliversEarly(Bracha):
    """Delivers after f+1 READYs."""

    __slots__ = ()

    def is_accepted(self, instance, body):
        return sum(each == body for _, each in instance.readies) > self.f
