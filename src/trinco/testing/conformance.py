"""What every store must do, whatever kind it is. One suite for the stores of Trinco and for yours.

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self):
            return MyStore("my://...")

Each check is a plain function of a ``Bench`` that raises ``AssertionError`` with a sentence; ``trinco doctor`` runs
some of them on the stores of its user. They go through the base algorithm of the store, as locks do, so a store that
only lists, puts and deletes must pass as well as one that runs code. A store that leaves something out (tokens, hints)
passes what is about that.
"""

from collections.abc import Callable

from trinco.core.duration import in_words
from trinco.leases.accesses import CommitTransaction, CompareAndSet, Versioned, Write, Written
from trinco.leases.bases.catalogue import RUN_CODE
from trinco.leases.operation import NEXT, Grade
from trinco.stores.clock import wall_microseconds
from trinco.stores.store import Store
from trinco.testing.at_once import at_once
from trinco.testing.bench import MARGIN, TERM, Bench, Person, TooSlow, must, people
from trinco.testing.conformance_of_waiting import (
    a_release_wakes_the_first_in_line,
    waiters_come_in_the_order_of_their_tickets,
    what_is_let_go_of_is_handed_over_to_the_first_in_line,
    whoever_gives_up_waiting_is_in_nobodys_way,
    whoever_has_gone_is_handed_nothing,
    whoever_yields_stays_in_line,
)

SHORT = 0.3
"""A term that is waited for."""
STEP = 0.01
LATE = 3.0
"""How long after its end a lease may still be in the way: a machine can be busy."""
AHEAD = 60_000_000
"""A minute in microseconds: a token that is larger than all that a store can know of a new lock."""
LONGER = 4
RACERS = 16
ROUNDS = 20
FEWEST_ROUNDS = 3
RACE_SECONDS = 5.0
"""After so long, a race that was run a few times is enough: at a far store each round takes seconds."""
ENTRY_BYTES = 4096
ODD_NAMES = (
    "with space", "a/b", "../up", ".hidden", "A", "a", "%61", "a%2Fb", "quote'\"`", "back\\slash", "{braces}:[1]",
    "*?", "nação", "e\u0301", "\u00e9", "☃ 雪 🔒", "$(id); --", "CON", "~", "-n", "x" * 150, "🔒" * 50,
)  # fmt: skip


# The checks


def a_lock_that_is_held_is_not_granted_to_another(bench: Bench) -> None:
    with people(bench) as (ana, bruno):
        ana.takes("it refused a lock that nobody holds")
        ana.must_now(not bruno.ask().grade.is_grant, "it granted one lock to two owners")
        ana.must_now(ana.holds(), "the request of another made it lose an entry that it had confirmed")
        must(not bruno.holds(), "it keeps an entry of somebody whom it refused")


def a_lock_that_was_released_is_granted_to_the_next(bench: Bench) -> None:
    with people(bench) as (ana, bruno):
        ana.takes("it refused a lock that nobody holds")
        ana.must_now(ana.release().grade is Grade.DONE, "it did not release a lease for its holder")
        must(not ana.holds(), "it kept an entry whose removal it had confirmed")
        bruno.takes("it refused a lock that was released")


def an_old_attempt_changes_nothing(bench: Bench) -> None:
    with people(bench) as (ana, bruno):
        old = ana.claim
        ana.takes("it refused a lock that nobody holds")
        ana.release()
        ana.attempt()
        ana.takes("it refused a later attempt of an owner")
        ana.must_now(not ana.ask(claim=old).grade.is_grant, "it granted a lock to an attempt that was given up")
        ana.must_now(not ana.extend(claim=old).grade.is_grant, "it extended a lease for an attempt that was given up")
        ana.must_now(ana.holds(), "an old attempt replaced a later one")
        ana.must_now(not bruno.ask().grade.is_grant, "an old attempt made it lose a later one")


