"""Small instances of the Byzantine bakery for the exhibits: no time runs out, and a run may begin in mid-turn."""

import math
from collections.abc import Sequence
from typing import Any

from trinco.check.view import View
from trinco.core.signed import Signed
from trinco.protocols.bakery.certificates import Begun, Highest, Suspicion
from trinco.protocols.bakery.messages import GetReply, Set, Suspect
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.system import Bakery
from trinco.protocols.bakery.turns import Turn

LOCK = Bakery.lock


def untimed(
    n: int, *, f: int, servers: int | None = None, silence: float = math.inf, choosing: float = math.inf
) -> Sequence[Any]:
    """Clients, then the servers. No time ever runs out, but for those that are given."""
    never = math.inf
    return Bakery(f, servers, hold=never, extension=never, silence=silence, choosing=choosing, cap=never)(n)


def begun(client: int, sid: int) -> Signed:
    return Signed(client, Begun(LOCK, client, sid))


def suspicion(server: int, *, of: int) -> Suspect:
    """That a server suspects a client in its first turn."""
    return Suspect(Signed(server, Suspicion(LOCK, of, 1)), begun(of, 1), asks=True)


def give_turns(server: Server, *turns: Turn) -> None:
    """Let the run begin when these are going on, by client."""
    server.turns = turns
    server.last = tuple((turn.client, turn.sid) for turn in turns)


def first_ticket(client: int, servers: tuple[int, ...]) -> Set:
    """SET 1, justified by these."""
    return Set(1, 1, tuple(GetReply(1, Signed(each, Highest(LOCK, client, 1, 0)), ()) for each in servers))


def a_correct_client_is_banned(view: View) -> bool:
    """a server takes a correct client for a liar, for good"""
    return any(node.banned for node in map(view.node, view.ids) if isinstance(node, Server))
