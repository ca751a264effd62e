"""Permission algorithms, broken: Lamport 1978, Carvalho & Roucairol 1983."""

from trinco.check.model import Model
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.ids import Ids, members
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.permission import carvalho_roucairol, lamport, ricart_agrawala
from trinco.protocols.permission.carvalho_roucairol import CarvalhoRoucairol, Reply


class DoesNotAskBack(CarvalhoRoucairol):
    """Waiting, gives its permission to an older request and takes it that it will come back by itself."""

    __slots__ = ()

    def give_up(self, ctx: Context, permissions: Ids) -> None:
        self.permissions &= ~permissions
        ctx.broadcast(Reply(), to=members(permissions))


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
    Exhibit(
        name="carvalho-roucairol/does-not-ask-back",
        title="Carvalho-Roucairol in which who gives its permission away does not ask for it back",
        printed="nowhere; an easy mistake, since the process has already asked for all that it lacked",
        lesson="A process that waits gives a permission it holds to an older request. It never had to ask for that "
        "one; unless it does so now, the other keeps it when it leaves and does not know that somebody waits for it.",
        breaks="deadlock",
        model=lambda: Model(
            nodes=[DoesNotAskBack.in_place_of(honest) for honest in carvalho_roucairol.system(3)],
            network=Network.UNORDERED,
        ),
        mended=lambda: Model(nodes=carvalho_roucairol.system(3), network=Network.UNORDERED),
    ),
)
