"""Whom each process must ask: one quorum per process, any two of which meet."""

from collections.abc import Iterable, Sequence

from trinco.core.errors import UsageError
from trinco.core.ids import NOBODY, Ids, bit, members


class QuorumSet(tuple[Ids, ...]):
    """``quorums[i]`` is S_i, the quorum of process i. Made only if process i is in S_i and every two quorums share a
    member: that member is the arbiter that keeps the two processes apart."""

    __slots__ = ()

    def __new__(cls, quorums: Iterable[Ids]) -> "QuorumSet":
        made = super().__new__(cls, quorums)
        for me, quorum in enumerate(made):
            if not quorum & bit(me):
                raise UsageError(f"process {me} must be in its own quorum {_shown(quorum)}")
            if quorum >> len(made):
                raise UsageError(f"the quorum {_shown(quorum)} has members that are none of the {len(made)} processes")
        everybody, asking = bit(len(made)) - 1, _asking(made)
        for one, first in enumerate(made):
            apart = everybody & ~_met(first, asking)
            if apart:
                other = next(members(apart))
                raise UsageError(
                    f"the quorums {_shown(first)} of process {one} and {_shown(made[other])} of {other} do not meet"
                )
        return made


def _asking(quorums: Sequence[Ids]) -> list[Ids]:
    """Who asks each process: quick also for thousands, where a look at all pairs is not."""
    asking = [NOBODY] * len(quorums)
    for process, quorum in enumerate(quorums):
        for member in members(quorum):
            asking[member] |= bit(process)
    return asking


def _met(quorum: Ids, asking: list[Ids]) -> Ids:
    """Whose quorums share a member with this one."""
    met = NOBODY
    for member in members(quorum):
        met |= asking[member]
    return met


def _shown(quorum: Ids) -> str:
    return f"{{{', '.join(map(str, members(quorum)))}}}"
