"""What a store must do for those who wait: the part of the conformance suite that is about the line."""

from time import monotonic

from trinco.leases.operation import Grade, Yield
from trinco.stores.store import NO_DESCRIPTOR
from trinco.testing.bench import LIMIT, MARGIN, TERM, Bench, must, people


def whoever_yields_stays_in_line(bench: Bench) -> None:
    with people(bench, 3) as (ana, bruno, carla):
        ana.queue(7)
        must(ana.holds(), "it refused a lock that nobody holds")
        ana.caller.ask(ana.lock, Yield(ana.claim, 7, TERM, b"7 entry"))
        must(not ana.holds(), "it kept an entry that was yielded")
        ana.must_now(not carla.queue(9).grade.is_grant, "somebody with a larger ticket overtook the one who yielded")
        must(bruno.queue(3).grade.is_grant, "the one for whom a lock was yielded could not take it")
        bruno.release()
        must(ana.queue(7).grade.is_grant, "the one who yielded did not get the lock back")


def waiters_come_in_the_order_of_their_tickets(bench: Bench) -> None:
    with people(bench, 4) as (ana, late, early, passer_by):
        ana.takes("it refused a lock that nobody holds")
        ana.must_now(not late.queue(2).grade.is_grant, "it granted one lock to two owners")
        ana.must_now(not early.queue(1).grade.is_grant, "it granted one lock to two owners")
        ana.release()
        must(not passer_by.ask().grade.is_grant, "somebody without a ticket overtook those who wait")
        overtaking = late.queue(2)
        must(not overtaking.grade.is_grant, "a larger ticket overtook a smaller one")
        must(overtaking.smaller, "it does not say that somebody with a smaller ticket waits")
        must(early.queue(1).grade.is_grant, "the first in line was refused a lock that is free")
        early.release()
        must(late.queue(2).grade.is_grant, "the second in line was refused a lock that is free")


def whoever_gives_up_waiting_is_in_nobodys_way(bench: Bench) -> None:
    with people(bench, 3) as (ana, bruno, carla):
        ana.takes("it refused a lock that nobody holds")
        bruno.queue(1)
        bruno.release()
        ana.release()
        carla.takes("somebody who no longer waits was in the way")


def a_release_wakes_the_first_in_line(bench: Bench) -> None:
    with people(bench, 3) as (ana, late, early):
        ana.takes("it refused a lock that nobody holds")
        late.queue(2)
        early.queue(1)
        if early.caller.link.fileno() == NO_DESCRIPTOR:
            return  # it has no hints: those who wait poll
        early.caller.hints(0)
        ana.release()
        must(early.claim.owner in early.caller.hints(LIMIT), "a release did not wake the first in line")


def what_is_let_go_of_is_handed_over_to_the_first_in_line(bench: Bench) -> None:
    """For stores that do so. The term counts from then on, and the one who gets it must be able to tell when it ends:
    so the store says how much later that is than the end of its wait."""
    with people(bench, 3) as (ana, late, early):
        if not ana.caller.hands_over:
            return
        ana.takes("it refused a lock that nobody holds")
        late.queue(2, serial=6)
        began = monotonic()
        early.queue(1, serial=5)
        ana.release()
        handed = early.caller.handed_over(LIMIT)
        took = monotonic() - began
        must(handed is not None, "it did not hand a lock over to the first in line")
        assert handed is not None
        must((handed.claim, handed.serial) == (early.claim, 5), "it does not say what it hands over, and to whom")
        must(handed.answer.grade is Grade.COMMITTED, "it hands over what it does not grant")
        must(-MARGIN <= handed.beyond <= took + MARGIN, "it lies about how long what it hands over lasts")
        must(early.holds() and not late.ask().grade.is_grant, "it handed over a lock and gave it to somebody else")
        early.release()
        handed = late.caller.handed_over(LIMIT)
        must(handed is not None and handed.claim == late.claim, "it did not hand a lock over to the second in line")


def whoever_has_gone_is_handed_nothing(bench: Bench) -> None:
    with people(bench, 3) as (ana, first, second):
        if not ana.caller.hands_over:
            return
        ana.takes("it refused a lock that nobody holds")
        first.queue(1, serial=1)
        second.queue(2, serial=1)
        first.release()
        ana.release()
        must(second.caller.handed_over(LIMIT) is not None, "it did not hand a lock over to whoever was left in line")
        must(not first.holds(), "it handed a lock over to somebody who no longer waits")
