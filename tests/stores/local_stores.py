"""What the tests of the SQLite store and of the memory store share."""

import select
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from trinco.leases.accesses import Apply, Read, Versioned
from trinco.leases.claim import Claim
from trinco.leases.item import Item, Limits
from trinco.leases.operation import NEXT, Answer, Commit, Extend, Grade, Operation, Release, Request, Yield
from trinco.leases.owner import owner_name
from trinco.stores.clock import wall_microseconds
from trinco.stores.sqlite import SQLiteLink, SQLiteStore
from trinco.stores.store import Hint, Link

Connect = Callable[..., SQLiteLink]
HOUR = 3_600_000_000
ADDRESS = "a" * 20


class Clock:
    """Stands still until a test moves it."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@contextmanager
def links_to(file: Path) -> Iterator[Connect]:
    """Links to a file, by address and options of the store; closed at the end."""
    with ExitStack() as links:
        yield lambda address="1" * 20, **options: links.enter_context(
            closing(SQLiteStore(str(file), **options).connect(address))
        )


def claim(name: str = "ana", address: str = ADDRESS, handle: int = 1, attempt: int = 1) -> Claim:
    return Claim(owner_name(name, address, handle), attempt)


def apply(link: Link, operation: Operation, resource: str = "nightly") -> Any:
    return link.send(resource, Apply(operation))


def take(link: Link, who: Claim, ttl: float = 30, **rest: Any) -> Any:
    return apply(link, Request(who, ttl, token=NEXT, **rest))


def stand_in_line(link: Link, who: Claim, ticket: int, wait: float = 10) -> Any:
    return take(link, who, ticket=ticket, wait=wait)


def read(link: Link, resource: str = "nightly") -> Item:
    versioned = link.send(resource, Read())
    assert isinstance(versioned, Versioned)
    return versioned.item


def hints_within(link: Link, seconds: float) -> list[str]:
    """The owners of the hints that arrive, as soon as there are any."""
    ready, _, _ = select.select([link.fileno()], [], [], seconds)
    return [each.owner for each in link.receive() if isinstance(each, Hint)] if ready else []


def is_granted(answer: Any) -> bool:
    return isinstance(answer, Answer) and answer.grade is Grade.COMMITTED


def random_operation(random: Random, token: int) -> Operation:
    """By one of four owners that all can be rung at."""
    who = claim(random.choice("abcd"), attempt=random.choice((1, 1, 1, 2)))
    ticket = random.choice((None, 1, 2, 3, 2**52 - 1))
    wait = random.choice((0, 0.5, 5.0))
    entry = random.choice((None, b"", b"entry", bytes(range(256)) * 16))
    guess = random.choice((None, NEXT, NEXT, token - 1, token + 1, token + 1_000_000, token + 2 * HOUR))
    kind = random.randrange(8)
    if kind < 4:
        return Request(who, random.choice((0.5, 3, 1e9)), ticket, wait, guess, entry)
    if kind == 4:
        return Commit(who, random.choice((token, token + 7)), entry)
    if kind == 5:
        return Extend(who, random.choice((0.5, 3, 1e9)), 1)
    if kind == 6:
        return Yield(who, ticket, wait, entry)
    return Release(who)


def assert_answers_like_an_item(links: list[Link], clock: Clock, t_max: float, seed: int, steps: int) -> None:
    """Random operations through the links of one store, beside a plain item that lives through the same. The time of
    day stands still meanwhile: tokens are counted from it."""
    today = wall_microseconds()
    with patch("trinco.stores.wake.wall_microseconds", lambda: today):
        _assert_answers_like_an_item(links, clock, Limits(t_max, 64, today + HOUR, today), seed, steps)


def _assert_answers_like_an_item(links: list[Link], clock: Clock, limits: Limits, seed: int, steps: int) -> None:
    random = Random(seed)
    for link in links:
        link.expect_hints("")
    assert is_granted(take(links[0], claim()))
    apply(links[0], Release(claim()))
    item = read(links[0])
    for step in range(steps):
        clock.now += random.choice((0, 0.1, 0.5, 1.0, 7.0))
        operation = random_operation(random, item.token)
        item, expected, _ = item.apply(operation, clock.now, limits)
        link = random.choice(links)
        assert apply(link, operation) == expected, (seed, step, operation)
        assert read(link) == item.counted_from(clock.now), (seed, step, operation)
