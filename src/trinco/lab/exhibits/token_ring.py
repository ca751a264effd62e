"""The token ring, broken."""

from trinco.check.model import Model
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.token.token_ring import TokenRing, system

EXHIBITS = (
    Exhibit(
        name="token-ring/two-tokens",
        title="a ring in which two processes start with a token",
        printed="nowhere; what a careless regeneration of a lost token does",
        lesson="Holding the token is the only permission there is. Two tokens are two permissions.",
        breaks="safety",
        model=lambda: Model(nodes=[TokenRing(successor=1, starts=True), TokenRing(successor=0, starts=True)]),
        mended=lambda: Model(nodes=system(2)),
    ),
)
