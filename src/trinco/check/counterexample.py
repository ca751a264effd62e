"""A counterexample: a path through the states, told as a trace like any other, and as a script that replays.

The script has one line a step (``p1 receives request(1) from p0``). A step is found again by its words, so a script can
be kept in a test, read by people and edited by hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trinco.check.cells import Label
from trinco.check.environment import SHARED_CLOCK
from trinco.check.handlers import Event, Outcome
from trinco.check.paths import Way
from trinco.check.search import Search, Violation
from trinco.check.steps import Step
from trinco.core.event import STEPS, Kind, kind_of_input
from trinco.core.message import Message, describe
from trinco.core.trace import FORMAT, Header, Record, Recording
from trinco.protocols.detection.perfect import CRASHED


@dataclass(frozen=True)
class Counterexample:
    violation: Violation
    script: tuple[str, ...]
    recording: Recording
    cycle_from: int | None = None
    """For a run that goes on for ever: the step at which what repeats begins."""


def words(label: Label) -> str:
    """One label as a line of a script."""
    event, outcome = label.event, label.outcome
    match event.kind:
        case "deliver":
            text = f"receives {describe(event.message)} from p{event.source}"
        case "timer":
            text = f"timer {event.name}"
        case "crash":
            return f"p{label.node} crashes"
        case "restart":
            text = "restarts"
        case "tick":
            text = "clock ticks"
        case _:
            text = event.name
    if outcome.choices:
        text += f", choosing {' '.join(map(str, outcome.choices))}"
    if label.crashes:
        stored = ", having stored" if outcome.stores else ""
        text += f", and crashes after {len(outcome.sends)} of its sends{stored}"
    return f"p{label.node} {text}" if label.node != SHARED_CLOCK else "time passes"


def line(step: Step) -> str:
    return "; ".join(map(words, step.labels))


def build(search: Search, path: Way, violation: Violation, protocol: str, cycle: Sequence[Step] = ()) -> Counterexample:
    """Tell the way along a path, and then once round a cycle that goes on for ever."""
    steps = [*path.steps, *cycle]
    narrator = Narrator(search, protocol, path.start, violation)
    for step in steps:
        narrator.tell(step)
    script = tuple(map(line, steps))
    return Counterexample(violation, script, narrator.recording, len(path.steps) + 1 if cycle else None)


class Narrator:
    """Writes steps down as the records of a trace. Time is the number of the step."""

    def __init__(self, search: Search, protocol: str, starts: Sequence[Outcome], violation: Violation) -> None:
        model = search.model
        self._search = search
        self._time = 0
        self._in_flight: dict[tuple[int, int], list[tuple[Message, int]]] = {}
        self._before = [outcome.local for outcome in starts]
        roles = tuple(type(node).__name__ for node in model.nodes)
        header = Header(
            format=FORMAT,
            protocol=protocol,
            n=len(model.nodes),
            k=model.k,
            roles=roles,
            runtime="checker",
            finished=False,
            byzantine=tuple(sorted(model.byzantine)),
            violation=f"{violation.kind}: {violation.text}",
        )
        self.recording = Recording(header, [type(node) for node in model.nodes])
        for node, outcome in enumerate(starts):
            self._step(Label(node, Event("start"), outcome))

    def tell(self, step: Step) -> None:
        self._time += 1
        for label in step.labels:
            if label.event.kind == "tick":
                self._ticks(label.node)
            elif label.event.kind == "crash":
                self._crash(label.node)
                self._before[label.node] = label.outcome.local
            else:
                self._step(label)

    def _step(self, label: Label) -> None:
        node, event, outcome = label.node, label.event, label.outcome
        kind = _KINDS.get(event.kind) or kind_of_input(event.name)
        cause = self._received(node, event) if kind is Kind.RECEIVE else None
        peer = event.source if kind is Kind.RECEIVE else None
        after = self._search.handlers.locals[outcome.local]
        fields = after.state[1:] if after.alive else None
        note = event.name if kind in (Kind.TIMER, Kind.INPUT) else None
        position = self._record(node, kind, peer, event.message, cause, note, fields=fields)
        for to, message in outcome.sends:
            sent = self._record(node, Kind.SEND, to, message, position)
            self._in_flight.setdefault((node, to), []).append((message, sent))
        for news in outcome.news:
            if news.kind not in STEPS:
                self._record(node, news.kind, news.peer, None, position, news.note, news.token)
        if label.crashes:
            self._crash(node)
        self._before[node] = outcome.local

    def _crash(self, node: int) -> None:
        position = self._record(node, Kind.CRASH)
        for to in self._search.cells.told_of_crashes:
            self._in_flight.setdefault((node, to), []).append((CRASHED, position))

    def _ticks(self, clock: int) -> None:
        """Time passed: for one drifting node, or for all that share a clock."""
        clocks = self._search.model.clocks
        drifting = clocks.drifting if clocks else frozenset()
        everybody = [node for node in range(len(self._before)) if node not in drifting]
        for node in everybody if clock == SHARED_CLOCK else [clock]:
            tick = self._search.cells.tick(self._before[node])
            if tick.local != self._before[node]:
                after = self._search.handlers.locals[tick.local]
                self._record(node, Kind.TICK, fields=after.state[1:] if after.alive else None)
            for news in tick.news:
                self._record(node, news.kind)
            self._before[node] = tick.local

    def _received(self, node: int, event: Event) -> int:
        """The send that a delivery belongs to: the oldest of that message in the channel."""
        channel = self._in_flight[event.source, node]
        for place, (message, sent) in enumerate(channel):
            if message == event.message:
                del channel[place]
                return sent
        raise AssertionError(f"{event} was never sent")

    def _record(
        self,
        node: int,
        kind: Kind,
        peer: int | None = None,
        message: Message | None = None,
        cause: int | None = None,
        note: str | None = None,
        token: object = None,
        fields: tuple[object, ...] | None = None,
    ) -> int:
        records = self.recording.records
        records.append(Record(float(self._time), node, kind, peer, message, cause, note, token, fields))
        return len(records) - 1


_KINDS = {"start": Kind.START, "deliver": Kind.RECEIVE, "timer": Kind.TIMER, "restart": Kind.RESTART}
