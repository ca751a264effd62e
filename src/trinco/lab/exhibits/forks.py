"""Flaws of Campos & Carvalho 1988 (seed 002), by their numbers in the spec."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trinco.check.model import Model
from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.node import Node
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.lab.forks_invariants import more_are_under_way_than
from trinco.protocols.permission.campos_carvalho import ArbiterHost, CamposCarvalho, Forks, Rule
from trinco.protocols.permission.forks_arbiter import Arbiter
from trinco.protocols.permission.forks_codes import ArbiterSays
from trinco.protocols.permission.forks_predictor import Predictor


class AsksTwice(Arbiter):
    """R13 and R17 as printed: that a client can be asked for a fork it has is not forgotten when it was asked strongly,
    nor when the fork comes back. Without the fork it means that the client wants it."""

    __slots__ = ()

    def asked_strongly(self, owner: int) -> Arbiter:
        return replace(self, strong_requests=self.strong_requests & ~bit(owner))

    def given_back_dirty(self, client: int) -> Arbiter:
        others = tuple(each for each in self.priorities if each != client)
        return replace(self, owner=None, priorities=(*others, client))


class AsksStronglyOnce(Arbiter):
    """R14 as printed: takes a clean fork for a request, but not for one that it can be asked strongly to give up."""

    __slots__ = ()

    def given_back_clean(self, client: int) -> Arbiter:
        return replace(self, owner=None, requests=self.requests | bit(client))


class NeverStopsThinking(CamposCarvalho):
    """R1 to R3 as printed set Hungry, Eating or Thinking and clear none of them, so R5 always applies."""

    __slots__ = ()

    def rules(self, ctx: Context) -> tuple[tuple[Rule, Ids], ...]:
        return (self.give_back, self.forks & self.requests), *CamposCarvalho.rules(self, ctx)


class EatsFirst(CamposCarvalho):
    """R2 as printed: eats whenever it has all forks, wanted or not."""

    __slots__ = ()

    def rules(self, ctx: Context) -> tuple[tuple[Rule, Ids], ...]:
        rules = CamposCarvalho.rules(self, ctx)
        hungry = any(rule == self.eat for rule, _ in rules)
        return (self.eat, bit(self.me) if hungry and self.forks == self.quorum else NOBODY), *rules


class AnybodysGuess(Predictor):
    """Whatever a predictor may say, ours or a better one."""

    __slots__ = ()

    def used_again(self, forks: Ids) -> None:
        pass

    def lost(self, forks: Ids) -> None:
        pass


class ReturnsAtWill(CamposCarvalho):
    """When it leaves, it may give back any forks unasked."""

    __slots__ = ()

    def return_unasked(self, ctx: Context) -> None:
        returned = NOBODY
        for arbiter in members(self.forks & ~self.requests):
            returned |= bit(arbiter) * ctx.choose(2)
        self.give_back_unasked(ctx, returned)


class ListensWithoutTheFork(ReturnsAtWill):
    """R9 as printed: whoever is asked for a fork notes it, also when it has given the fork back."""

    __slots__ = ()

    def hear(self, arbiter: int, code: ArbiterSays) -> None:
        ReturnsAtWill.hear(self, arbiter, code)
        if code is ArbiterSays.REQUEST:
            self.requests |= bit(arbiter)


def _arbitrated(nodes: Sequence[ArbiterHost], kind: type[Arbiter]) -> Sequence[ArbiterHost]:
    for node in nodes:
        node.arbiters = tuple(kind(each.number, each.priorities) for each in node.arbiters)
    return nodes


def _two_at_rest(kind: type[Arbiter]) -> Model:
    """The arbiter runs at a third node: with a client beside it, all of it would happen in one step that never ends."""
    nodes = Forks().seated(quorums=((2,), (2,)), hosts={2: 2})
    return Model(nodes=_arbitrated(nodes, kind), reachable={"a rest": lambda view: view.quiet()})


TOO_MANY = more_are_under_way_than(4)


def _two_return_forks(kind: type[ReturnsAtWill]) -> Model:
    """As above. Asking goes on for ever: only then do superfluous requests pile up."""
    nodes: list[Node] = []
    for node in Forks().seated(quorums=((2,), (2,)), hosts={2: 2}):
        if isinstance(node, CamposCarvalho):
            node.predictor = AnybodysGuess((), ())
            nodes.append(kind.in_place_of(node))
        else:
            nodes.append(node)
    return Model(nodes=nodes, inputs={"acquire": None}, never=[TOO_MANY])


def _two(kind: type[CamposCarvalho]) -> list[Node]:
    return [kind.in_place_of(node) for node in Forks()(2)]


def triangle(lists: Mapping[int, tuple[int, ...]]) -> list[ArbiterHost]:
    """Three clients and three arbiters, two clients each: 0 has 0 and 2, 1 has 0 and 1, 2 has 1 and 2."""
    nodes = list(Forks()(3))
    for node in nodes:
        (arbiter,) = node.arbiters
        node.arbiters = (replace(arbiter, priorities=lists.get(arbiter.number, arbiter.priorities)),)
    return nodes


def _first_fork_at_client_0(nodes: list[ArbiterHost], dirty: Ids) -> list[ArbiterHost]:
    client, token = nodes[0], bit(0)
    assert isinstance(client, CamposCarvalho)
    (arbiter,) = client.arbiters
    client.arbiters = (replace(arbiter, owner=0, requests=token, strong_requests=token),)
    client.forks, client.dirty, client.requests = token, dirty, client.requests & ~token
    return nodes


EXHIBITS = (
    Exhibit(
        name="forks/F1",
        title="an arbiter of forks for which a strong request is no request",
        printed="Campos & Carvalho 1988, R17 and R13: req(OWNER) stays true",
        lesson="At the arbiter one bit says 'can be asked for the fork' of its owner and 'wants the fork' of others. "
        "Left behind when the fork comes back, it sends the fork to somebody who thinks, who returns it, for ever.",
        breaks="unreachable",
        model=lambda: _two_at_rest(AsksTwice),
        mended=lambda: _two_at_rest(Arbiter),
    ),
    Exhibit(
        name="forks/F2",
        title="an arbiter of forks that can ask strongly only once",
        printed="Campos & Carvalho 1988, R14: strongreq(f) stays false",
        lesson="A client that gave its clean fork up gets it again, and again somebody with higher priority may want "
        "it. If it cannot be asked strongly a second time it is not asked at all, and the other waits for ever.",
        breaks="deadlock",
        model=lambda: Model(nodes=_arbitrated(Forks()(4), AsksStronglyOnce)),
        mended=lambda: Model(nodes=_arbitrated(Forks()(4), Arbiter)),
    ),
    Exhibit(
        name="forks/F3",
        title="philosophers who think, are hungry and eat all at once",
        printed="Campos & Carvalho 1988, R1 to R3: three booleans that are only ever set",
        lesson="R5 lets who thinks give a fork back. A philosopher that never stops thinking gives it back while it "
        "eats.",
        breaks="safety",
        model=lambda: Model(nodes=_two(NeverStopsThinking)),
        mended=lambda: Model(nodes=_two(CamposCarvalho)),
    ),
    Exhibit(
        name="forks/F4",
        title="a fork that starts clean at a client who thinks",
        printed="Campos & Carvalho 1988, initial conditions: 'qualquer disposição dos garfos'",
        lesson="R5 returns it as dirty, as if the client had eaten: one arbiter puts it last, the others do not. The "
        "order of precedence then runs in a circle, and all wait.",
        breaks="deadlock",
        model=lambda: Model(nodes=_first_fork_at_client_0(triangle({}), dirty=NOBODY)),
        mended=lambda: Model(nodes=_first_fork_at_client_0(triangle({0: (2, 0), 1: (1, 0)}), dirty=bit(0))),
    ),
    Exhibit(
        name="forks/F5",
        title="arbiters whose lists of priorities disagree at the start",
        printed="Campos & Carvalho 1988, section 4.3, which says that the first lists are easy to define, not how",
        lesson="Each list is an order, and all together must be one. With 0 before 1, 1 before 2 and 2 before 0, each "
        "client gets the fork in which it comes first, keeps it, and waits for the other.",
        breaks="deadlock",
        model=lambda: Model(nodes=triangle({0: (2, 0)})),
        mended=lambda: Model(nodes=triangle({})),
    ),
    Exhibit(
        name="forks/F6",
        title="a philosopher who eats again with a fork that is wanted",
        printed="Campos & Carvalho 1988, R2, which does not ask whether a fork is wanted",
        lesson="Who has all forks may eat, and who thinks may give forks back: if it always happens to be hungry again "
        "first, the one who waits for the fork waits for ever.",
        breaks="starvation",
        model=lambda: Model(nodes=_two(EatsFirst), inputs={"acquire": None}),
        mended=lambda: Model(nodes=_two(CamposCarvalho), inputs={"acquire": None}),
    ),
    Exhibit(
        name="forks/F7",
        title="a request for a fork that is noted by who has already given it back",
        printed="Campos & Carvalho 1988, R9: req becomes true, whether the fork is here or not",
        lesson="As printed it does no harm once the rest is mended, for nobody is asked for a fork that it does not "
        "have. Where forks are returned unasked, which is ours, a fork and the request for it may cross: the request "
        "token is then counted twice, and the client asks once too often, again and again.",
        breaks="never",
        model=lambda: _two_return_forks(ListensWithoutTheFork),
        mended=lambda: _two_return_forks(ReturnsAtWill),
    ),
)
