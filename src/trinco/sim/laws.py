"""Laws of chance for delays, holding and thinking times. Each draws from the generator it is handed."""

import math
import random
from dataclasses import dataclass
from typing import Protocol

from trinco.core.errors import UsageError


class Law(Protocol):
    def draw(self, rng: random.Random) -> float: ...


def _not_negative(law: object, *numbers: float) -> None:
    for number in numbers:
        if not (number >= 0 and math.isfinite(number)):
            raise UsageError(f"{type(law).__name__.lower()}: {number:g} is not a time; give 0 or more")


@dataclass(frozen=True)
class Constant:
    value: float

    def __post_init__(self) -> None:
        _not_negative(self, self.value)

    def draw(self, rng: random.Random) -> float:
        return self.value


@dataclass(frozen=True)
class Uniform:
    low: float
    high: float

    def __post_init__(self) -> None:
        _not_negative(self, self.low, self.high)
        if self.low > self.high:
            raise UsageError(f"uniform: the lower end {self.low:g} lies above the upper end {self.high:g}")

    def draw(self, rng: random.Random) -> float:
        return self.low + (self.high - self.low) * rng.random()


@dataclass(frozen=True)
class Exponential:
    mean: float

    def __post_init__(self) -> None:
        _not_negative(self, self.mean)

    def draw(self, rng: random.Random) -> float:
        return -self.mean * math.log(1.0 - rng.random())


WIDEST = 50.0
"""Ten deviates of that are e to the 500."""


@dataclass(frozen=True)
class Lognormal:
    """``median`` times e to a normal deviate of width ``sigma``: most messages quick, a long tail of slow ones."""

    median: float
    sigma: float

    def __post_init__(self) -> None:
        _not_negative(self, self.median, self.sigma)
        if self.sigma > WIDEST:
            raise UsageError(f"a lognormal law is at most {WIDEST:g} wide, not {self.sigma:g}: it would overflow")

    def draw(self, rng: random.Random) -> float:
        return self.median * math.exp(self.sigma * rng.normalvariate(0.0, 1.0))


_LAWS: dict[str, tuple[type[Constant | Uniform | Exponential | Lognormal], int]] = {
    "constant": (Constant, 1),
    "uniform": (Uniform, 2),
    "exponential": (Exponential, 1),
    "lognormal": (Lognormal, 2),
}


def parse(text: str) -> Law:
    """``1.5``, ``constant:1.5``, ``uniform:0.5,1.5``, ``exponential:2`` or ``lognormal:1,0.5``."""
    name, _, rest = text.rpartition(":")
    name = name or "constant"
    if name not in _LAWS:
        raise UsageError(f"'{text}': there is no law '{name}'; the laws are {', '.join(_LAWS)}")
    law, arity = _LAWS[name]
    try:
        numbers = [float(number) for number in rest.split(",")]
    except ValueError:
        where = "" if rest == text else f"'{text}': "
        raise UsageError(f"{where}'{rest}' is not a number") from None
    if len(numbers) != arity:
        raise UsageError(f"'{text}': {name} takes {arity} number{'s' * (arity > 1)}, not {len(numbers)}")
    return law(*numbers)
