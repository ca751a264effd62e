"""Those in one process who ask the stores for something. Whoever has given everything back is used again, by the next
who asks for the same."""

from trinco.leases.bases.catalogue import RUN_CODE, find
from trinco.leases.item import Limits
from trinco.leases.owner import owner_name
from trinco.locks.agenda import Agenda
from trinco.locks.claimant import Claimant
from trinco.locks.links import Links
from trinco.locks.quick import QuickClaimant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar

    from trinco.leases.terms import Terms
    from trinco.stores.store import Store

MOST_AT_REST = 64


class Pool(Links):
    """``active``: who asks, holds, or has something under way, by the names that the stores know. ``quick``: of which
    kind they are where every store runs code."""

    __slots__ = ("_at_rest", "_handles", "_kind", "_resting", "active", "agenda", "algorithms", "client", "t_max")

    quick: "ClassVar[type[Claimant]]" = QuickClaimant

    def __init__(self, stores: "tuple[Store, ...]", client: str, address: str, clock: "Callable[[], float]") -> None:
        Links.__init__(self, stores, address, clock)
        self.client = client
        self.t_max = min(store.t_max for store in stores)
        self.algorithms = tuple(find(store.kind)(Limits(self.t_max)) for store in stores)
        runs_code = all(store.kind in RUN_CODE for store in stores)
        self._kind: Callable[..., Claimant] = self.quick if runs_code else Claimant
        self._handles = 0
        self._be_empty()

    def _be_empty(self) -> None:
        self.active: dict[str, Claimant] = {}
        self.agenda = Agenda(self.active)
        self._at_rest: dict[str, list[Claimant]] = {}
        """By the resource that they asked for."""
        self._resting = 0

    def claimant(self, resource: str, terms: "Terms", info: str) -> Claimant:
        """Somebody to ask for this resource, whom nobody else uses."""
        at_rest = self._at_rest.get(resource)
        if at_rest:
            self._resting -= 1
            claimant = at_rest.pop()
            if not at_rest:
                del self._at_rest[resource]
        else:
            self._handles += 1
            claimant = self._kind(self, owner_name(self.client, self.address, self._handles), resource, terms)
        claimant.prepare(terms, info)
        self.active[claimant.owner] = claimant
        if claimant.timers:  # something of its last time is under way
            self.agenda.note_all(claimant)
        return claimant

    def retire(self, claimant: Claimant) -> None:
        """It has given everything back, or there is nothing more that it could do."""
        if claimant.hinting:
            claimant.hinting = False
            self.ignore_hints(claimant)
        if not claimant.is_busy:  # else it stays until its last release is answered
            self.rest(claimant)

    def rest(self, claimant: Claimant) -> None:
        """Nothing of it is left anywhere."""
        if self.active.pop(claimant.owner, None) is None:
            return
        if claimant.timers:
            claimant.timers.clear()
        if self._resting < MOST_AT_REST and not claimant.is_spent:
            self._resting += 1
            self._at_rest.setdefault(claimant.resource, []).append(claimant)

    def ignore_hints(self, claimant: Claimant) -> None:
        """It no longer waits."""
        raise NotImplementedError

    def called(self, owner: str) -> Claimant | None:
        """Whoever has this name: somebody at rest, perhaps, whom a store still has in its queue."""
        waiter = self.active.get(owner)
        if waiter is not None:
            return waiter
        return next((each for at_rest in self._at_rest.values() for each in at_rest if each.owner == owner), None)

    def forget(self) -> None:
        Links.forget(self)
        self._be_empty()
