"""What a paper promises, as data: checked on every run, printed by the docs, compared by the lab."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from trinco.core.formula import Formula


class Network(Enum):
    """The weakest network on which the promises are made. Later members allow more misbehaviour."""

    FIFO = "reliable, first in first out per channel"
    UNORDERED = "reliable, in any order"
    LOSSY = "may lose, duplicate and reorder"

    @property
    def misbehaviour(self) -> int:
        return list(Network).index(self)


class Fairness(Enum):
    NONE = "none: a process may starve"
    FIFO_BY_CLOCK = "by logical clock, ties by id"
    FIFO_BY_ARRIVAL = "first come, first served at the coordinator"
    ROUND_ROBIN = "in the order of the ring"
    BY_QUEUE = "in the order of a queue that travels with the token"
    BY_TURNS = "neighbours take turns"
    IN_TOTAL_ORDER = "in the one order in which all servers deliver the requests"
    BY_TICKET = "by ticket, which a process takes when it is first refused"


class Payer(Enum):
    """Whose entry a message is part of, where it is not simply for its receiver, who waits for it."""

    SENDER = "the sender's own, whoever receives it"
    CAUSE = "that of the message which made its sender pass it on"


@dataclass(frozen=True, kw_only=True)
class Claims:
    """``letters``: what n, m, k and f stand for is given where a formula is evaluated, never here."""

    paper: str
    year: int | None = None
    network: Network
    messages_per_entry: Formula
    paid_by: Mapping[str, Payer] = field(default_factory=dict)
    """Kinds of messages that are not simply for whoever waits for them: see ``core.cost``."""
    amortised: bool = False
    """Whether messages per entry are meant on average: entries share messages, and a single one may seem dear."""
    delay: Formula
    """From asking to entering when nobody else asks, in message times, messages to several counted as parallel."""
    fairness: Fairness
    k: Formula = Formula("1")
    crashes: Formula = Formula("0")
    byzantine: Formula = Formula("0")
    bypass: Formula | None = None
    """How often others may enter between one process' asking and its entering, at most."""
    deadlock_free: bool = True
    starvation_free: bool = True
    fencing: bool = False
    """Whether a grant carries a token that never falls."""
    timed: bool = False
    """Whether nodes read a clock. The checker then lets time pass."""
    elects: bool = False
    """An election: nobody enters, and what is said of an entry is meant of an election."""
    roles: Mapping[str, Formula] = field(default_factory=dict)
    """How many nodes have each role, in the order of their ids."""
    liars: Mapping[str, Formula] = field(default_factory=dict)
    """Of some roles, how many may lie: where ``byzantine``, of all together, does not say it."""

    def places(self, role: str, **values: float) -> range:
        """The ids of the nodes that have a role."""
        sizes = [int(size.high(**values)) for size in self.roles.values()]
        position = list(self.roles).index(role)
        start = sum(sizes[:position])
        return range(start, start + sizes[position])

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for ``--json``."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}


def letters_of(build: Any, n: int) -> dict[str, float]:
    """What the letters of a system's claims stand for. What builds one of several roles says so by ``letters(n)``."""
    roles: dict[str, float] = build.letters(n) if hasattr(build, "letters") else {}
    return {"n": n, **roles}


def _plain(value: Any) -> Any:
    if isinstance(value, Formula):
        return value.text
    if isinstance(value, Enum):
        return value.name.lower().replace("_", "-")
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value