def a_write_that_compares_with_what_is_gone_fails(bench: Bench) -> None:
    """Stale compare-and-set: whoever lost the lock can change nothing about it."""
    with people(bench) as (ana, bruno):
        ana.takes("it refused a lock that nobody holds")
        ana.release()
        must(not ana.extend().remaining > 0, "it says that somebody holds a lock that was released")
        bruno.takes("it refused a lock that was released")
        stale = ana.extend()
        must(not stale.grade.is_grant, "it extended a lease for somebody who does not hold it")
        bruno.must_now(stale.remaining > 0, "it does not tell somebody who lost a lock that another holds it")
        if ana.caller.fences:
            must(not ana.commit(2**52).grade.is_grant, "it took a token from somebody who does not hold the lock")
        bruno.must_now(bruno.holds(), "a stale write made it lose an entry that it had confirmed")
        must(not ana.holds(), "a stale write brought a released entry back")


def a_write_of_what_has_changed_since_fails(bench: Bench) -> None:
    """The precondition itself, where the store's accesses have one: two read, both write, the second must fail."""
    if bench.store.kind not in WRITES:
        return
    with people(bench) as (ana, bruno):
        read, others_read = (person.caller.begin(person.lock) for person in (ana, bruno))
        write = WRITES[bench.store.kind]
        must(write(ana, read), "it refused a write to what had not changed")
        must(not write(bruno, others_read), "it ignores preconditions: it took a write to what had changed since")


def _compare_and_set(person: Person, read: Versioned) -> bool:
    item = read.item.but(token=read.item.token + 1)
    return _took_effect(person.caller.access(person.lock, CompareAndSet(read.version, item)))


def _commit_transaction(person: Person, read: Versioned) -> bool:
    person.caller.access(person.lock, Write(read.item.but(token=read.item.token + 1)))
    return _took_effect(person.caller.access(person.lock, CommitTransaction()))


def _took_effect(reply: object) -> bool:
    must(isinstance(reply, Written), "its answer to a write makes no sense")
    return isinstance(reply, Written) and reply.ok


WRITES = {"conditional": _compare_and_set, "transactional": _commit_transaction}


def a_release_by_another_removes_nothing(bench: Bench) -> None:
    """Stale delete."""
    with people(bench) as (ana, bruno):
        ana.takes("it refused a lock that nobody holds")
        bruno.release()
        ana.must_now(ana.holds(), "it let somebody remove an entry of another")
        ana.must_now(not bruno.ask().grade.is_grant, "after a release by a stranger it granted one lock to two owners")


def a_release_is_of_exactly_one_claim(bench: Bench) -> None:
    with people(bench) as (ana, bruno):
        old = ana.claim
        ana.takes("it refused a lock that nobody holds")
        ana.release()
        ana.attempt()
        ana.takes("it refused a later attempt of an owner")
        ana.release(old)
        ana.must_now(ana.holds(), "the release of an old attempt removed a later one")
        ana.must_now(not bruno.ask().grade.is_grant, "after a late release it granted one lock to two owners")


def asking_again_changes_nothing(bench: Bench) -> None:
    """Whoever does not know what became of a request asks again: the same claim is the same lease."""
    with people(bench) as (ana, bruno):
        token = NEXT if ana.caller.counts else None
        first = ana.takes("it refused a lock that nobody holds", token=token, entry=b"entry")
        again = ana.takes("it refused the same claim that it had granted", token=token, entry=b"entry")
        ana.must_now(first.token == again.token, "it gave one grant two tokens")
        ana.must_now(not bruno.ask().grade.is_grant, "it granted one lock to two owners")
        ana.must_now(ana.release().grade is Grade.DONE, "it did not release a lease for its holder")
        must(ana.release().grade in (Grade.DONE, Grade.GONE), "a second release of the same claim went wrong")
        bruno.takes("it refused a lock that was released")


def a_lease_ends_with_its_term(bench: Bench) -> None:
    """Whoever asks for the first time when the term is over has not seen it last: then with a longer one."""
    with people(bench) as (ana, bruno):
        term = _short(ana)
        while not _was_seen_to_last(bench, ana, bruno, term):
            if term == bench.store.t_max:
                raise TooSlow(f"{bench.store.url}: it says nothing within its longest lease, {in_words(term)}")
            term = min(LONGER * term, bench.store.t_max)
            bruno.release()
            ana.attempt()
            bruno.attempt()


