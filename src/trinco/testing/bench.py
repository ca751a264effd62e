"""Where the conformance checks work: a store, owners with links of their own, and a clock that they can wait by."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from math import inf
from os import urandom
from time import sleep

from trinco.core.duration import in_words
from trinco.leases.claim import Claim
from trinco.leases.operation import Answer, Commit, Extend, Grade, Release, Request
from trinco.locks.caller import Caller, Unable
from trinco.stores.clock import boottime
from trinco.stores.store import Store

MARGIN = 0.05
"""Two clocks that count the same seconds, and what it takes to ask."""
TERM = 30.0
"""Longer than any check takes, unless the store is slow or cuts it to its ``t_max``."""
LIMIT = 10.0
"""How long to wait for what must happen."""


class TooSlow(Unable):
    """The lease that a check is about may have been over when it looked: it has shown nothing."""


class Bench:
    """A store under test. ``pass_time`` and ``clock``: how time passes for the store; ``exact``: whether it is ours to
    set, so that nothing but ``pass_time`` moves it. ``name``: a lock's name that nobody has used."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = boottime,
        pass_time: Callable[[float], None] = sleep,
        exact: bool = False,
        name: Callable[[], str] | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.pass_time = pass_time
        self.exact = exact
        self.name = name or _fresh_name
        self._callers: list[Caller] = []
        self._idle: list[Caller] = []

    def caller(self) -> Caller:
        """Somebody with a link of its own; ``close`` ends them all."""
        try:
            return self._idle.pop()
        except IndexError:
            caller = Caller(self.store, LIMIT)
            self._callers.append(caller)
            return caller

    def take_back(self, caller: Caller) -> None:
        """Nothing went wrong on its link, so the next need not connect: that takes long at a far store."""
        self._idle.append(caller)

    def close(self) -> None:
        self._idle.clear()
        while self._callers:
            self._callers.pop().close()

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_numbers = count(1)


def _fresh_name() -> str:
    return f"conformance/{urandom(6).hex()}/{next(_numbers)}"


def must(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


class Person:
    """One owner with a link of its own. Every ``attempt`` is a claim of its own. ``ends``: when the lease that it was
    granted first in this attempt may be over, by the bench's clock. ``leaves_something``: whether it may hold, or wait
    for, what it has not released."""

    def __init__(self, bench: Bench, lock: str, caller: Caller | None = None) -> None:
        self.bench = bench
        self.caller = bench.caller() if caller is None else caller
        self.lock = lock
        self.claim = self.caller.claim()
        self.ends = inf
        self.leaves_something = False

    def attempt(self) -> Claim:
        """A later attempt of the same owner."""
        self.claim = self.caller.claim()
        self.ends = inf
        return self.claim

    def ask(self, ttl: float = TERM, *, claim: Claim | None = None, **rest: object) -> Answer:
        request = Request(self.claim if claim is None else claim, ttl).but(**rest)
        began = self.bench.clock()
        left_something, self.leaves_something = self.leaves_something, True
        answer = self.caller.ask(self.lock, request)
        self.leaves_something = left_something or answer.grade.is_grant or "wait" in rest
        if answer.grade.is_grant and self.ends == inf:
            self.is_granted_since(began, ttl)
        return answer

    def is_granted_since(self, began: float, ttl: float = TERM) -> None:
        self.ends = began + min(ttl, self.bench.store.t_max) - self.caller.granularity

    def must_now(self, holds: bool, sentence: str) -> None:
        """What only has to hold while our lease runs: of what came after its end nobody is accused, and it shows
        nothing that this held."""
        if self.bench.clock() >= self.ends:
            term = in_words(min(TERM, self.bench.store.t_max))
            raise TooSlow(f"{self.bench.store.url}: its answers come when a lease of {term} may be over (see t_max)")
        must(holds, sentence)

    def queue(self, ticket: int, serial: int | None = None) -> Answer:
        """Ask, and wait in line where that is refused. Who waits can be rung at; with a serial, it can be handed it."""
        self.caller.link.expect_hints(self.claim.owner)
        return self.ask(ticket=ticket, wait=TERM, entry=b"%d entry" % ticket, serial=serial)

    def takes(self, sentence: str, **rest: object) -> Answer:
        answer = self.ask(**rest)  # type: ignore[arg-type]
        must(answer.grade is Grade.COMMITTED, sentence)
        return answer

    def commit(self, token: int, claim: Claim | None = None) -> Answer:
        return self.caller.ask(self.lock, Commit(self.claim if claim is None else claim, token, b"entry"))

    def extend(self, ttl: float = TERM, *, claim: Claim | None = None, renewal: int = 1) -> Answer:
        return self.caller.ask(self.lock, Extend(self.claim if claim is None else claim, ttl, renewal))

    def release(self, claim: Claim | None = None) -> Answer:
        answer = self.caller.ask(self.lock, Release(self.claim if claim is None else claim))
        if claim is None:
            self.leaves_something = False
        return answer

    def holds(self, claim: Claim | None = None) -> bool:
        return (self.claim if claim is None else claim) in self.caller.holders(self.lock)


@contextmanager
def people(bench: Bench, how_many: int = 2) -> "Iterator[tuple[Person, ...]]":
    """Owners who want the same lock, and leave nothing behind."""
    lock = bench.name()
    crowd = tuple(Person(bench, lock) for _ in range(how_many))
    try:
        yield crowd
    finally:
        for person in crowd:  # in turn: where a store is not atomic, one release could undo another
            if person.leaves_something:
                person.release()
    for person in crowd:
        bench.take_back(person.caller)
