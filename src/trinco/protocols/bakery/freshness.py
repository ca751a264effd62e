"""What is too old to be believed, so that servers can forget clients that are gone.

A server has to remember the last turn that a client began, or a liar could begin it again and use its justification
once more, for a ticket that is low by now. In an open system there is no end of clients to remember. So a server writes
the time into each answer to GET, a justification is good for half of H, and a client that was not heard of for H is
forgotten: what it could still show is too old for everybody.

This takes clocks that agree within H/4. It matters to nobody's safety: mutual exclusion between correct clients never
rests on a liar's ticket. A client picks answers that were given at about the same time, so that a server whose clock is
wrong, or who says so, cannot make its ticket look old.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from trinco.core.context import Context
from trinco.protocols.bakery.messages import GetReply

MICROSECONDS = 1_000_000


def time_of_issue(ctx: Context, expiry: float) -> int:
    """Where nothing is ever forgotten, time does not matter, and no clock is looked at."""
    return ctx.wall_clock() if expiry < math.inf else 0


def is_fresh(ctx: Context, justification: Iterable[GetReply], expiry: float) -> bool:
    if expiry == math.inf:
        return True
    now, limit = ctx.wall_clock(), expiry / 2 * MICROSECONDS
    return all(abs(now - _issued(reply)) <= limit for reply in justification)


def given_together(replies: Sequence[GetReply], quorum: int, expiry: float) -> tuple[GetReply, ...] | None:
    """So many of these answers, none of them much older than another; None if there are not yet enough."""
    by_time = sorted(replies, key=_issued)
    for first, last in zip(by_time, by_time[quorum - 1 :], strict=False):
        if _issued(last) - _issued(first) <= expiry / 4 * MICROSECONDS:
            start = by_time.index(first)
            return tuple(sorted(by_time[start : start + quorum], key=lambda reply: reply.highest.signer))
    return None


def _issued(reply: GetReply) -> Any:
    return reply.highest.body.issued
