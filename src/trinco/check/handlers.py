"""One node's states and what its handlers do to them, each run once and remembered.

A *local state* is the node's snapshot with what the runtime keeps for it: phase, end of belief, timers, inputs left.
States and messages are interned to small ints, so that a run is remembered per (state, event): millions of
transitions need a few thousand handler runs.

``ctx.choose`` is branched on: the handler is run again with each choice, so an event has a *tuple* of outcomes.
Time is relative: now is always ``Instant(0)``, and a tick lowers every instant of a state by one, down to zero.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from trinco.check.model import Model, Timers
from trinco.core import contract, snapshot
from trinco.core.context import Context, Phase
from trinco.core.errors import ContractBroken
from trinco.core.event import Kind, kind_of_input
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.core.signed import forbid_forgery


class _Come(Instant):
    """An instant that has come. How long ago is not kept, so nothing can be said of a time after it."""

    __slots__ = ()

    def __add__(self, seconds: float) -> Instant:
        if seconds > 0:
            raise ContractBroken(
                "'stamp + seconds' has no answer in the checker, which keeps of the past only that it is past: keep a "
                "deadline, now + seconds"
            )
        return Instant(self.at + seconds)


class _Now(_Come):
    """Zero, always. Whether a deadline has come it can tell; how long ago is not kept, so it refuses to be asked. Who
    keeps it keeps a stamp: when the step is over it is an instant that has come."""

    __slots__ = ("is_over",)

    def __init__(self) -> None:
        Instant.__init__(self, 0)
        self.is_over = False

    def __add__(self, seconds: float) -> Instant:
        return _Come.__add__(self, seconds) if self.is_over else Instant(seconds)

    def __gt__(self, other: Instant) -> bool:
        raise ContractBroken("'deadline < now' has no answer in the checker: a deadline has come when deadline <= now")

    def __sub__(self, other: Instant) -> float:
        raise ContractBroken("'now - stamp' has no answer in the checker: keep a deadline, now + seconds, not a stamp")


NOW, COME = Instant(0), _Come(0)


class Local(NamedTuple):
    """Everything about one node but its inbox. Instants are relative to now."""

    state: snapshot.Snapshot
    phase: Phase = Phase.IDLE
    until: Instant | None = None
    timers: tuple[tuple[str, Instant], ...] = ()
    fired: tuple[tuple[str, int], ...] = ()
    left: tuple[tuple[str, int | None], ...] = ()
    stored: Any = None
    alive: bool = True
    broken: str | None = None
    """What it did that the contract forbids; its name stands nowhere, since symmetry may change it."""

    @property
    def believes(self) -> bool:
        """Inside, and if it is a lease, not yet run out."""
        return self.phase is Phase.INSIDE and (self.until is None or self.until > NOW)


class Event(NamedTuple):
    """What may happen to a node: an input by name, a delivery, a timer, a tick, a crash after some of its sends, a
    restart."""

    kind: str
    name: str = ""
    source: int = -1
    message: Message | None = None


class News(NamedTuple):
    """Something in a step that can be seen from outside, as the trace will tell it."""

    kind: Kind
    peer: int | None = None
    note: str | None = None
    token: Any = None


class Outcome(NamedTuple):
    """One way an event can go: the state after it, what was sent, and what the world can see of it."""

    local: int
    sends: tuple[tuple[int, Message], ...] = ()
    news: tuple["News", ...] = ()
    choices: tuple[int, ...] = ()
    stores: tuple[tuple[int, Any], ...] = ()
    """(after how many of the sends, what) was stored."""
    armed: tuple[str, ...] = ()
    """The timers that it set, anew or again."""


class Recorder(Context):
    """The context of the checker: writes down what a handler does, plays back the choices it is told to make."""

    __slots__ = (
        "arities",
        "armed",
        "choices",
        "clock",
        "me",
        "news",
        "phase",
        "sends",
        "stored",
        "stores",
        "timers",
        "unasked",
        "until",
    )

    def __init__(self, me: int, local: Local, choices: tuple[int, ...]) -> None:
        self.me = me
        self.phase = local.phase
        self.until = local.until
        self.clock = _Now()
        self.timers = dict(local.timers)
        self.armed: list[str] = []
        self.stored = local.stored
        self.choices = choices
        self.arities: list[int] = []
        self.sends: list[tuple[int, Message]] = []
        self.stores: list[tuple[int, Any]] = []
        self.news: list[News] = []
        self.unasked = False

    def send(self, to: int, message: Message) -> None:
        self.sends.append((to, message))

    def set_timer(self, name: str, delay: float) -> None:
        self.timers[name] = NOW + delay
        self.armed.append(name)

    def cancel_timer(self, name: str) -> None:
        self.timers.pop(name, None)

    def choose(self, options: int) -> int:
        contract.require_choice(self.me, options)
        position = len(self.arities)
        self.arities.append(options)
        return self.choices[position] if position < len(self.choices) else 0

    def wall_clock(self) -> int:
        return 0

    def now(self) -> Instant:
        return self.clock

    def store(self, value: Any) -> None:
        self.stored = value
        self.stores.append((len(self.sends), value))

    def grant(self, token: Any = None, until: Instant | None = None) -> None:
        renews = self.phase is Phase.INSIDE and until is not None
        self.unasked |= self.phase is not Phase.WAITING and not renews
        self.news.append(News(Kind.RENEW if renews else Kind.GRANT, token=token))
        self.phase = Phase.INSIDE
        self.until = until

    def refuse(self, reason: str) -> None:
        self._leave(Kind.REFUSE, reason)

    def lost(self, reason: str) -> None:
        self._leave(Kind.LOST, reason)

    def elected(self, leader: int) -> None:
        self.news.append(News(Kind.ELECTED, peer=leader))

    def _leave(self, kind: Kind, reason: str) -> None:
        self.news.append(News(kind, note=reason))
        self.phase = Phase.IDLE
        self.until = None


class Handlers:
    """Runs handlers on interned states. ``runs`` counts how many were really run."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.locals: list[Local] = []
        self.runs = 0
        kinds = {type(node) for node in model.nodes} if model.reductions else set()
        self._settling = frozenset(kind for kind in kinds if hasattr(kind, "settle"))
        self._watched = frozenset(me for me, node in enumerate(model.nodes) if snapshot.can_hide(node))
        """Who has room for state that no snapshot would have."""
        self._ids: dict[Local, int] = {}
        self._outcomes: list[dict[tuple[int, Event], tuple[Outcome, ...]]] = []

    def intern(self, local: Local) -> int:
        known = self._ids.get(local)
        if known is None:
            known = self._ids[local] = len(self.locals)
            self.locals.append(local)
            self._outcomes.append({})
        return known

    def first(self, me: int, node: Node) -> tuple[Outcome, ...]:
        """The states in which a node may start."""
        contract.forbid_hidden_state(me, node)
        called = self.model.called is None or me in self.model.called
        left = tuple((name, count) for name, count in self.model.inputs.items() if called and hasattr(node, name))
        return self._branches(me, Local(snapshot.take(node), left=left), Event("start"))

    def outcomes(self, me: int, local: int, event: Event) -> tuple[Outcome, ...]:
        of_state = self._outcomes[local]
        key = (me, event)
        known = of_state.get(key)
        if known is None:
            known = of_state[key] = self._branches(me, self.locals[local], event)
        return known

    def crashed(self, local: int) -> int:
        """Where a node ends that falls silent in this state: nothing of it is left but what it stored."""
        was = self.locals[local]
        return self.dead(local, was.stored)

    def dead(self, local: int, stored: Any) -> int:
        """``local`` is the state that it would be in, had it not crashed in the middle of its last step."""
        was = self.locals[local]
        left = was.left if self.model.restarts else ()
        return self.intern(Local((was.state[0],), left=left, stored=stored, alive=False))

    def ticked(self, local: int) -> int:
        """The same state one tick later."""
        was = self.locals[local]
        later = was._replace(
            state=sink_instants(was.state),
            until=sink_instants(was.until),
            timers=sink_instants(was.timers),
            stored=sink_instants(was.stored),
        )
        return self.intern(self._settled(later))

    def _branches(self, me: int, local: Local, event: Event) -> tuple[Outcome, ...]:
        """Depth first over the choices: run, and for each choice that was made by default, run with the others."""
        outcomes = []
        scripts: list[tuple[int, ...]] = [()]
        while scripts:
            script = scripts.pop()
            outcome, arities = self._run(me, local, event, script)
            made = script + (0,) * (len(arities) - len(script))
            outcomes.append(outcome._replace(choices=made))
            for position in range(len(script), len(arities)):
                scripts += [(*made[:position], option) for option in range(1, arities[position])]
        return tuple(outcomes)

    def _run(self, me: int, local: Local, event: Event, script: tuple[int, ...]) -> tuple[Outcome, list[int]]:
        self.runs += 1
        node = snapshot.restore(local.state if local.alive else snapshot.take(self.model.nodes[me]))
        context = Recorder(me, local, script)
        left, fired = local.left, local.fired
        match event.kind:
            case "start":
                node.on_start(context)
            case "deliver":
                assert event.message is not None
                node.on_message(context, event.source, event.message)
            case "timer":
                del context.timers[event.name]
                fired = _counted(fired, event.name)
                node.on_timer(context, event.name)
            case "restart":
                node.on_restart(context, local.stored)
            case "input":
                left = _spent(left, event.name)
                _call_input(context, node, event.name)
        context.clock.is_over = True
        self._hold_to_the_contract(me, node, context)
        forbid_forgery(me, (local.state, local.stored, event.message), (node, context.stored, context.sends))
        after = self._settled(_after(context, node, left, fired, self.model.timers))
        news = (*_input_news(event), *context.news)
        try:
            number = self.intern(after)
            hash(tuple(context.sends))
        except TypeError:
            contract.refuse_mutable(me, node, context.stored, [message for _, message in context.sends])
        armed = tuple(context.armed)
        return Outcome(number, tuple(context.sends), news, (), tuple(context.stores), armed), context.arities

    def _hold_to_the_contract(self, me: int, node: Node, context: Recorder) -> None:
        for to, message in context.sends:
            contract.require_send(me, to, message, len(self.model.nodes))
        if me in self._watched:
            contract.forbid_hidden_state(me, node)

    def _settled(self, local: Local) -> Local:
        """Forget what has expired, where the class knows how: dead data would tell equal states apart."""
        if local.state[0] not in self._settling or not local.alive:
            return local
        node = snapshot.restore(local.state)
        node.settle(Recorder(-1, local, ()))
        return local._replace(state=snapshot.take(node))

    def ignores(self, local: int, message: Message) -> bool:
        return bool(snapshot.restore(self.locals[local].state).ignores(message))

    def armed(self, local: Local) -> tuple[str, ...]:
        """The timers that may fire now."""
        if not local.timers:
            return ()
        fired = dict(local.fired)
        return tuple(name for name in self._due(local) if fired.get(name, 0) < self.model.fires)

    def used_up(self, local: Local) -> tuple[str, ...]:
        """The timers that would fire now, and have done so as often as the model lets them."""
        if not local.timers:
            return ()
        fired = dict(local.fired)
        return tuple(name for name in self._due(local) if fired.get(name, 0) >= self.model.fires)

    def _due(self, local: Local) -> Iterator[str]:
        return (name for name, at in local.timers if self.model.timers is Timers.ANY or at <= NOW)


