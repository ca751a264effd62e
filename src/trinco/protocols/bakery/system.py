"""Bessani, Fraga & Lung 2005: O Confeiteiro Bizantino (the Byzantine bakery), the optimised protocol of section 5.1.

Lamport's bakery over n >= 3f+1 servers of which f may lie, for clients that nobody knows beforehand and any number of
which may lie too. A client learns the highest ticket of a quorum (GET), takes the next one and proves to the servers
that it did (SET), waits until q servers have voted that nobody is in its way (LISTEN), and leaves (EXIT). Servers tell
from an automaton whether a client keeps to this, and together remove whoever falls silent.

Assumes: reliable channels, first in first out, on which the sender is known; signatures; for the lease, that clocks run
within rho of each other. Without FIFO a SET could come after its own EXIT, and its client would be taken for a liar.
Mutual exclusion is between correct clients. Messages: 6n for n servers when nobody else asks, none between servers; 8n
when somebody does, a few more to certify tickets, and 2n for every D/4 that the wait or the stay lasts.

Against the paper: quorums for any n (``quorums``); entry by q votes instead of reading registers; whom one waits for is
fixed at SET; tickets never restart, and are certified; a justification is good for one turn; a leave is legal from E1
and E2; no reliable broadcast among the servers; removal by q signatures, never by one server alone; leases that are
renewed for so long only, and fencing tokens (ticket, client). A GET is signed by its client, and a suspicion shows that
signature: otherwise one lying server could have every next turn of a correct client removed before it begins, since
servers that do not know a turn join in suspecting it.
Clients that are gone are forgotten after a while (``freshness``), for which clocks have to agree roughly.

Nodes 0, 1, .. are the clients; the servers follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.node import Node
from trinco.protocols.bakery.broadcasting import BroadcastClient, BroadcastServer, Requests
from trinco.protocols.bakery.certificates import Judge
from trinco.protocols.bakery.client import Client
from trinco.protocols.bakery.muteness import Muteness, Timing
from trinco.protocols.bakery.quorums import quorum
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.tickets import Tickets
from trinco.protocols.bakery.vouching import AUTHENTICATIONS

CLAIMS = Claims(
    paper="Bessani, Fraga & Lung, O confeiteiro bizantino: exclusão mútua em sistemas abertos",
    year=2005,
    network=Network.FIFO,
    messages_per_entry=Formula("6*s..inf"),
    amortised=True,
    delay=Formula("4"),
    fairness=Fairness.FIFO_BY_CLOCK,
    crashes=Formula("c+f"),
    byzantine=Formula("c+f"),
    fencing=True,
    timed=True,
    roles={"client": Formula("c"), "server": Formula("s")},
    liars={"server": Formula("f")},
)

BROADCASTS = ("none", "bracha")


@dataclass(frozen=True)
class Bakery:
    """Times in seconds; ``inf`` is never."""

    f: int = 1
    servers: int | None = None
    """None: 3f+1."""
    hold: float = 10.0
    extension: float = 60.0
    silence: float = 4.0
    choosing: float = 2.0
    cap: float = 60.0
    drift: float = 4e-4
    expiry: float | None = None
    """How long servers remember a client that is gone. None: 60 times the cap."""
    lock: str = "lock/0"
    """Which lock, and which configuration of servers."""
    broadcast: str = "none"
    """How requests get from a client to the servers: directly, or by reliable broadcast (``broadcasting``)."""
    authentication: str = "signatures"
    """What servers say is signed, or only vouched for by ``macs`` (``vouching``)."""

    def __post_init__(self) -> None:
        if not 0 <= self.drift < 1:
            raise UsageError(f"clocks that differ by {self.drift:g} of their speed are no clocks")
        for name in ("hold", "extension", "silence", "choosing", "cap"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} must be above 0, not {getattr(self, name):g}")
        if self.expiry is not None and not self.expiry >= 4 * self.cap:
            raise UsageError(f"expiry must be at least four times the cap, {4 * self.cap:g}, not {self.expiry:g}")
        if self.broadcast not in BROADCASTS:
            raise UsageError(f"requests are broadcast by {' or '.join(BROADCASTS)}, not '{self.broadcast}'")
        if self.authentication not in AUTHENTICATIONS:
            raise UsageError(f"servers use {' or '.join(AUTHENTICATIONS)}, not '{self.authentication}'")
        quorum(self.size, self.f)

    @property
    def claims(self) -> Claims:
        if self.broadcast == "none":
            return CLAIMS
        return replace(CLAIMS, messages_per_entry=Formula("6*s+6*s*(s-1)..inf"), delay=Formula("8"))

    @property
    def size(self) -> int:
        """How many servers there are."""
        return 3 * self.f + 1 if self.servers is None else self.servers

    @property
    def timing(self) -> Timing:
        return Timing(self.hold, self.extension, self.silence, self.choosing, self.cap, self.drift, self._expiry)

    @property
    def _expiry(self) -> float:
        return 60 * self.cap if self.expiry is None else self.expiry

    def judge(self, n: int) -> Judge:
        servers = tuple(range(n - self.size, n))
        return Judge(self.lock, servers, self.f, quorum(self.size, self.f), AUTHENTICATIONS[self.authentication])

    def letters(self, n: int) -> dict[str, float]:
        return {"c": n - self.size, "s": self.size, "f": self.f}

    def __call__(self, n: int) -> Sequence[Node]:
        if n <= self.size:
            raise UsageError(f"{self.size} servers and at least one client are {self.size + 1} nodes, not {n}")
        judge = self.judge(n)
        return [
            *(self._client(judge) for _ in range(n - self.size)),
            *(self._server(judge, me) for me in judge.servers),
        ]

    def _client(self, judge: Judge) -> Client:
        kind = Client if self.broadcast == "none" else BroadcastClient
        return kind(judge, self.timing, self.silence)

    def _server(self, judge: Judge, me: int) -> Server:
        fields = judge, self.timing, Muteness(judge, self.timing), Tickets(judge)
        if self.broadcast == "none":
            return Server(*fields)
        return BroadcastServer(*fields, requests=Requests(judge.servers.index(me), self.size, self.f))
