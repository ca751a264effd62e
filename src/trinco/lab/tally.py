"""How many messages there have been whenever somebody asks or enters, and what follows from that.

Messages are counted between two moments that look alike (nobody is there, or the same crowd is), so that what the last
entry leaves behind is not missing and what goes on without any entry is not in the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from trinco.core.event import Event, Kind
from trinco.core.monitor import Monitor
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Mark:
    at: float
    node: int
    messages: int
    """Sent so far, by everybody."""


@dataclass(frozen=True, slots=True)
class Passage:
    """From one process' asking to its entering."""

    asked: Mark
    entered: Mark

    @property
    def delay(self) -> float:
        """In message times, as it was: messages to several go out together."""
        return self.entered.at - self.asked.at

    @property
    def sends(self) -> int:
        """All messages sent meanwhile: the delay as the slides count it, in which each waits for the one before."""
        return self.entered.messages - self.asked.messages


@dataclass
class Tally(Monitor):
    """Looks on at one simulation; it never complains."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.ACQUIRE, Kind.GRANT})
    simulation: Simulation
    requests: list[Mark] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    _asked: dict[int, Mark] = field(default_factory=dict)

    def observe(self, event: Event) -> str | None:
        messages = sum(sum(host.sent.values()) for host in self.simulation.hosts)
        mark = Mark(event.at, event.node, messages)
        if event.kind is Kind.ACQUIRE:
            self.requests.append(mark)
            self._asked[event.node] = mark
        elif event.node in self._asked:
            self.passages.append(Passage(self._asked.pop(event.node), mark))
        return None

    def counted(self, *, skip: int = 0) -> list[Passage]:
        """All but the first few, and but that of the last request, which stands for the end."""
        return [each for each in self.passages[skip:] if each.asked is not self.requests[-1]]

    def per_request(self, *, skip: int = 0) -> float | None:
        """Messages per entry from one request, the first or that many later, to the last."""
        return _rate(self.requests[skip:])

    def in_full_swing(self) -> "Swing":
        return Swing(self.passages, len(self.simulation.crowd.processes))


@dataclass(frozen=True)
class Swing:
    """The middle of a run in which everybody asks all the time: without its beginning, when nobody waits yet, and its
    end, when ever fewer ask. Over whole rounds, if there is one: then everybody is where it was."""

    passages: Sequence[Passage]
    processes: int

    @property
    def middle(self) -> Sequence[Passage]:
        half = len(self.passages) // 2
        rounds = half // self.processes * self.processes or half
        first = (len(self.passages) - rounds) // 2
        return self.passages[first : first + rounds + 1]

    def messages_per_entry(self) -> float | None:
        return _rate([each.entered for each in self.middle])

    def response(self) -> float | None:
        """From asking to leaving, on average, by Little's law: everybody either waits or is inside, all the time. So
        those count too that still wait."""
        marks = [each.entered for each in self.middle]
        return self.processes * (marks[-1].at - marks[0].at) / (len(marks) - 1) if len(marks) > 1 else None


def _rate(marks: Sequence[Mark]) -> float | None:
    """Messages for each step from one mark to the next."""
    return (marks[-1].messages - marks[0].messages) / (len(marks) - 1) if len(marks) > 1 else None


def tallied(scenario: Scenario) -> Tally:
    """Run a scenario with a tally."""
    tally = Tally(Simulation(scenario))
    tally.simulation.monitors.append(tally)
    tally.simulation.run()
    return tally
