"""Carvalho & Roucairol 1983, broken."""

from trinco.check.model import Model
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.ids import Ids, members
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.permission import carvalho_roucairol
from trinco.protocols.permission.carvalho_roucairol import CarvalhoRoucairol, Reply


class DoesNotAskBack(CarvalhoRoucairol):
    """Waiting, gives its permission to an older request and takes it that it will come back by itself."""

    __slots__ = ()

    def give_up(self, ctx: Context, permissions: Ids) -> None:
        self.permissions &= ~permissions
        ctx.broadcast(Reply(), to=members(permissions))


EXHIBITS = (
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
