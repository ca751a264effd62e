"""The library of Byzantine strategies of the bakery, by name."""

from collections.abc import Mapping

from trinco.core.node import Node
from trinco.protocols.bakery import lying_clients, lying_servers
from trinco.protocols.bakery.client import Client
from trinco.protocols.bakery.collusion import PAIRS
from trinco.protocols.bakery.server import Server

SERVERS: Mapping[str, type[Server]] = {
    "mute": lying_servers.Mute,
    "grant-all": lying_servers.GrantAll,
    "any": lying_servers.AnyOf,
    "equivocate": lying_servers.Equivocate,
    "replay": lying_servers.Replay,
    "inflate": lying_servers.Inflate,
    "lie-active": lying_servers.LieActive,
    "delay": lying_servers.Delay,
    "drop-by-client": lying_servers.DropByClient,
    "suspect-all": lying_servers.SuspectAll,
    "malformed": lying_servers.Malformed,
}
CLIENTS: Mapping[str, type[Client]] = {
    "skip-exit": lying_clients.SkipExit,
    "no-justification": lying_clients.NoJustification,
    "forged-justification": lying_clients.ForgedJustification,
    "low-ticket": lying_clients.LowTicket,
    "huge-ticket": lying_clients.HugeTicket,
    "equivocate": lying_clients.Equivocate,
    "partial-get": lying_clients.PartialGet,
    "partial-set": lying_clients.PartialSet,
    "partial-exit": lying_clients.PartialExit,
    "flood-get": lying_clients.FloodGet,
    "flood-exit": lying_clients.FloodExit,
    "leapfrog": lying_clients.Leapfrog,
    "mute-inside": lying_clients.MuteInside,
    "hold-forever": lying_clients.HoldForever,
    "replay": lying_clients.Replay,
}
STRATEGIES: Mapping[str, type[Node]] = {
    **{f"server/{name}": kind for name, kind in SERVERS.items()},
    **{f"client/{name}": kind for name, kind in CLIENTS.items()},
    **{f"{name}/server": pair.server for name, pair in PAIRS.items()},
    **{f"{name}/client": pair.client for name, pair in PAIRS.items()},
}
"""As ``--byzantine NODE:STRATEGY`` takes them: who lies, and how. The two of a pair bear its name."""
