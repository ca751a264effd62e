"""The ways to arrange n processes into quorums, by name."""

from collections.abc import Callable, Mapping

from trinco.core.errors import UsageError
from trinco.protocols.quorums.grids import grid
from trinco.protocols.quorums.padding import plane_quorums
from trinco.protocols.quorums.quorum_set import QuorumSet

ARRANGEMENTS: Mapping[str, Callable[[int], QuorumSet]] = {"grid": grid, "plane": plane_quorums}


def arrangement(name: str) -> Callable[[int], QuorumSet]:
    if name not in ARRANGEMENTS:
        raise UsageError(f"there are no quorums '{name}'; there are: {', '.join(ARRANGEMENTS)}")
    return ARRANGEMENTS[name]
