"""Dissemination quorums (Malkhi & Reiter 1998): any two meet in a server that does not lie.

The paper takes 2f+1 of n >= 3f+1 servers, which is right for n = 3f+1 only: of five servers with f=1, {0, 1, 4} and
{2, 3, 4} meet in nobody but 4, and 4 may lie. Two sets of q meet in 2q - n servers, so 2q - n >= f+1 is what it takes.
"""

from trinco.core.errors import UsageError


def quorum(n: int, f: int) -> int:
    """How many of n servers, of which f may lie, decide."""
    if f < 0 or n < 3 * f + 1:
        raise UsageError(f"{n} servers cannot outvote {f} that lie: it takes at least {3 * max(f, 0) + 1}")
    return (n + f + 2) // 2
