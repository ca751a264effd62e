"""Chandy-Misra, broken."""

from trinco.check.model import Model
from trinco.core.ids import bit
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.permission.chandy_misra import Philosopher, Philosophers


def everybody_with_the_left_fork(n: int) -> list[Philosopher]:
    """A round table where each has the fork on its left: everybody ought to give way to the next, all the way round."""
    seats = [(bit((me - 1) % n), bit((me + 1) % n)) for me in range(n)]
    return [Philosopher(left | right, forks=left, dirty=left, request_tokens=right) for left, right in seats]


EXHIBITS = (
    Exhibit(
        name="chandy-misra/cyclic-start",
        title="dining philosophers who all start with their left fork",
        printed="nowhere; the deadlock of Dijkstra's round table, which dirty forks do not cure by themselves",
        lesson="A hungry philosopher gives its dirty fork away, gets a clean one from the other side and keeps that. "
        "If precedence runs in a circle at the start, all of them end up with one clean fork and wait for the other.",
        breaks="deadlock",
        model=lambda: Model(nodes=everybody_with_the_left_fork(3)),
        mended=lambda: Model(nodes=Philosophers("ring")(3)),
    ),
)
