"""Robust k-mutual exclusion with one rule dropped each, to see that the checker, or a seed, notices."""

from msgspec.structs import replace

from trinco.core.ids import NOBODY, bit
from trinco.protocols.detection.hi_adsd import IAmAlive
from trinco.protocols.permission.robust_k import Reply, RobustK
from trinco.protocols.permission.robust_k_recovery import RecoveringRobustK
from trinco.protocols.permission.units import NONE, UnitHolder


class PermitsWhileInside(RobustK):
    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return self.timestamp > 0 and (self.timestamp, self.me) < (timestamp, source)


class IgnoresTimestamps(RobustK):
    """What it asks for later bears an older timestamp than what it has permitted."""

    __slots__ = ()

    def requested(self, ctx, source, request):
        clock = self.clock
        RobustK.requested(self, ctx, source, request)
        self.clock = clock


class WaitsForTheDead(RobustK):
    """Needs n - k permissions, whoever has crashed."""

    __slots__ = ()

    def permissions(self):
        return RobustK.permissions(self) - self.suspects.bit_count()


class CountsTheDead(RobustK):
    """A permission stays one after the crash of who gave it."""

    __slots__ = ()

    def permissions(self):
        return self.granted.bit_count()


class TakesAnyReply(RobustK):
    """Lets a reply to an earlier request permit the present one."""

    __slots__ = ()

    def permitted(self, ctx, source, reply):
        RobustK.permitted(self, ctx, source, Reply(self.timestamp))

    def ignores(self, message):
        return False


class ForgetsTheDeferred(RobustK):
    __slots__ = ()

    def release(self, ctx):
        self.deferred = (0,) * self.n


class LooksAwayFromCrashes(RobustK):
    """Notes a crash, and does not look whether it may enter now."""

    __slots__ = ()

    def crashed(self, ctx, dead):
        timestamp, self.timestamp = self.timestamp, 0
        RobustK.crashed(self, ctx, dead)
        self.timestamp = timestamp


class LeavesTheTreeAlone(RobustK):
    """The tree goes on waiting for the acknowledgement of one that has crashed."""

    __slots__ = ()

    def crashed(self, ctx, dead):
        self.enter_if_permitted(ctx)


class TakesNoReplyForAnAck(RobustK):
    """Where those who reply at once send no acknowledgement."""

    __slots__ = ()

    def permitted(self, ctx, source, reply):
        if reply.timestamp == self.timestamp:
            self.granted |= bit(source)
            self.enter_if_permitted(ctx)


# Units


class LeavesSilently(UnitHolder):
    __slots__ = ()

    def release(self, ctx):
        self.unit, self.told = NONE, (0,) * self.n


class TakesWhateverIsFirst(UnitHolder):
    __slots__ = ()

    def free_units(self):
        return range(self.units)


class BelievesTheLaterWord(UnitHolder):
    """Takes a unit for held whose holder's leaving has overtaken its reply."""

    __slots__ = ()

    def permitted(self, ctx, source, reply):
        if reply.timestamp == self.timestamp:
            self.granted &= ~bit(source)
        UnitHolder.permitted(self, ctx, source, reply)


class KeepsUnitsOfTheDead(UnitHolder):
    __slots__ = ()

    def free_units(self):
        return [unit for unit in range(self.units) if unit not in self.held]


class ChoosesAtTheSameTime(UnitHolder):
    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return False


class TellsNobodyItsUnit(UnitHolder):
    """Tells those who waited for it to choose that it holds nothing."""

    __slots__ = ()

    def reply_to_the_deferred(self, ctx):
        unit, self.unit = self.unit, NONE
        UnitHolder.reply_to_the_deferred(self, ctx)
        self.unit = unit


# Recovery


class AsksAtOnce(RecoveringRobustK):
    """Joins, and does not wait for the answers."""

    __slots__ = ()

    def on_restart(self, ctx, stored):
        RecoveringRobustK.on_restart(self, ctx, stored)
        self.no_longer_await(ctx, self.awaited)


class LearnsNoClock(RecoveringRobustK):
    """Waits for the answers, and keeps its own clock."""

    __slots__ = ()

    def answered(self, ctx, source, answer):
        RecoveringRobustK.answered(self, ctx, source, replace(answer, clock=0))


class TakesAnyAnswer(RecoveringRobustK):
    """Also one that was meant for an earlier incarnation."""

    __slots__ = ()

    def answered(self, ctx, source, answer):
        RecoveringRobustK.answered(self, ctx, source, replace(answer, joiner=self.incarnations[self.me]))


class WaitsForWhoJoins(RecoveringRobustK):
    """A request that waits is not permitted by who has come back."""

    __slots__ = ()

    def reborn(self, ctx, process):
        timestamp, self.timestamp = self.timestamp, 0
        RecoveringRobustK.reborn(self, ctx, process)
        self.timestamp, self.granted = timestamp, self.granted & ~bit(process)


class StaysSuspicious(RecoveringRobustK):
    """Goes on suspecting who has come back."""

    __slots__ = ()

    def reborn(self, ctx, process):
        suspected = self.suspects & bit(process)
        RecoveringRobustK.reborn(self, ctx, process)
        self.detector.suspects |= suspected


class BelievesOldHearsay(RecoveringRobustK):
    """Takes hearsay about an incarnation that is gone for news of the next."""

    __slots__ = ()

    def heard_of(self, ctx, source, answer):
        self.learn_incarnations(ctx, answer.incarnations)
        RecoveringRobustK.heard_of(self, ctx, source, replace(answer, incarnations=self.incarnations))


class LearnsIncarnationsFirstHand(RecoveringRobustK):
    """Only from a process itself, by its JOIN."""

    __slots__ = ()

    def heard_of(self, ctx, source, answer):
        known = zip(answer.incarnations, self.incarnations, strict=True)
        current = sum(bit(each) for each, (theirs, ours) in enumerate(known) if theirs == ours)
        RobustK.on_message(self, ctx, source, IAmAlive(answer.nonce, answer.suspects & current))


class FinishesTests(RecoveringRobustK):
    """Waits for the answer to a question that was put to the incarnation before."""

    __slots__ = ()

    def end_a_test_of(self, ctx, source):
        pass


class WantsAnAnswerFromJoiners(RecoveringRobustK):
    """Somebody else's JOIN is not taken for the answer to its own."""

    __slots__ = ()

    def joined(self, ctx, source, incarnation):
        awaited, self.awaited = self.awaited, NOBODY
        RecoveringRobustK.joined(self, ctx, source, incarnation)
        self.awaited = awaited
