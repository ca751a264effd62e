"""Maekawa 1985, broken: the ways in which a quorum algorithm deadlocks."""

from trinco.check.model import Model
from trinco.core.context import Context
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.permission.maekawa import Asked, Maekawa, among
from trinco.protocols.quorums.quorum_set import QuorumSet

PAIR = QuorumSet((0b11, 0b11))
"""Two processes that need each other's lock."""

FORKED = QuorumSet((0b111, 0b110, 0b110))
"""Processes 1 and 2 do not ask process 0, so it is not process 0 who tells them that it comes first."""


class NeverInquires(Maekawa):
    """Queues an earlier request without a word to whom it is locked for."""

    __slots__ = ()

    def inquire(self, ctx: Context, request: Asked) -> None:
        pass


class DisplacesInSilence(Maekawa):
    """Does not tell a request that it is first in the queue no longer."""

    __slots__ = ()

    def displace(self, ctx: Context, request: Asked) -> None:
        pass


EXHIBITS = (
    Exhibit(
        name="maekawa/no-inquire",
        title="Maekawa's algorithm in which locks are never asked back",
        printed="many lectures, which stop at LOCKED and RELEASE",
        lesson="Two processes that ask together each lock one member and wait for the other's. Timestamps do not help "
        "as long as nobody may be asked to give a lock back.",
        breaks="deadlock",
        model=lambda: Model(nodes=[NeverInquires.in_place_of(honest) for honest in among(PAIR)]),
        mended=lambda: Model(nodes=among(PAIR)),
    ),
    Exhibit(
        name="maekawa/displaced",
        title="Maekawa's algorithm as printed: who is overtaken in a queue is not told",
        printed="Maekawa 1985, as its rules are passed on; that it can deadlock as published, Sanders wrote in 1987",
        lesson="A member answers FAILED only to a request that is not the earliest when it arrives. One that was the "
        "earliest, and is then preceded by another, waits for a lock that it will not get next; not knowing that, it "
        "gives nothing back, and the one that precedes it waits for just that. It shows only where the later one does "
        "not ask the earlier one, who would tell it.",
        breaks="deadlock",
        model=lambda: Model(nodes=[DisplacesInSilence.in_place_of(honest) for honest in among(FORKED)]),
        mended=lambda: Model(nodes=among(FORKED)),
    ),
)
