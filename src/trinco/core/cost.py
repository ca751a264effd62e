"""What each entry costs in messages, from a trace.

A message is charged to an entry, so that a paper's "messages per entry" can be checked for the worst entry and not only
on average. Three rules, in this order: what a process sends when it asks, or what its paper counts for its sender
(``Claims.paid_by``: Lamport's release to somebody who waits), is for its own entry; what is sent to a process that
waits is for that process' entry (the answers, however late), unless it was only passed on; anything else is for the
entry of the event that caused it (a release, and what follows from it). Messages to oneself are free.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from trinco.core.claims import Claims, Payer
from trinco.core.event import STEPS, Event, Kind
from trinco.core.message import kind_of

_NOBODY_ELSE: Mapping[str, Payer] = {}


def messages_per_entry(events: Iterable[Event], paid_by: Mapping[str, Payer] = _NOBODY_ELSE) -> list[int]:
    """The cost of every entry that was begun, in the order of asking."""
    costs: list[int] = []
    current: dict[int, int] = {}
    waiting: set[int] = set()
    step_entry: dict[int, int | None] = {}
    """Per node: the entry that its present step is part of."""
    asking: dict[int, bool] = {}
    sent_for: dict[tuple[int, int], int | None] = {}
    counts: Counter[int] = Counter()
    for event in events:
        node = event.node
        counts[node] += 1
        if event.kind in STEPS:
            asking[node] = event.kind is Kind.ACQUIRE
            if event.kind is Kind.ACQUIRE:
                current[node] = len(costs)
                costs.append(0)
                waiting.add(node)
            received = event.kind is Kind.RECEIVE and event.cause is not None
            step_entry[node] = sent_for.get(event.cause) if received and event.cause else current.get(node)
        elif event.kind is Kind.SEND and event.peer is not None:
            payer = paid_by.get(kind_of(event.message))
            if payer is Payer.SENDER:
                entry = current.get(node)
            elif payer is Payer.CAUSE or asking.get(node, False) or event.peer not in waiting:
                entry = step_entry.get(node)
            else:
                entry = current[event.peer]
            sent_for[node, counts[node]] = entry
            if entry is not None and event.peer != node:
                costs[entry] += 1
        elif event.kind in (Kind.GRANT, Kind.REFUSE, Kind.CRASH):
            waiting.discard(node)
    return costs


def beyond_claim(mean: float, worst: float | None, claims: Claims, **letters: float) -> str | None:
    """Why the costs of a whole, undisturbed run are not what the paper claims, or None. An exact claim must be met on
    average too; of a range only the upper end can be exceeded, since entries may share a message. Without a trace the
    worst entry is not known; where the claim is amortised it does not matter."""
    claim = claims.messages_per_entry
    low, high = claim.low(**letters), claim.high(**letters)
    if worst is not None and worst > high and not claims.amortised:
        return f"one entry took {worst} messages, {claim} = {high:g} are claimed"
    if mean > high or (low == high and mean != low):
        return f"an entry took {mean:g} messages on average, {claim} = {high:g} are claimed"
    return None
