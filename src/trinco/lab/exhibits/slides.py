"""Flaws of the slides (seed 001), by their numbers in the spec."""

from trinco.check.model import Model
from trinco.core.claims import Network
from trinco.core.context import WAITING, Context
from trinco.core.message import Message
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.coordinator import Client, Coordinator, Release
from trinco.protocols.permission import ricart_agrawala
from trinco.protocols.permission.ricart_agrawala import RicartAgrawala


class DropsTheOvertaker(Coordinator):
    """Takes a request of the present holder for a mistake and drops it."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Release) or source != self.holder:
            Coordinator.on_message(self, ctx, source, message)


def _overtaken_release(coordinator: Coordinator) -> Model:
    return Model(nodes=[coordinator, Client(coordinator=0)], network=Network.UNORDERED, inputs={"acquire": 2})


class LiteralWording(RicartAgrawala):
    """Rule 1 is for those who do not want in, rule 2 for those inside, rule 3 for those who "have not yet made the
    request": whoever has made it applies none of them, answers nothing and keeps nothing."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if ctx.phase is WAITING and isinstance(message, ricart_agrawala.Request):
            self.clock = max(self.clock, message.timestamp)
        else:
            RicartAgrawala.on_message(self, ctx, source, message)


EXHIBITS = (
    Exhibit(
        name="slides/S-1",
        title="a coordinator that drops the request which overtook a release",
        printed="slides, algoritmo centralizado, which says nothing about networks that reorder",
        lesson="On a network that reorders, a client's next request may arrive before its own release. The coordinator "
        "still takes it for the holder; if it drops the request, that client waits for ever.",
        breaks="deadlock",
        model=lambda: _overtaken_release(DropsTheOvertaker()),
        mended=lambda: _overtaken_release(Coordinator()),
    ),
    Exhibit(
        name="slides/S-5",
        title="Ricart-Agrawala with the slide's wording, read literally",
        printed="slides, algoritmo distribuído, rule 3: 'ainda não tiver feito o pedido'",
        lesson="Stamps must be compared by a process that has made its request and is not yet inside. As printed no "
        "rule covers it: two processes that ask at the same time ignore each other for ever.",
        breaks="deadlock",
        model=lambda: Model(nodes=[LiteralWording(me, 2) for me in range(2)]),
        mended=lambda: Model(nodes=ricart_agrawala.system(2)),
    ),
)