def _input_news(event: Event) -> tuple[News, ...]:
    """That somebody asked, left, or called another input, is to be seen from outside."""
    if event.kind != "input":
        return ()
    kind = kind_of_input(event.name)
    return (News(kind, note=event.name if kind is Kind.INPUT else None),)


def _call_input(context: Recorder, node: Any, name: str) -> None:
    if name == "acquire":
        context.phase = Phase.WAITING
    if name == "release":
        context.phase, context.until = Phase.IDLE, None
    contract.input_of(context.me, node, name)(context)


def _after(
    context: Recorder,
    node: Node,
    left: tuple[tuple[str, int | None], ...],
    fired: tuple[tuple[str, int], ...],
    timers: Timers,
) -> Local:
    if timers is Timers.ANY:  # when it is due makes no difference, so it must not tell states apart
        context.timers = dict.fromkeys(context.timers, Instant(0))
    return Local(
        state=snapshot.take(node),
        phase=context.phase,
        until=context.until,
        timers=tuple(sorted(context.timers.items())),
        fired=fired,
        left=left,
        stored=context.stored,
        broken="entered without having asked" if context.unasked else None,
    )


def _spent(left: tuple[tuple[str, int | None], ...], name: str) -> tuple[tuple[str, int | None], ...]:
    return tuple((each, count - 1 if each == name and count is not None else count) for each, count in left)


def _counted(fired: tuple[tuple[str, int], ...], name: str) -> tuple[tuple[str, int], ...]:
    counts = dict(fired)
    counts[name] = counts.get(name, 0) + 1
    return tuple(sorted(counts.items()))


def sink_instants(value: Any) -> Any:
    """The same value one tick later: every instant is one closer to now, and the past is all one."""
    if isinstance(value, Instant):
        return Instant(value.at - 1) if value.at > 1 else COME
    if value.__class__ is tuple:
        return tuple(map(sink_instants, value))
    if value.__class__ is frozenset:
        return frozenset(map(sink_instants, value))
    names = snapshot.parts_of_value(value.__class__)
    return snapshot.with_parts(value, [sink_instants(getattr(value, name)) for name in names]) if names else value
