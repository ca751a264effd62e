"""A counterexample: a path through the states, told as a trace like any other, and as a script that replays.

The script has one line a step (``p1 receives request(1) from p0``). A step is found again by its words, so a script can
be kept in a test, read by people and edited by hand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trinco.check.cells import Label
from trinco.check.environment import SHARED_CLOCK
from trinco.check.handlers import Event, Outcome
from trinco.check.search import Search, Violation
from trinco.check.steps import Step
from trinco.core.event import Kind
from trinco.core.message import Message, describe
from trinco.core.trace import FORMAT, Header, Recording


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
        case "tick":
            text = "clock ticks"
        case _:
            text = event.name
    if outcome.choices:
        text += f", choosing {' '.join(map(str, outcome.choices))}"
    if label.crashes:
        text += f", and crashes after {len(outcome.sends)} of its sends"
    return f"p{label.node} {text}" if label.node != SHARED_CLOCK else "time passes"


def line(step: Step) -> str:
    return "; ".join(map(words, step.labels))


def build(
    search: Search, states: Sequence[int], violation: Violation, protocol: str, cycle: Sequence[int] = ()
) -> Counterexample:
    """Tell the way along ``states`` and then once round ``cycle`` (both as the search found them)."""
    steps = list(_actual_steps(search, [*states, *cycle]))
    script = tuple(map(line, steps))
    outcomes = search.starts[states[0]]
    narrator = Narrator(search, protocol, outcomes)
    for step in steps:
        narrator.tell(step)
    return Counterexample(violation, script, narrator.recording, len(states) if cycle else None)


def _actual_steps(search: Search, states: Sequence[int]) -> Iterator[Step]:
    """The steps between the states. Under symmetry each state was renamed when it was found; undo that, so that p1
    stays p1 from the first line to the last."""
    if search.symmetry is None:
        for state, successor in pairwise(states):
            yield next(step for step in search.steps.of(state) if step.state == successor)
        return
    symmetry = search.symmetry
    names = tuple(range(len(search.model.nodes)))
    for state, successor in pairwise(states):
        found = next(step for step in search.steps.of(state) if symmetry.canonical(step.state) == successor)
        wanted = symmetry.rename(found.state, names)
        actual = symmetry.rename(state, names)
        yield next(step for step in search.steps.of(actual) if step.state == wanted)
        names = symmetry.undo_canonical(found.state, names)


class Narrator:
    """Writes steps down as the records of a trace. Time is the number of the step."""

    def __init__(self, search: Search, protocol: str, starts: Sequence[Outcome]) -> None:
        model = search.model
        self._search = search
        self._time = 0
        self._in_flight: dict[tuple[int, int], list[tuple[Message, int]]] = {}
        self._before = [outcome.local for outcome in starts]
        roles = tuple(type(node).__name__ for node in model.nodes)
        header = Header(FORMAT, protocol, len(model.nodes), model.k, roles, runtime="checker", finished=False)
        self.recording = Recording(header, [type(node) for node in model.nodes])
        for node, outcome in enumerate(starts):
            self._step(Label(node, Event("start"), outcome))

    def tell(self, step: Step) -> None:
        self._time += 1
        for label in step.labels:
            if label.event.kind == "tick":
                self._ticks(label.node)
            elif label.event.kind == "crash":
                self._record(label.node, Kind.CRASH)
            else:
                self._step(label)

    def _step(self, label: Label) -> None:
        node, event, outcome = label.node, label.event, label.outcome
        kind = _KINDS.get(event.kind) or _INPUTS.get(event.name, Kind.INPUT)
        cause = self._received(node, event) if kind is Kind.RECEIVE else None
        peer = event.source if kind is Kind.RECEIVE else None
        after = self._search.handlers.locals[outcome.local]
        fields = after.state[1:] if after.alive else None
        note = event.name if kind in (Kind.TIMER, Kind.INPUT) else None
        position = self._record(node, kind, peer, event.message, cause, note, fields=fields)
        for to, message in outcome.sends:
            sent = self._record(node, Kind.SEND, to, message, position)
            self._in_flight.setdefault((node, to), []).append((message, sent))
        for what, *detail in outcome.news:
            if what in _EFFECTS:
                self._effect(node, Kind(what), detail, position)
        if label.crashes:
            self._record(node, Kind.CRASH)
        self._before[node] = outcome.local

    def _effect(self, node: int, kind: Kind, detail: list[object], cause: int) -> None:
        token = detail[0] if kind is Kind.GRANT else None
        note = str(detail[0]) if kind in (Kind.REFUSE, Kind.LOST) else None
        peer = detail[0] if kind is Kind.ELECTED and isinstance(detail[0], int) else None
        self._record(node, kind, peer, None, cause, note, token)

    def _ticks(self, clock: int) -> None:
        """Time passed: for one drifting node, or for all that share a clock."""
        clocks = self._search.model.clocks
        drifting = clocks.drifting if clocks else frozenset()
        everybody = [node for node in range(len(self._before)) if node not in drifting]
        for node in everybody if clock == SHARED_CLOCK else [clock]:
            was = self._search.handlers.locals[self._before[node]]
            self._before[node] = self._search.handlers.ticked(self._before[node])
            now = self._search.handlers.locals[self._before[node]]
            if now != was:
                self._record(node, Kind.TICK, fields=now.state[1:] if now.alive else None)
            if was.believes and not now.believes:
                self._record(node, Kind.EXPIRE)

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
        records.append((float(self._time), node, kind, peer, message, cause, note, token, fields))
        return len(records) - 1


_KINDS = {"start": Kind.START, "deliver": Kind.RECEIVE, "timer": Kind.TIMER}
_INPUTS = {"acquire": Kind.ACQUIRE, "release": Kind.RELEASE}
_EFFECTS = frozenset({"grant", "refuse", "lost", "elected"})
