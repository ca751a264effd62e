"""Lin's voting with one rule dropped each, to see that the checker notices."""

from trinco.protocols.permission.voting import Client, Coordinator, Nok, Ok, Release, Request


class GivesAgainToTheSame(Coordinator):
    """Whoever has the vote may have it: says OK to a client that asks again."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Request) and self.given_to == source:
            ctx.send(source, Ok())
        else:
            Coordinator.on_message(self, ctx, source, message)


class TakesAnybodysRelease(Coordinator):
    """Does not look who gives the vote back."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Release):
            self.given_to = None
        else:
            Coordinator.on_message(self, ctx, source, message)


class KeepsItsVotes(Client):
    """Does not give back what was not enough."""

    __slots__ = ()

    def count(self, ctx):
        if self.granted.bit_count() >= self.votes:
            Client.count(self, ctx)
        else:
            self.back_off(ctx)


class GivesUpAtTheFirstNok(Client):
    """Does not wait for the other answers, which then come in during the next attempt."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Nok):
            self.answers = 0
            self.give_back(ctx)
            self.back_off(ctx)
        else:
            Client.on_message(self, ctx, source, message)
