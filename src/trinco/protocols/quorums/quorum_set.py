"""Whom each process must ask: one quorum per process, any two of which meet."""

from collections.abc import Iterable
from itertools import combinations

from trinco.core.errors import UsageError
from trinco.core.ids import Ids, bit, members


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
        for (one, first), (other, second) in combinations(enumerate(made), 2):
            if not first & second:
                raise UsageError(
                    f"the quorums {_shown(first)} of process {one} and {_shown(second)} of {other} do not meet"
                )
        return made


def _shown(quorum: Ids) -> str:
    return f"{{{', '.join(map(str, members(quorum)))}}}"
