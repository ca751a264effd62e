"""An arbiter of forks (árbitro), of Campos & Carvalho 1988: rules R12 to R17.

It lends its one fork to one of its clients at a time and knows who has it (OWNER). Its clients stand in a list of
priorities; whoever gives a fork back dirty has eaten and goes to the end. If somebody else wants the fork, the owner is
asked for it: by a request, which waits until it has eaten, or by a strong one, which does not, on behalf of a client
of higher priority.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

from trinco.core.ids import NOBODY, Ids, bit
from trinco.protocols.permission.forks_codes import ArbiterSays, ClientSays

Answer: TypeAlias = tuple[int, ArbiterSays]
"""What is to be said to which client."""


@dataclass(frozen=True, slots=True)
class Arbiter:
    """A value: every rule makes a new one. One node may run several."""

    number: int
    priorities: tuple[int, ...]
    """Its clients, the highest priority first."""
    owner: int | None = None
    requests: Ids = NOBODY
    """Who wants the fork; and the owner, as long as it was not asked to give it back."""
    strong_requests: Ids = NOBODY
    """Who could be asked strongly to give the fork back, if it is the owner."""

    def receive(self, client: int, code: ClientSays) -> "tuple[Arbiter, Answer | None]":
        return self.told(client, code).act()

    def told(self, client: int, code: ClientSays) -> "Arbiter":
        match code:
            case ClientSays.REQUEST:
                return self.requested_by(client)
            case ClientSays.CLEAN_FORK:
                return self.given_back_clean(client)
            case ClientSays.DIRTY_FORK:
                return self.given_back_dirty(client)
            case ClientSays.DIRTY_FORK_AND_REQUEST:
                return self.given_back_dirty(client).requested_by(client)

    def requested_by(self, client: int) -> "Arbiter":
        """R12."""
        asking = bit(client)
        return replace(self, requests=self.requests | asking, strong_requests=self.strong_requests | asking)

    def given_back_dirty(self, client: int) -> "Arbiter":
        """R13. Nothing is left of what the owner could have been asked."""
        others = ~bit(client)
        return replace(
            self,
            owner=None,
            priorities=(*(each for each in self.priorities if each != client), client),
            requests=self.requests & others,
            strong_requests=self.strong_requests & others,
        )

    def given_back_clean(self, client: int) -> "Arbiter":
        """R14. It still wants the fork, and can be asked strongly for it again."""
        return replace(self, owner=None).requested_by(client)

    def act(self) -> "tuple[Arbiter, Answer | None]":
        if self.owner is not None:
            return self.recall(self.owner)
        return self.lend() if self.requests else (self, None)

    def lend(self) -> "tuple[Arbiter, Answer | None]":
        """R15, and R16 with it: if somebody else wants the fork too, it goes out with the request to give it back."""
        client = self.highest_priority_request()
        if self.requests == bit(client):
            return replace(self, owner=client), (client, ArbiterSays.FORK)
        others = self.requests & ~bit(client)
        return replace(self, owner=client, requests=others), (client, ArbiterSays.FORK_AND_REQUEST)

    def recall(self, owner: int) -> "tuple[Arbiter, Answer | None]":
        """R17 if it applies, else R16."""
        place = self.priorities.index(owner)
        if self.strong_requests & bit(owner) and self.wanted_by(self.priorities[:place]):
            return self.asked_strongly(owner), (owner, ArbiterSays.STRONG_REQUEST)
        if self.requests & bit(owner) and self.wanted_by(self.priorities[place + 1 :]):
            return replace(self, requests=self.requests & ~bit(owner)), (owner, ArbiterSays.REQUEST)
        return self, None

    def asked_strongly(self, owner: int) -> "Arbiter":
        """A strong request is a request too."""
        others = ~bit(owner)
        return replace(self, requests=self.requests & others, strong_requests=self.strong_requests & others)

    def wanted_by(self, clients: tuple[int, ...]) -> bool:
        """Whether one of these has asked for the fork."""
        return any(self.requests & bit(each) for each in clients)

    def highest_priority_request(self) -> int:
        return next(each for each in self.priorities if self.requests & bit(each))
