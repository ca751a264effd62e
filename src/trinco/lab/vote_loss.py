"""How likely it is that coordinators which forget their votes let two in: the slides' gap S-3, after Lin et al. 2004.

A client holds the votes of v of m coordinators. If so many of them are reset meanwhile that the others and they make v
again, a second client gets in: f resets are enough when m - v + f >= v. Each is reset with probability p = dt/T, the
time inside over the mean time between two resets. ``table`` has the formula for the sizes and rates of the textbook;
``simulate`` lets two clients of the real protocol meet, resets coordinators at random, and counts.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, fsum

from trinco.core.errors import UsageError
from trinco.protocols.permission.voting import CLAIMS, VotingSystem
from trinco.sim.faults import Crash, Fault, Restart
from trinco.sim.laws import Constant
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted

SIZES = ((8, 5), (8, 6), (16, 9), (16, 12), (32, 17), (32, 24))
"""(m, v): a bare majority, and three quarters."""
HOUR = 3600.0
RATES = (3 / HOUR, 30 / HOUR)
"""Seconds away in every hour."""


@dataclass(frozen=True)
class Loss:
    """The chance that two get in where v of m votes are needed and each coordinator is reset with probability p."""

    m: int
    v: int
    p: float
    probability: float


@dataclass(frozen=True)
class Measured:
    """The same, counted: in how many trials two were inside together."""

    m: int
    v: int
    p: float
    trials: int
    violations: int
    predicted: float

    @property
    def share(self) -> float:
        return self.violations / self.trials


def probability(m: int, v: int, p: float) -> float:
    """That at least 2v - m of the v that gave their votes are reset."""
    if not m < 2 * v <= 2 * m:
        raise UsageError(f"{v} of {m} votes: it takes more than half, and there are no more than {m}")
    if not 0 <= p <= 1:
        raise UsageError(f"p is a chance: at least 0 and at most 1, not {p:g}")
    return fsum(comb(v, f) * p**f * (1 - p) ** (v - f) for f in range(2 * v - m, v + 1))


def table(sizes: Iterable[tuple[int, int]] = SIZES, rates: Iterable[float] = RATES) -> list[Loss]:
    sizes = tuple(sizes)
    return [Loss(m, v, p, probability(m, v, p)) for p in rates for m, v in sizes]


def simulate(
    sizes: Iterable[tuple[int, int]] = ((8, 5), (8, 6), (16, 9), (16, 12)),
    p: float = 0.25,
    trials: int = 400,
    seed: int = 0,
) -> list[Measured]:
    """With p so large that there is something to count. The same seed gives the same rows."""
    return [_measure(m, v, p, trials, seed) for m, v in sizes]


def _measure(m: int, v: int, p: float, trials: int, seed: int) -> Measured:
    predicted = probability(m, v, p)
    chance = random.Random(f"{seed}/{m}/{v}/{p}")
    violations = sum(_two_get_in(m, v, _resets(chance, m, p)) for _ in range(trials))
    return Measured(m, v, p, trials, violations, predicted)


BEGIN, END = 4.0, 5.0
"""When coordinators are reset: the first client is inside, the second has backed off."""


def _resets(chance: random.Random, m: int, p: float) -> tuple[Fault, ...]:
    """A coordinator that is reset is back at once, and knows nothing: it has stored nothing."""
    reset = [node for node in range(m) if chance.random() < p]
    times = [(node, chance.uniform(BEGIN, END)) for node in reset]
    return tuple(fault for node, at in times for fault in (Crash(node, at), Restart(node, at)))


def _two_get_in(m: int, v: int, resets: Sequence[Fault]) -> bool:
    """Both clients ask at 0. The first is quicker to v coordinators and enters with exactly their votes; the second is
    quicker to the others, gives their votes back, and tries again after the resets, while the first is still inside."""
    first, second = m, m + 1
    slower = {(first if node >= v else second, node): Constant(1.5) for node in range(m)}
    scenario = Scenario(
        protocol="voting",
        build=VotingSystem(m, v, slot=END, doublings=0),
        claims=CLAIMS,
        n=m + 2,
        workload=Scripted(((first, 0.0, 4 * END), (second, 0.0, 0.0))),
        links=Links(per_link=slower),
        faults=tuple(resets),
        until=3 * END,
        trace=False,
        beyond_claims=True,
    )
    return run(scenario).violation is not None
