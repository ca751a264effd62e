"""The Byzantine bakery with one rule broken each, and the liar that the checker branches on."""

from trinco.lab.exhibits.bakery_automaton import RemovesAlone
from trinco.protocols.bakery.automaton import State
from trinco.protocols.bakery.certificates import Ticket
from trinco.protocols.bakery.client import Access, Client
from trinco.protocols.bakery.lying_servers import GrantAll, Mute
from trinco.protocols.bakery.messages import ExitReply, Set, SetReply
from trinco.protocols.bakery.server import Server


class Refuses(Server):
    """Notes every ticket, and somebody is always in the way."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Set):
            ctx.send(source, SetReply(message.sid, ctx.sign(Ticket(self.judge.lock, message.number)), None))
        else:
            GrantAll.on_message(self, ctx, source, message)


class Branching(Server):
    """Each time anew: grants, refuses, follows the protocol, or stays silent."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        way = (GrantAll, Refuses, Server, Mute)[ctx.choose(4)]
        way.on_message(self, ctx, source, message)


class IgnoresOrder(Server):
    """Lets in whoever has a ticket, once nobody is choosing."""

    __slots__ = ()

    def is_free(self, turn):
        return not any(other.state is State.E1 for other in self.turns)


class IgnoresChoosing(Server):
    """Reads the ticket of who is still choosing as 0, and passes it over."""

    __slots__ = ()

    def is_free(self, turn):
        earlier = (other for other in self.turns if other.state is not State.E1 and other.rank < turn.rank)
        return not turn.dead and not any(earlier)


class DeafToExits(Server):
    """Answers an EXIT and does nothing about it."""

    __slots__ = ()

    def on_exit(self, ctx, client, message):
        ctx.send(client, ExitReply(message.sid))


class TellsNobody(Server):
    """Lets nobody in who had to wait."""

    __slots__ = ()

    def _serve_waiters(self, ctx):
        pass


class DoesNotListen(Client):
    """Waits for votes without asking for them."""

    __slots__ = ()

    def listen(self, ctx):
        pass


class CountsOneVote(Client):
    """Enters on the first vote."""

    __slots__ = ()

    def _end_of_lease(self):
        return dict(self.sent)[0] if self.votes else None


class Pushes(Server):
    """No mutant: votes without being asked. Whom a client waits for is fixed at SET, so LISTEN is only a courtesy."""

    __slots__ = ()

    def _serve_waiters(self, ctx):
        for turn in sorted(self.turns, key=lambda each: each.rank):
            if turn.state is State.E2 and self._let_in(ctx, turn):
                self._send_vote(ctx, turn.client)


class Patient(Client):
    """No mutant: for servers that vote without being asked, and trust each other's tickets."""

    __slots__ = ()

    def listen(self, ctx):
        self.access = Access.LISTEN
        self.tickets = ()

    def _certificate(self):
        return ()


class RemovesAloneAndPushes(RemovesAlone):
    __slots__ = ()
    _serve_waiters = Pushes._serve_waiters


class CountsOneVoteOfPushed(Patient):
    __slots__ = ()
    _end_of_lease = CountsOneVote._end_of_lease
