"""A simulated node: the protocol's class in a virtual machine that can be crashed, paused, traced and watched.

:class:`Host` is the context that the node is handed. It can do everything; runs that need less have ``quiet_host``.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from trinco.core import contract, snapshot
from trinco.core.context import Context, Phase
from trinco.core.event import Kind, kind_of_input
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.core.signed import forbid_forgery
from trinco.sim.kernel import Appointment

if TYPE_CHECKING:
    from trinco.sim.simulation import Simulation


class Died(Exception):
    """The node crashed in the middle of a step. Unwinds the handler; never leaves the host."""


class SentMessages(dict[type, int]):
    """How many were sent of each class. Only a message is counted: the first of another class is a KeyError."""

    __slots__ = ()

    def __missing__(self, kind: type) -> int:
        if not issubclass(kind, Message):
            raise KeyError(kind)
        return 0


class Host(Context):
    __slots__ = (
        "_fields",
        "_held",
        "_kernel",
        "_offset",
        "_rate",
        "_records",
        "_sim",
        "_timers",
        "_until",
        "_wires",
        "alive",
        "dies_after",
        "guarded",
        "honest",
        "me",
        "node",
        "pauses",
        "phase",
        "renewals",
        "sends_left",
        "sent",
        "step",
        "stored",
        "term",
        "up",
    )

    def __init__(self, sim: "Simulation", me: int, node: Node, honest: bool) -> None:
        self._sim = sim
        self._kernel = sim.kernel
        self._wires = sim.wires
        self._records = sim.recording.records if sim.recording else None
        self._fields: Callable[[Any], tuple[Any, ...]] = snapshot.reader(node)
        self._timers: dict[str, int] = {}
        self._held: list[tuple[Callable[[Any, Any, Any], None], Any, Any, Any]] = []
        self._rate, self._offset = 1.0, 0.0
        self._until: Instant | None = None
        """When a lease that has not run out yet will, by the node's own clock."""
        self.me = me
        self.node = node
        self.honest = honest
        self.phase = Phase.IDLE
        self.up = True
        """Alive and not paused: ready to handle what comes in."""
        self.alive = True
        self.pauses = 0
        """How many pauses it is in: they may overlap."""
        self.stored: Any = None
        self.step: int | None = None
        """Where the step that is going on stands in the trace."""
        self.term = 0
        """Counts entries, so that a leaving knows whether it is still meant."""
        self.renewals = 0
        """Counts grants, renewals and changes of the clock, so that an expiry knows the same."""
        self.guarded = not honest
        """Whether a step may end in death or in forgery, and must be looked at closely."""
        self.dies_after: int | None = None
        """In the first step that sends more than so many messages, if it is to die in a multi-send."""
        self.sends_left = 0
        """How many of them are left in this step."""
        self.sent = SentMessages()

    # Events that come in

    def receive(self, source: int, message: Message, cause: int | None) -> None:
        """The one step that happens all the time: ``_run``, unrolled for a node in good health whose trace is kept."""
        records = self._records
        if not self.up:
            self._not_up(self.receive, source, message, cause)
        elif records is None or self.guarded:
            self._run(Kind.RECEIVE, source, message, cause, None, self.node.on_message, source, message)
        else:
            self.step = position = len(records)
            records.append(())
            node = self.node
            node.on_message(self, source, message)
            records[position] = (
                self._kernel.now, self.me, _RECEIVE, source, message, cause, None, None, self._fields(node),
            )  # fmt: skip

    def start(self, _a: Any = None, _b: Any = None, _c: Any = None) -> None:
        self._run(Kind.START, None, None, None, None, self.node.on_start)

    def call(self, name: str, _b: Any = None, _c: Any = None) -> None:
        """An input of the environment: acquire, release, or one that the protocol adds."""
        if not self.up:
            self._not_up(self.call, name, None, None)
            return
        kind, handler = kind_of_input(name), contract.input_of(self.me, self.node, name)
        if kind is Kind.RELEASE and self.phase is not Phase.INSIDE:
            return  # it was lost while the node was paused
        if kind is Kind.ACQUIRE:
            self.phase = Phase.WAITING
        if kind is Kind.RELEASE:
            self.phase = Phase.IDLE
        self._sim.observe(self, kind)
        self._run(kind, None, None, None, name if kind is Kind.INPUT else None, handler)

    def fire(self, name: str, number: int, _c: Any) -> None:
        if self._timers.get(name) != number:
            return
        if not self.up:
            self._not_up(self.fire, name, number, None)
            return
        del self._timers[name]
        self._run(Kind.TIMER, None, None, None, name, self.node.on_timer, name)

    def _run(
        self,
        kind: Kind,
        peer: int | None,
        message: Message | None,
        cause: int | None,
        note: str | None,
        handler: Callable[..., None],
        *arguments: Any,
    ) -> None:
        """One step: the handler, and its line in the trace, which stands before those of its effects."""
        records = self._records
        if records is None:
            self._guarded(handler, message, arguments)
            return
        self.step = position = len(records)
        records.append(())
        self._guarded(handler, message, arguments)
        records[position] = (
            self._kernel.now, self.me, kind, peer, message, cause, note, None, self._fields(self.node),
        )  # fmt: skip

    def _guarded(self, handler: Callable[..., None], message: Message | None, arguments: tuple[Any, ...]) -> None:
        """A step that may end in death, or in which a liar might try to forge."""
        if self.dies_after is not None:
            self.sends_left = self.dies_after
        known = () if self.honest else (snapshot.take(self.node), self.stored, message, *arguments)
        self._sim.liar_sent.clear()
        try:
            handler(self, *arguments)
        except Died:
            self.crash()
        if not self.honest:
            forbid_forgery(self.me, known, (self.node, self.stored, self._sim.liar_sent))

    # Effects that go out

    def send(self, to: int, message: Message) -> None:
        if self.guarded:
            self._before_send(message)
        records, kernel, me = self._records, self._kernel, self.me
        try:
            receive = self._sim.receive[to]
            if to != me:
                self.sent[message.__class__] += 1
            elif not isinstance(message, Message):
                raise TypeError(message)
        except (LookupError, TypeError):
            self._refuse_send(message, to)
        now = kernel.now
        position = None
        if records is not None:
            position = len(records)
            records.append((now, me, _SEND, to, message, self.step, None, None, None))
        if to == me:
            kernel.schedule(now, receive, me, message, position)
            return
        delay = self._wires.steady_delay
        if delay is not None:
            kernel.schedule(now + delay, receive, me, message, position)
            return
        arrivals = self._wires.arrivals(me, to, now)
        for at in arrivals:
            kernel.schedule(at, receive, me, message, position)
        if not arrivals and records is not None:
            records.append((now, me, Kind.DROP, to, message, position, "lost on the way", None, None))

    def broadcast(self, message: Message, to: Iterable[int]) -> None:
        """As one ``send`` each, all at once where nothing can come between them."""
        records, delay = self._records, self._wires.steady_delay
        if records is None or delay is None or self.guarded:
            Context.broadcast(self, message, to)
            return
        me, step, now, receive, first = self.me, self.step, self._kernel.now, self._sim.receive, len(records)
        receivers = [node for node in to if node != me]
        try:
            appointments: list[Appointment] = [
                (receive[node], me, message, cause) for cause, node in enumerate(receivers, first)
            ]
            self.sent[message.__class__] += len(receivers)
        except (LookupError, TypeError):
            self._refuse_send(message, *receivers)
        records += [(now, me, _SEND, node, message, step, None, None, None) for node in receivers]
        self._kernel.schedule_all(now + delay, appointments)

    def _refuse_send(self, message: Any, *receivers: Any) -> NoReturn:
        """Where a receiver or the class of a message was not found: to look only then costs nothing."""
        for to in receivers or (self.me,):
            contract.require_send(self.me, to, message, len(self._sim.receive))
        raise AssertionError(f"{message!r} to {receivers} was refused, and nothing is wrong with it")

    def _before_send(self, message: Message) -> None:
        if self.dies_after is not None:
            if not self.sends_left:
                raise Died
            self.sends_left -= 1
        if not self.honest:
            self._sim.liar_sent.append(message)

    def set_timer(self, name: str, delay: float) -> None:
        number = self._timers[name] = next(self._sim.timer_numbers)
        self._kernel.schedule(self._kernel.now + max(delay, 0.0) / self._rate, self.fire, name, number)

    def cancel_timer(self, name: str) -> None:
        self._timers.pop(name, None)

    def choose(self, options: int) -> int:
        contract.require_choice(self.me, options)
        return self._sim.chance.randrange(options)

    def now(self) -> Instant:
        return Instant(self._offset + self._rate * self._kernel.now)

    def wall_clock(self) -> int:
        return int(self.now().at * 1_000_000)

    def store(self, value: Any) -> None:
        self.stored = value

    def grant(self, token: Any = None, until: Instant | None = None) -> None:
        kind = Kind.RENEW if self.phase is Phase.INSIDE and until is not None else Kind.GRANT
        self.phase = Phase.INSIDE
        self.term += kind is Kind.GRANT
        self.renewals += 1
        self._effect(kind, token=token)
        self._believe(until)

    def _believe(self, until: Instant | None) -> None:
        """Until when this process takes itself to be inside, by its own clock as it runs at present."""
        self._until = until
        if until is not None:
            at = (until.at - self._offset) / self._rate
            self._kernel.schedule(max(at, self._kernel.now), self._expire, self.renewals)

    def refuse(self, reason: str) -> None:
        self.phase = Phase.IDLE
        self._effect(Kind.REFUSE, note=reason)

    def lost(self, reason: str) -> None:
        self.phase = Phase.IDLE
        self._effect(Kind.LOST, note=reason)

    def elected(self, leader: int) -> None:
        self._effect(Kind.ELECTED, peer=leader)

    def _effect(self, kind: Kind, peer: int | None = None, note: str | None = None, token: Any = None) -> None:
        if self._records is not None:
            self._records.append((self._kernel.now, self.me, kind, peer, None, self.step, note, token, None))
        self._sim.observe(self, kind, token, peer)

    def _expire(self, renewals: int, _b: Any, _c: Any) -> None:
        """A lease ran out. The process still has to say that it leaves; until then it only no longer counts."""
        if renewals == self.renewals and self.phase is Phase.INSIDE:
            self.step = self._until = None
            self._effect(Kind.EXPIRE)

    # Faults

    def crash(self, _a: Any = None, _b: Any = None, _c: Any = None) -> None:
        if not self.alive:
            return
        self.alive = self.up = False
        self.pauses = 0
        self.dies_after = None
        self.guarded = not self.honest
        self.phase = Phase.IDLE
        self.term += 1
        self._timers.clear()
        self._held.clear()
        self.step = None
        position = len(self._records) if self._records is not None else None
        self._effect(Kind.CRASH)
        self._sim.announce_crash(self.me, position)

    def crash_after_sends(self, sends: int, _b: Any, _c: Any) -> None:
        if self.alive:
            self.dies_after = sends
            self.guarded = True

    def restart(self) -> None:
        if self.alive:
            return
        self.alive = self.up = True
        self.node = self._sim.fresh_node(self.me)
        self._sim.observe(self, Kind.RESTART)
        self._run(Kind.RESTART, None, None, None, None, self.node.on_restart, self.stored)

    def pause(self, _a: Any, _b: Any, _c: Any) -> None:
        if not self.alive:
            return
        self.pauses += 1
        if self.pauses == 1:
            self.up = False
            self.step = None
            self._effect(Kind.PAUSE)

    def resume(self, _a: Any, _b: Any, _c: Any) -> None:
        if not self.pauses:
            return
        self.pauses -= 1
        if self.pauses:
            return
        self.up = True
        self.step = None
        self._effect(Kind.RESUME)
        held, self._held = self._held, []
        for call, a, b, c in held:
            call(a, b, c)

    def drift(self, rate: float, offset: float, _c: Any = None) -> None:
        """Change the clock's speed from now on, and let it jump. Timers keep their time; a lease ends by the clock."""
        self._offset += (self._rate - rate) * self._kernel.now + offset
        self._rate = rate
        if self._until is not None and self.phase is Phase.INSIDE:
            self.renewals += 1
            self._believe(self._until)

    def _not_up(self, call: Callable[[Any, Any, Any], None], a: Any, b: Any, c: Any) -> None:
        """Keep what comes in during a pause; what comes to a dead node is gone."""
        if self.pauses:
            self._held.append((call, a, b, c))
        elif self._records is not None and call == self.receive:
            now = self._kernel.now
            self._records.append((now, self.me, Kind.DROP, a, b, c, "the receiver has crashed", None, None))


_SEND, _RECEIVE = Kind.SEND, Kind.RECEIVE