def _was_seen_to_last(bench: Bench, ana: Person, bruno: Person, term: float) -> bool:
    began = bench.clock()
    ana.takes("it refused a lock that nobody holds", ttl=term)
    over = bench.clock() + term
    refusals = 0
    asked = bench.clock()
    while not bruno.ask().grade.is_grant:
        must(asked < over + LATE, "it did not let go of a lease whose term is over")
        refusals += 1
        bench.pass_time(STEP)
        asked = bench.clock()
    lasted = bench.clock() - began + ana.caller.granularity
    must(lasted >= term * (1 - 1e-3), f"it let go of a lease of {term:g} s after {lasted:.3g} s")
    must(not ana.extend().grade.is_grant, "it extended a lease that is over")
    return refusals > 0


def the_end_of_a_term_belongs_to_the_others(bench: Bench) -> None:
    """Of a clock that a test can set only: the boundary itself."""
    if not bench.exact:
        return
    with people(bench) as (ana, bruno):
        ana.takes("it refused a lock that nobody holds", ttl=2.0)
        bench.pass_time(1.75)
        must(not bruno.ask().grade.is_grant, "it let go of a lease before its end")
        bench.pass_time(0.25)
        bruno.takes("a lease that ends now could not be taken")


def only_a_live_lease_is_extended(bench: Bench) -> None:
    with people(bench) as (ana, bruno):
        term = _short(ana)
        ana.takes("it refused a lock that nobody holds", ttl=TERM)
        extended = ana.extend(TERM)
        ana.must_now(extended.grade is Grade.COMMITTED, "it did not extend a lease that is live")
        must(extended.remaining > min(TERM, bench.store.t_max) / 2, "an extended lease has hardly any time left")
        ana.must_now(not bruno.ask().grade.is_grant, "it granted one lock to two owners")
        ana.release()
        ana.attempt()
        ana.takes("it refused a lock that was released", ttl=term)
        bench.pass_time(term + ana.caller.granularity + MARGIN)
        must(not ana.extend().grade.is_grant, "it extended a lease that is over")
        bruno.takes("a lease that is over, and that somebody tried to extend, could not be taken")


def tokens_only_rise(bench: Bench) -> None:
    with people(bench) as (ana, bruno):
        if not ana.caller.fences:
            return
        guess = wall_microseconds() + AHEAD
        first = ana.takes("it refused a token larger than all that it knows", token=guess, entry=b"entry")
        must(first.token == guess, "it committed another token than it was given")
        must(not ana.commit(guess - 1).grade.is_grant, "it committed a smaller token after a larger one")
        ana.must_now(ana.commit(guess + 5).grade is Grade.COMMITTED, "it refused a larger token to the holder")
        ana.release()
        must(ana.caller.look(ana.lock).token >= guess + 5, "a release made it forget a token")
        late = bruno.ask(token=guess + 5, entry=b"entry")
        must(late.grade is not Grade.COMMITTED, "it committed one token twice")
        bruno.release()
        bruno.attempt()
        bruno.takes("it refused a token larger than all that it knows", token=guess + 6, entry=b"entry")


def a_store_that_counts_never_counts_back(bench: Bench) -> None:
    with people(bench) as (ana, bruno):
        if not ana.caller.counts:
            return
        before = 0
        for person in (ana, bruno, ana):
            person.attempt()
            answer = person.takes("it refused a lock that nobody holds", token=NEXT)
            must(answer.token is not None and answer.token > before, "its next token is no larger than the last")
            before = answer.token or 0
            person.release()


def names_are_told_apart(bench: Bench) -> None:
    """Each is held by somebody else, at the same time."""
    caller = bench.caller()
    folder = bench.name()
    held = [Person(bench, f"{folder}/{name}"[:200], caller) for name in ODD_NAMES]
    try:
        for person in held:
            person.takes(f"the lock '{person.lock}' is taken for another")
        for person in held:
            person.must_now(person.holds(), f"the lock '{person.lock}' was lost to another name")
        known = list(caller.link.names(folder))
        must(known == sorted(person.lock for person in held), "its list of names is not what is there, in order")
    finally:
        for person in held:
            person.release()


