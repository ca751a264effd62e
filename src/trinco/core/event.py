"""One thing that happened at one node: the line of a trace, and what monitors observe.

In memory an event is a plain tuple-like struct; ``core.trace`` writes it as a line of NDJSON and reads it back.
"""

from enum import StrEnum
from typing import Any

import msgspec


class Kind(StrEnum):
    """The first group are steps, each one run of a handler; the second are effects of a step, the third faults."""

    START = "start"
    ACQUIRE = "acquire"
    RELEASE = "release"
    INPUT = "input"
    RECEIVE = "receive"
    TIMER = "timer"
    RESTART = "restart"

    SEND = "send"
    GRANT = "grant"
    RENEW = "renew"
    REFUSE = "refuse"
    LOST = "lost"
    ELECTED = "elected"

    EXPIRE = "expire"
    TICK = "tick"
    DROP = "drop"
    CRASH = "crash"
    PAUSE = "pause"
    RESUME = "resume"

    __hash__ = str.__hash__


STEPS = frozenset({Kind.START, Kind.ACQUIRE, Kind.RELEASE, Kind.INPUT, Kind.RECEIVE, Kind.TIMER, Kind.RESTART})


def kind_of_input(name: str) -> Kind:
    """What it is called in a trace when the environment calls this input of a process."""
    return {"acquire": Kind.ACQUIRE, "release": Kind.RELEASE}.get(name, Kind.INPUT)


class Event(msgspec.Struct, omit_defaults=True):
    """``cause`` is the event that made this one happen, as (node, how many events that node had by then): for a
    receive its send, for an effect its step. ``clock`` is the vector clock, whose own entry counts the node's events.
    """

    at: float
    node: int
    kind: Kind
    peer: int | None = None
    message: Any = None
    note: str | None = None
    token: Any = None
    cause: tuple[int, int] | None = None
    clock: tuple[int, ...] = ()
    state: dict[str, Any] = {}
