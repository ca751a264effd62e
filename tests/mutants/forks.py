"""Campos-Carvalho with one rule changed each, to see that the checker notices; and forks that are returned at will."""

from dataclasses import replace

from trinco.core.ids import bit
from trinco.lab.exhibits.forks import AnybodysGuess, ReturnsAtWill
from trinco.protocols.permission.campos_carvalho import CamposCarvalho, Forks
from trinco.protocols.permission.forks_arbiter import Arbiter
from trinco.protocols.permission.forks_codes import ArbiterSays, ClientSays


class LosesTheRequestToken(CamposCarvalho):
    """R5 without its last words: the token goes with the fork."""

    __slots__ = ()

    def give_back(self, ctx, forks):
        self.requests &= ~forks
        CamposCarvalho.give_back(self, ctx, forks)


class DoesNotAskBack(CamposCarvalho):
    """R6 without the request."""

    __slots__ = ()

    def give_back_and_ask(self, ctx, forks):
        self.requests &= ~forks
        self.hand_over(ctx, forks, ClientSays.DIRTY_FORK)


class KeepsCleanForks(CamposCarvalho):
    """R7 left out: whoever is hungry keeps a clean fork, however strongly it is wanted."""

    __slots__ = ()

    def rules(self, ctx):
        return tuple(each for each in CamposCarvalho.rules(self, ctx) if each[0] != self.give_up)


class CallsCleanForksDirty(CamposCarvalho):
    """R7 with the wrong fork: as if it had eaten."""

    __slots__ = ()

    def give_up(self, ctx, forks):
        self.requests &= ~forks
        self.hand_over(ctx, forks, ClientSays.DIRTY_FORK_AND_REQUEST)


class LeavesForksClean(CamposCarvalho):
    """R2 without dirt."""

    __slots__ = ()

    def eat(self, ctx, _):
        ctx.grant()


class IsDeafToWhatComesWithAFork(CamposCarvalho):
    """R8 for both kinds of forks."""

    __slots__ = ()

    def hear(self, arbiter, code):
        heard = ArbiterSays.FORK if code is ArbiterSays.FORK_AND_REQUEST else code
        CamposCarvalho.hear(self, arbiter, heard)


class TakesNoStrongRequestForARequest(CamposCarvalho):
    """R10 sets one of its two variables."""

    __slots__ = ()

    def hear(self, arbiter, code):
        asked = self.requests
        CamposCarvalho.hear(self, arbiter, code)
        if code is ArbiterSays.STRONG_REQUEST:
            self.requests = asked


class DemotesNobody(Arbiter):
    """R13 without GiveLeastPriorityTo."""

    __slots__ = ()

    def given_back_dirty(self, client):
        return replace(Arbiter.given_back_dirty(self, client), priorities=self.priorities)


class DemotesTheClean(Arbiter):
    """R14 as if the client had eaten."""

    __slots__ = ()

    def given_back_clean(self, client):
        return self.given_back_dirty(client).requested_by(client)


class ForgetsWhoGaveUp(Arbiter):
    """R14 without the request that a clean fork stands for."""

    __slots__ = ()

    def given_back_clean(self, client):
        return replace(self, owner=None)


class LendsToTheLast(Arbiter):
    """R15 with the list upside down."""

    __slots__ = ()

    def highest_priority_request(self):
        return next(each for each in reversed(self.priorities) if self.requests & bit(each))


class NeverAsksWeakly(Arbiter):
    """R16 left out."""

    __slots__ = ()

    def recall(self, owner):
        arbiter, answer = Arbiter.recall(self, owner)
        return (self, None) if answer == (owner, ArbiterSays.REQUEST) else (arbiter, answer)


class NeverAsksStrongly(Arbiter):
    """R16 whoever wants the fork, and no R17."""

    __slots__ = ()

    def recall(self, owner):
        arbiter, answer = Arbiter.recall(self, owner)
        return (arbiter, (owner, ArbiterSays.REQUEST)) if answer else (self, None)


class ReturnsWithoutTheToken(ReturnsAtWill):
    """Thinks that the arbiter, which did not ask, still has the request token."""

    __slots__ = ()

    def give_back_unasked(self, ctx, forks):
        self.hand_over(ctx, forks, ClientSays.DIRTY_FORK)


class RemembersTheOwner(Arbiter):
    """R13 as printed: what the owner could have been asked stays noted when it has given the fork back."""

    __slots__ = ()

    def given_back_dirty(self, client):
        emptied = Arbiter.given_back_dirty(self, client)
        return replace(emptied, requests=self.requests, strong_requests=self.strong_requests)


def seated(quorums, hosts, client=CamposCarvalho, arbiter=Arbiter, *, piggy_back=True):
    """The arrangement with other classes in it."""
    nodes = Forks(piggy_back).seated(quorums, hosts)
    for node in nodes:
        node.arbiters = tuple(arbiter(each.number, each.priorities) for each in node.arbiters)
        if isinstance(node, CamposCarvalho) and issubclass(client, ReturnsAtWill):
            node.predictor = AnybodysGuess((), ())
    return [client.in_place_of(node) if isinstance(node, CamposCarvalho) else node for node in nodes]
