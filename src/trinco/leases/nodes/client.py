"""The composite lease as a node of the contract: what the simulator and the checker run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.core.signed import Signed
from trinco.core.value import Value
from trinco.leases import accesses
from trinco.leases.claim import Claim
from trinco.leases.client import LeaseClient
from trinco.leases.nodes.messages import INCARNATION, Access, Reply, Told
from trinco.leases.operation import TICKET_LIMIT, TOKEN_LIMIT, Grade, Handed, Operation, Release
from trinco.leases.terms import Terms

if TYPE_CHECKING:
    from trinco.leases.plan import Algorithm


MOST_SERIALS = 2


class Body(Value):
    """What a client signs: which token and which ticket are its own."""

    __slots__ = ("claim", "ticket", "token")

    def __init__(self, claim: Claim, token: Any, ticket: int | None) -> None:
        self.claim = claim
        self.token = token
        self.ticket = ticket


class Client(LeaseClient, Process):
    """``stores`` are the ids of the bases, in order. ``quiet``: nobody answers a release of one access, and the next
    request does not wait for it. That is all the same to a base, which compares attempts, and leaves the checker far
    fewer states. And after a few requests it wants to be woken only: their numbers must come to an end there."""

    __slots__ = ("quiet", "stores")

    def __init__(
        self,
        owner: int,
        terms: Terms,
        algorithms: "tuple[Algorithm, ...]",
        stores: tuple[int, ...],
        quiet: bool = False,
    ) -> None:
        LeaseClient.__init__(self, owner, terms, algorithms)
        self.stores = stores
        self.quiet = quiet

    def on_restart(self, ctx: Context, stored: int | None) -> None:
        """Whoever comes back is somebody else: what it held before is not its own any more (E17)."""
        incarnation = 1 + (stored or 0)
        ctx.store(incarnation)
        self.owner = ctx.me + INCARNATION * incarnation

    def access(self, ctx: Context, base: int, access: accesses.Access) -> None:
        operation = self.bases[base].chain[0].operation
        quiet, epoch = not self.waits_for(operation), self.bases[base].epoch
        ctx.send(self.stores[base], Access(operation.claim, access, quiet, epoch))

    def next_serial(self, ctx: Context, position: int) -> int | None:
        if self.quiet and self.bases[position].serial == MOST_SERIALS:
            return None
        return LeaseClient.next_serial(self, ctx, position)

    def waits_for(self, operation: Operation) -> bool:
        return not (self.quiet and isinstance(operation, Release))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if source not in self.stores:
            return
        base = self.stores.index(source)
        if isinstance(message, Told):
            self._was_told(ctx, base, message.said)
        if not isinstance(message, Reply):
            return  # a liar may send what it likes
        chain, epoch = self.bases[base].chain, self.bases[base].epoch
        if chain and message.claim == chain[0].operation.claim and message.epoch == epoch:
            self.answered(ctx, base, message.reply)
        elif message.epoch < epoch:
            self.straggled(ctx, base, message.claim)

    def _was_told(self, ctx: Context, base: int, said: Any) -> None:
        if isinstance(said, Handed):
            self.handed(ctx, base, said)
        elif said == self.claim:
            self.hinted(ctx, base)

    def signed(self, ctx: Context, claim: Claim) -> Signed | None:
        if self.guess is None and self.ticket is None:
            return None
        return ctx.sign(Body(claim, self.guess, self.ticket))

    def token_in(self, ctx: Context, evidence: Any) -> int:
        body = self._body(ctx, evidence)
        return body.token if body is not None and _is_number(body.token, TOKEN_LIMIT) else 0

    def ticket_in(self, ctx: Context, evidence: Any) -> int:
        body = self._body(ctx, evidence)
        return body.ticket if body is not None and _is_number(body.ticket, TICKET_LIMIT) else 0  # type: ignore[return-value]

    def _body(self, ctx: Context, evidence: Any) -> Body | None:
        """What a client signed. A store can sign, too, but it is not for it to say what was given out."""
        genuine = isinstance(evidence, Signed) and ctx.verify(evidence) and isinstance(evidence.body, Body)
        return evidence.body if genuine and evidence.signer not in self.stores else None

    def settle(self, ctx: Context) -> None:
        """A vote that has run out, or can no longer be of use, is as good as a refusal."""
        for position, base in enumerate(self.bases):
            if base.until is not None and not self.is_useful(ctx, base):
                self._set(position, base.but(grade=Grade.REFUSED, until=None, token=None, seen=0, mine=False))

    def column(self, store: int) -> Any:
        return self.bases[self.stores.index(store)]

    def relabel(self, names: Mapping[int, int]) -> None:
        renamed = list(self.bases)
        for position, store in enumerate(self.stores):
            renamed[self.stores.index(names[store])] = self.bases[position]
        self.bases = tuple(renamed)


def _is_number(value: object, limit: int) -> bool:
    return type(value) is int and 0 <= value < limit
