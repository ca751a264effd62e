"""Everything that decides a run, as one value: the same scenario gives the same trace, here and on any machine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trinco.core.claims import Claims, Network, letters_of
from trinco.core.errors import BeyondClaims, UsageError
from trinco.core.monitor import Monitor, claimed
from trinco.core.node import Node
from trinco.sim import faults as faults_module
from trinco.sim.faults import Chaos, Crash, Fault, Partition
from trinco.sim.links import Links
from trinco.sim.workload import Closed, Elections, Workload


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """``build`` makes the nodes for a number n; it must be importable, so that scenarios can be sent to other
    processes. ``byzantine`` turns single nodes into liars: the class to use in place of the honest one."""

    protocol: str
    build: Callable[[int], Sequence[Node]]
    claims: Claims
    n: int
    seed: int = 0
    workload: Workload | Elections = field(default_factory=Closed)
    links: Links = field(default_factory=Links)
    faults: tuple[Fault, ...] = ()
    chaos: Chaos | None = None
    byzantine: Mapping[int, type[Node]] = field(default_factory=dict)
    letters: Mapping[str, float] = field(default_factory=dict)
    """Values for the letters in the claims' formulas other than n."""
    until: float = 1e9
    max_events: int = 20_000_000
    patience: float | None = None
    """The longest that anybody may wait, in virtual time, if that is to be a property."""
    trace: bool = True
    beyond_claims: bool = False

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"n must be at least 1, not {self.n}")
        if self.until <= 0 or self.max_events < 1:
            raise UsageError("a run needs some time and some events")
        if self.patience is not None and not self.patience > 0:
            raise UsageError(f"patience must be above 0, not {self.patience:g}")
        faults_module.validate(self.faults, self.n)
        linked = [node for link in self.links.per_link for node in link]
        strangers = [node for node in (*self.byzantine, *linked) if not 0 <= node < self.n]
        if strangers:
            raise UsageError(f"there is no node {strangers[0]}; the nodes are 0 to {self.n - 1}")
        beyond = self.beyond()
        if beyond and not self.beyond_claims:
            raise BeyondClaims(
                f"{self.protocol} does not claim to survive {beyond}; to see what happens, go beyond the claims"
            )

    @property
    def values(self) -> dict[str, float]:
        """The letters of the claims' formulas."""
        return {**letters_of(self.build, self.n), **self.letters}

    def monitors(self) -> list[Monitor]:
        """Over what the paper claims, and over what else the system says must hold (``monitors(n)``)."""
        own = self.build.monitors(self.n) if hasattr(self.build, "monitors") else []
        return [*claimed(self.claims, **self.values), *own]

    def beyond(self) -> str | None:
        """The first thing in this scenario that the paper does not promise to survive."""
        crashes = len({fault.node for fault in self.faults if isinstance(fault, Crash)})
        crashes += min(self.chaos.crashes, self.n) if self.chaos else 0
        survived = self.claims.crashes.high(**self.values)
        if crashes > survived:
            return f"{crashes} crash{'es' * (crashes > 1)} (claimed: {survived:g})"
        liars = self.claims.byzantine.high(**self.values)
        if len(self.byzantine) > liars:
            return f"{len(self.byzantine)} Byzantine node{'s' * (len(self.byzantine) > 1)} (claimed: {liars:g})"
        return self._beyond_roles() or self._beyond_network()

    def _beyond_roles(self) -> str | None:
        for role, most in self.claims.liars.items():
            places, claimed = self.claims.places(role, **self.values), most.high(**self.values)
            lying = sum(node in places for node in self.byzantine)
            if lying > claimed:
                return f"{lying} Byzantine {role}s (claimed: {claimed:g})"
        return None

    def _beyond_network(self) -> str | None:
        drops = any(isinstance(fault, Partition) and fault.drops for fault in self.faults)
        lossy = self.links.loss or self.links.duplication or drops
        needed = Network.LOSSY if lossy else Network.FIFO if self.links.ordered else Network.UNORDERED
        claimed = self.claims.network
        if needed.misbehaviour <= claimed.misbehaviour:
            return None
        return f"a network that is worse than '{claimed.value}': this one is '{needed.value}'"

    def with_changes(self, **changes: object) -> "Scenario":
        return replace(self, **changes)  # type: ignore[arg-type]
