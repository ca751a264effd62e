"""What a server knows of the turns that are going on, and who is in whose way."""

import msgspec

from trinco.core.instant import Instant
from trinco.core.signed import Signed
from trinco.protocols.bakery.automaton import State


class Turn(msgspec.Struct, frozen=True):
    client: int
    sid: int
    signed: Signed
    """The client's own signature under it."""
    state: State = State.E1
    owed: int | None = None
    """GET is not answered yet: this ticket has to be certified first."""
    number: int = 0
    waits: tuple[tuple[int, int], ...] = ()
    """(client, sid): who was there before its ticket was set, and is still in the way. Nobody is ever added."""
    heartbeat: int = 0
    """The highest received; 0 before LISTEN."""
    renewable: Instant | None = None
    """Until when the vote is renewed."""
    dead: bool = False
    """Suspected: never again a vote."""
    transferable: bool = True
    """Whether it is answered with signatures."""

    def in_words(self) -> str:
        """For timelines."""
        ticket = f" with {self.number}" if self.number else ""
        behind = " behind " + ", ".join(f"p{client}" for client, _ in self.waits) if self.waits else ""
        return f"p{self.client} #{self.sid} {self.state.value}{ticket}{behind}{', suspected' if self.dead else ''}"

    @property
    def rank(self) -> tuple[int, int]:
        return self.number, self.client

    def gives_way_to(self, other: "Turn") -> bool:
        """Whether it will certainly enter after the other: its ticket is set, and comes later."""
        return self.state is not State.E1 and self.rank > other.rank


Turns = tuple[Turn, ...]
"""By client; each has at most one."""


def turn_of(turns: Turns, client: int) -> Turn | None:
    return next((turn for turn in turns if turn.client == client), None)


def with_turn(turns: Turns, turn: Turn) -> Turns:
    return tuple(sorted((*without(turns, turn.client), turn), key=lambda each: each.client))


def without(turns: Turns, client: int) -> Turns:
    return tuple(turn for turn in turns if turn.client != client)


def in_the_way(turns: Turns, turn: Turn) -> tuple[tuple[int, int], ...]:
    """Of those that a turn waits for, who has neither left nor set a later ticket."""
    there = {(other.client, other.sid): other for other in turns}
    return tuple(each for each in turn.waits if each in there and not there[each].gives_way_to(turn))