def a_large_entry_comes_back_whole(bench: Bench) -> None:
    entry = bytes(range(256)) * (ENTRY_BYTES // 256)
    with people(bench) as (ana, bruno):
        ana.takes("it refused a lock with an entry of 4 KiB", entry=entry)
        holder = bruno.caller.look(ana.lock).holder
        ana.must_now(holder is not None and holder.entry == entry, "an entry of 4 KiB did not come back as it was")


def one_wins_a_race(bench: Bench) -> None:
    """All ask at the same moment, each on a link of its own; exactly one is granted, round after round. Where stores
    only list, all may step back, and nobody wins: two never do."""
    rounds_with_one_winner(bench)


def rounds_with_one_winner(bench: Bench) -> int:
    """How many rounds there were: fewer where they take long."""
    lock = bench.name()
    crowd = [Person(bench, lock)]  # the first makes what a store needs to begin with
    crowd += at_once(range(1, RACERS), lambda _: Person(bench, lock))
    end = bench.clock() + RACE_SECONDS
    for number in range(1, ROUNDS + 1):
        _race(bench, crowd, number)
        if bench.clock() >= end and number >= FEWEST_ROUNDS:
            break
    for person in crowd:
        bench.take_back(person.caller)
    return number


def _race(bench: Bench, crowd: list[Person], number: int) -> None:
    for person in crowd:
        person.attempt()
    answers = at_once(crowd, Person.ask)
    winners = [person for person, answer in zip(crowd, answers, strict=True) if answer.grade.is_grant]
    try:
        for winner in winners:
            lie = f"{len(winners)} of {RACERS} won one lock at the same moment (round {number})"
            winner.must_now(len(winners) < 2, lie)
    finally:
        _give_back(crowd, winners)
    must(bool(winners) or bench.store.kind not in RUN_CODE, "nobody won a race for a free lock")


def _give_back(crowd: list[Person], winners: list[Person]) -> None:
    """The winner first: at a store that is not atomic, a loser's release could undo the winner's, and the lock that is
    still held would have one winner for ever after, its holder."""
    for winner in winners:
        winner.release()
    at_once(crowd, Person.release)


def _short(person: Person) -> float:
    """A term that is much longer than the store's clock is coarse."""
    person.caller.look(person.lock)
    return min(max(SHORT, 4 * person.caller.granularity), person.bench.store.t_max)


CHECKS: "tuple[Callable[[Bench], None], ...]" = (
    a_lock_that_is_held_is_not_granted_to_another,
    a_lock_that_was_released_is_granted_to_the_next,
    an_old_attempt_changes_nothing,
    a_write_that_compares_with_what_is_gone_fails,
    a_write_of_what_has_changed_since_fails,
    a_release_by_another_removes_nothing,
    a_release_is_of_exactly_one_claim,
    asking_again_changes_nothing,
    a_lease_ends_with_its_term,
    the_end_of_a_term_belongs_to_the_others,
    only_a_live_lease_is_extended,
    tokens_only_rise,
    a_store_that_counts_never_counts_back,
    whoever_yields_stays_in_line,
    waiters_come_in_the_order_of_their_tickets,
    whoever_gives_up_waiting_is_in_nobodys_way,
    a_release_wakes_the_first_in_line,
    what_is_let_go_of_is_handed_over_to_the_first_in_line,
    whoever_has_gone_is_handed_nothing,
    names_are_told_apart,
    a_large_entry_comes_back_whole,
    one_wins_a_race,
)


class StoreConformance:
    """Subclass it and give it a fixture ``store``; each check is a test. Override ``bench`` for a store whose clock
    your tests set."""

    def bench(self, store: Store) -> Bench:
        return Bench(store)


def _as_test(check: Callable[[Bench], None]) -> "Callable[[StoreConformance, Store], None]":
    def test(self: StoreConformance, store: Store) -> None:
        with self.bench(store) as bench:
            check(bench)

    test.__name__ = f"test_{check.__name__}"
    test.__qualname__ = f"StoreConformance.{test.__name__}"
    test.__doc__ = check.__doc__
    return test


for _check in CHECKS:
    setattr(StoreConformance, f"test_{_check.__name__}", _as_test(_check))
