"""What a server believes of a client, as a table: the paper's malicious-behaviour detector (DCM) and its figure 3.

A client is at rest (R), has asked for tickets and is choosing its own (E1), has set it and waits (E2), or was granted
the section (C). What the table lacks no correct client does, whatever the network and the other servers do: whoever
does it is Byzantine, for good. So the table must have all that a slow link can bring about: a client may leave in E1
(it gives up) and in E2 (others let it in, and their servers were quicker), a turn that was removed may go on talking,
what belongs to a finished turn may come late, clocks may differ, and who comes back from a crash leaves a turn that
never arrived. The paper's own edges are GET, SET, GO and EXIT from C.
"""

from collections.abc import Iterator, Mapping
from enum import Enum


class State(Enum):
    R = "at rest"
    E1 = "choosing"
    E2 = "waiting"
    C = "granted"
    BYZ = "Byzantine"


class Move(Enum):
    GET = "GET of a new turn"
    SET = "SET, justified"
    LISTEN = "LISTEN"
    EXIT = "EXIT"
    GO = "the server sends GO"
    REMOVAL = "a removal certificate"
    STALE = "SET, justified long ago"
    DOUBT = "SET, justified by what servers vouch for, but not here"
    REPEAT = "the same once more"
    LATE = "anything of a removed turn"
    OVER = "LISTEN of a finished turn, EXIT of none"
    FAULT = "anything else"


R, E1, E2, C, BYZ = State

TABLE: Mapping[tuple[State, Move], State] = {
    (R, Move.GET): E1,
    (E1, Move.SET): E2,
    (E2, Move.GO): C,
    (E1, Move.LISTEN): E1,
    (E2, Move.LISTEN): E2,
    (C, Move.LISTEN): C,
    (E1, Move.EXIT): R,
    (E2, Move.EXIT): R,
    (C, Move.EXIT): R,
    (E1, Move.REMOVAL): R,
    (E2, Move.REMOVAL): R,
    (C, Move.REMOVAL): R,
    (E1, Move.STALE): E1,
    (E1, Move.DOUBT): E1,
    (E1, Move.REPEAT): E1,
    (E2, Move.REPEAT): E2,
    (C, Move.REPEAT): C,
    **{(state, move): state for state in (R, E1, E2, C) for move in (Move.LATE, Move.OVER)},
}


def after(state: State, move: Move) -> State:
    return TABLE.get((state, move), BYZ)


def edges() -> Iterator[tuple[State, Move, State]]:
    """Figure 3: everything that changes where a client stands, and the one way into ``byz``."""
    for (state, move), reached in TABLE.items():
        if reached is not state:
            yield state, move, reached
    for state in (R, E1, E2, C):
        yield state, Move.FAULT, BYZ
