"""Flaws of the slides (seed 001), by their numbers in the spec."""

from trinco.check.model import Model
from trinco.core.claims import Network
from trinco.core.context import WAITING, Context
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.broadcast.sequencer import HoldBack, Sequencer
from trinco.protocols.coordinator import Client, Coordinator, Release
from trinco.protocols.permission import ordered_voting, ricart_agrawala, voting
from trinco.protocols.permission.ricart_agrawala import RicartAgrawala


class DropsTheOvertaker(Coordinator):
    """Takes a request of the present holder for a mistake and drops it."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Release) or source != self.holder:
            Coordinator.on_message(self, ctx, source, message)


def _overtaken_release(coordinator: Coordinator) -> Model:
    return Model(nodes=[coordinator, Client(coordinator=0)], network=Network.UNORDERED, inputs={"acquire": 2})


class LiteralMajority(voting.Client):
    """Gives its votes back if the majority is NOK, and not if that is half."""

    __slots__ = ()

    def count(self, ctx: Context) -> None:
        given = self.granted.bit_count()
        if given >= self.votes or 2 * given < self.m:
            voting.Client.count(self, ctx)


def _even_split(client: type[voting.Client]) -> Model:
    coordinators = [voting.Coordinator(), voting.Coordinator()]
    return Model(nodes=[*coordinators, client(m=2, votes=2), client(m=2, votes=2)], network=Network.UNORDERED)


class Forgetful(voting.Coordinator):
    """May be reset once: it comes back with its vote in its hands, whoever it was given to."""

    __slots__ = ()

    def forget(self, ctx: Context) -> None:
        self.given_to = None


def _one_forgetful(votes: int) -> Model:
    """One attempt each is enough to see it."""
    coordinators = [Forgetful(), voting.Coordinator(), voting.Coordinator()]
    clients = [voting.Client(m=3, votes=votes), voting.Client(m=3, votes=votes)]
    inputs = {"acquire": 1, "forget": 1}
    return Model(nodes=[*coordinators, *clients], network=Network.UNORDERED, inputs=inputs, fires=0)


class Retry(Message, tag="retry"):
    """The random back-off as the checker likes it: a message to oneself takes as long as it takes, as often as it
    must, while timers have a bound."""


class RefusesTheSecond(ordered_voting.Voter):
    """Says NOK to whoever does not find its vote free."""

    __slots__ = ()

    def deliver(self, ctx: Context, origin: int, message: Message) -> None:
        if isinstance(message, ordered_voting.Request) and self.queue:
            ctx.send(origin, voting.Nok())
        else:
            ordered_voting.Voter.deliver(self, ctx, origin, message)


class AsksAgain(ordered_voting.Client):
    """Backs off after a NOK, and tries again."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case voting.Nok():
                ctx.send(ctx.me, Retry())
            case Retry():
                self.acquire(ctx)
            case _:
                ordered_voting.Client.on_message(self, ctx, source, message)


def _one_voter(voter: type[ordered_voting.Voter], client: type[ordered_voting.Client]) -> Model:
    """With a single voter there is no majority to be lost: whoever loses here loses by the back-off alone. What one
    voter delivers is in order whatever the numbers say, so one number will do."""
    servers: list[Node] = [voter(HoldBack(numbers=1)), Sequencer(members=1, numbers=1)]
    clients = [client(m=1, numbers=1), client(m=1, numbers=1)]
    return Model(nodes=[*servers, *clients], network=Network.UNORDERED, inputs={"acquire": None})


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
        name="slides/S-2",
        title="voting that returns votes only if the majority is NOK",
        printed="slides, algoritmo descentralizado, step 4: 'se a maioria das mensagens for NOK'",
        lesson="Of an even number of votes, half is not enough to enter and not too little to keep. Two clients that "
        "have half each hold on to it, and neither ever gets more.",
        breaks="deadlock",
        model=lambda: _even_split(LiteralMajority),
        mended=lambda: _even_split(voting.Client),
    ),
    Exhibit(
        name="slides/S-3",
        title="a coordinator that forgets whom it gave its vote",
        printed="slides, algoritmo descentralizado, which claims S1 and adds that faults can be tolerated with more "
        "votes, but not how many",
        lesson="Two majorities of three share one coordinator. If that one is reset, it votes for both. Clients that "
        "need v of m votes share 2v - m coordinators, and need one more than are forgetful.",
        breaks="safety",
        model=lambda: _one_forgetful(votes=2),
        mended=lambda: _one_forgetful(votes=3),
    ),
    Exhibit(
        name="slides/S-4",
        title="voting over total order, with NOK and back-off as before",
        printed="slides, algoritmo descentralizado: como satisfazer V2?, 'no resto, o algoritmo é igual'",
        lesson="The order in which requests are delivered is forgotten with the NOK. Whoever tries again is as late as "
        "the first time: another client can leave and ask anew in between, for ever. V2 needs voters that queue.",
        breaks="starvation",
        model=lambda: _one_voter(RefusesTheSecond, AsksAgain),
        mended=lambda: _one_voter(ordered_voting.Voter, ordered_voting.Client),
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
