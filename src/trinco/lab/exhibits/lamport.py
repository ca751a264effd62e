"""Lamport 1978, broken."""

from trinco.check.model import Model
from trinco.core.claims import Network
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.permission import lamport, ricart_agrawala

EXHIBITS = (
    Exhibit(
        name="lamport/overtaken-request",
        title="Lamport's algorithm where messages overtake each other",
        printed="nowhere; the paper assumes channels in order, and it is easily left out",
        lesson="An acknowledgement says that no older request of its sender is still under way. If it overtakes one, "
        "that is false: two enter, each first in its own queue. Ricart and Agrawala's OK acknowledges and releases in "
        "one message, which nothing can overtake: the mended twin.",
        breaks="safety",
        model=lambda: Model(nodes=lamport.system(2), network=Network.UNORDERED),
        mended=lambda: Model(nodes=ricart_agrawala.system(2), network=Network.UNORDERED),
    ),
)
