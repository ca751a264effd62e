"""Global states as single integers, and the moves between them as additions.

All of one node at one moment, its local state and its inbox, is a *cell*, interned to a small int. A global state is
one int that holds, 32 bits each, the cell of every node, and above them

    | believers | movers | environment | cell n-1 | ... | cell 1 | cell 0 |

``environment``: what belongs to no node (crashes left, the leads of drifting clocks, the memory of monitors), interned;
``movers``: how many nodes can do something that must happen sooner or later (none, and somebody waits: deadlock);
``believers``: how many correct processes believe they are inside; a broken contract counts as k+1 of them.

Every cell carries its *weight*: its bits in place, plus one mover and one believer where it is one. A move then is the
difference of two weights, a message in flight adds the difference it makes to the receiver's cell, and a successor is
a sum of ints. Moves are remembered per cell, arrivals per (arrival, cell): the search itself runs no handler and builds
no tuple. Whoever believes can move (it can leave), so the states that need a closer look are those below ``floor`` and
those from ``ceiling`` on: the smallest and the largest of a batch tell whether there is any.
"""

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from trinco.check.environment import Environment, Told
from trinco.check.handlers import Event, Handlers, Local, News, Outcome
from trinco.check.memo import Memo
from trinco.check.model import Model
from trinco.core.claims import Network
from trinco.core.context import Phase
from trinco.core.event import Kind
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.protocols.detection import perfect
from trinco.protocols.detection.perfect import CRASHED

WIDTH = 32
MASK = (1 << WIDTH) - 1
COUNT_WIDTH = 16

Queue: TypeAlias = tuple[int, ...]
Inbox: TypeAlias = tuple[tuple[int, Queue], ...]
"""Per source with messages in flight, in order of source: interned messages, sorted where order means nothing."""


class Cell(NamedTuple):
    node: int
    local: int
    inbox: Inbox


class Label(NamedTuple):
    """What a move was, for people: kept beside the moves, read only when a path is told."""

    node: int
    event: Event
    outcome: Outcome
    crashes: bool = False


Arrival: TypeAlias = Memo[int, int]
"""Messages of one sender on their way to somebody: what they add to the weight of each cell they may find there."""

Arrivals: TypeAlias = tuple[tuple[int, Arrival], ...]
"""Who receives what."""

Move: TypeAlias = tuple[int, Arrivals, Told]
"""What to add to the state; what arrives; what the environment is told (mostly nothing)."""


Moves: TypeAlias = tuple[
    tuple[int, ...], tuple[tuple[int, int, Arrival], ...], tuple[tuple[int, Arrivals], ...], tuple[Move, ...]
]
"""Moves sorted by how little there is to do for them: those that only add; those that send to one node
(the difference, the receiver, what arrives there); those that send to several; those the environment must know of. A
plain tuple, because the search takes it apart three times a state, and Python is twice as quick with those."""


class Cells:
    def __init__(self, model: Model, handlers: Handlers) -> None:
        self.model = model
        self.handlers = handlers
        self.cells: list[Cell] = []
        self.weights: list[int] = []
        self.moves: Memo[int, Moves] = Memo(self._moves)
        """By cell. A liar has none of its own: others react to it in the same step, see ``lies``."""
        self.labelled_moves: Memo[int, tuple[tuple[Move, Label], ...]] = Memo(self._labelled_moves)
        self.environment_shift = WIDTH * len(model.nodes)
        self.movers_shift = self.environment_shift + WIDTH
        self.believers_shift = self.movers_shift + COUNT_WIDTH
        self.floor = 1 << self.movers_shift
        """Whatever is smaller has no movers."""
        self.ceiling = (model.k + 1) << self.believers_shift
        """Whatever is not smaller has too many believers."""
        self.size_in_bytes = (self.believers_shift + COUNT_WIDTH) // 8 + 1
        self.from_bytes = struct.Struct(f"<{len(model.nodes)}I").unpack_from
        """The cells of a state in bytes: what ``unpack`` does, for the loop that cannot afford a call of ours."""
        self.environment = Environment(model, self.environment_shift, alarm=self.ceiling)
        self.told_of_crashes = perfect.listeners(model.nodes)
        self._ids: dict[Cell, int] = {}
        self.messages: list[Message] = []
        self._message_ids: dict[Message, int] = {}
        self._deliveries: dict[tuple[int, int], Event] = {}
        self._arrivals: dict[tuple[int, Queue], Arrival] = {}
        kinds = {type(node) for node in model.nodes} if model.reductions else set()
        self._ignoring = frozenset(kind for kind in kinds if hasattr(kind, "ignores"))
        self._ignored: dict[tuple[int, int], bool] = {}

    def intern(self, node: int, local: int, inbox: Inbox) -> int:
        state = self.handlers.locals[local]
        cell = Cell(node, local, self._without_ignored(local, inbox) if state.alive else ())
        known = self._ids.get(cell)
        if known is None:
            known = self._ids[cell] = len(self.cells)
            self.cells.append(cell)
            self.weights.append(self._weigh(known, cell, state))
        return known

    def _weigh(self, number: int, cell: Cell, state: Local) -> int:
        moves = self._must_move(cell, state)
        believers = self._counts(cell)
        return (number << WIDTH * cell.node) + (moves << self.movers_shift) + (believers << self.believers_shift)

    def _counts(self, cell: Cell) -> int:
        """For how many believers a cell stands."""
        state = self.handlers.locals[cell.local]
        if cell.node in self.model.byzantine:
            return 0
        return self.model.k + 1 if state.broken else int(state.believes)

    def _must_move(self, cell: Cell, state: Local) -> bool:
        """Whether something must happen here sooner or later. A liar owes nothing; nobody has to ask; a timer that
        has used up its bound could still fire in the real world, so it is no deadlock to wait for it."""
        if cell.node in self.model.byzantine or not state.alive:
            return False
        return bool(cell.inbox) or bool(state.timers) or state.phase is Phase.INSIDE

    # What may happen at a cell

    def _moves(self, number: int) -> Moves:
        return by_effort([move for move, _ in self.labelled_moves[number]])

    def _labelled_moves(self, number: int) -> tuple[tuple[Move, Label], ...]:
        if self.cells[number].node in self.model.byzantine:
            return ()
        return tuple((self.move(number, label, inbox), label) for label, inbox in self.possible(number))

    def possible(self, number: int) -> Iterator[tuple[Label, Inbox]]:
        """Every way this cell can go, with the inbox that remains."""
        node, local, inbox = self.cells[number]
        if not self.handlers.locals[local].alive:
            yield from self._restarts(node, local)
            return
        for event, rest in self._events(node, local, inbox):
            for outcome in self.handlers.outcomes(node, local, event):
                yield Label(node, event, outcome), rest
                for label in self.cut_short(node, local, event, outcome):
                    yield label, ()
        if self.model.crashes:
            yield Label(node, Event("crash"), Outcome(self.handlers.crashed(local)), crashes=True), ()
        if self.model.clocks and node in self.model.clocks.drifting:
            yield Label(node, Event("tick"), self.tick(local)), inbox

    def _restarts(self, node: int, local: int) -> Iterator[tuple[Label, Inbox]]:
        if self.model.restarts:
            for outcome in self.handlers.outcomes(node, local, Event("restart")):
                yield Label(node, Event("restart"), outcome), ()

    def is_busy(self, number: int) -> bool:
        """Whether something is under way to this node, or due at it."""
        cell = self.cells[number]
        return bool(cell.inbox) or bool(self.handlers.armed(self.handlers.locals[cell.local]))

    def owes(self, number: int) -> bool:
        """Whether something here must happen sooner or later, and can. Ticks of the clock apart."""
        cell, state = self.cells[number], self.local(number)
        honest = cell.node not in self.model.byzantine
        return honest and state.alive and (self.is_busy(number) or state.phase is Phase.INSIDE)

    def used_up(self, number: int) -> tuple[str, ...]:
        """The timers of this node that are due, and have fired as often as the model lets them."""
        return self.handlers.used_up(self.local(number))

    def tick(self, local: int) -> Outcome:
        """One tick of a node's clock. A lease may run out in it."""
        after = self.handlers.ticked(local)
        believed, believes = self.handlers.locals[local].believes, self.handlers.locals[after].believes
        return Outcome(after, news=(News(Kind.EXPIRE),) if believed and not believes else ())

    def cut_short(self, node: int, local: int, event: Event, outcome: Outcome) -> Iterator[Label]:
        """A crash in the middle of a step: some messages are out and some values stored, the rest never will be. A
        crash before the first of these is a crash before the event; one after the last is a crash after it."""
        if not self.model.crashes:
            return
        stored, stores = self.handlers.locals[local].stored, list(outcome.stores)
        effects = len(outcome.sends) + len(stores)
        sent = 0
        for done in range(1, effects):
            if stores and stores[0][0] == sent:
                stored = stores.pop(0)[1]
            else:
                sent += 1
            kept = outcome.stores[: done - sent]
            dead = Outcome(self.handlers.dead(outcome.local, stored), outcome.sends[:sent], (), outcome.choices, kept)
            yield Label(node, event, dead, crashes=True)

    def _events(self, node: int, local: int, inbox: Inbox) -> Iterator[tuple[Event, Inbox]]:
        state = self.handlers.locals[local]
        for name, count in state.left:
            if count != 0 and _may_call(name, state.phase):
                yield Event("input", name), inbox
        if state.phase is Phase.INSIDE and isinstance(self.model.nodes[node], Process):
            yield Event("input", "release"), inbox
        for source, message, rest in self._deliverable(inbox):
            yield self._delivery(source, message), rest
        for name in self.handlers.armed(state):
            yield Event("timer", name), inbox

    def _delivery(self, source: int, message: int) -> Event:
        key = (source, message)
        known = self._deliveries.get(key)
        if known is None:
            known = self._deliveries[key] = Event("deliver", "", source, self.messages[message])
        return known

    def _deliverable(self, inbox: Inbox) -> Iterator[tuple[int, int, Inbox]]:
        ordered = self.model.network is Network.FIFO
        for position, (source, queue) in enumerate(inbox):
            for index in (0,) if ordered else _firsts(queue):
                rest = queue[:index] + queue[index + 1 :]
                remaining = ((source, rest),) if rest else ()
                yield source, queue[index], (*inbox[:position], *remaining, *inbox[position + 1 :])

    def move(self, number: int, label: Label, inbox: Inbox) -> Move:
        """What it does to the whole state when a cell goes this way."""
        arrivals: Arrivals = ()
        if label.outcome.sends or (label.crashes and self.told_of_crashes):
            outgoing = self._outgoing(label)
            own = outgoing.pop(label.node, None)
            if own is not None:
                inbox = self.with_queue(inbox, label.node, own)
            arrivals = tuple((to, self._arrival(label.node, queue)) for to, queue in sorted(outgoing.items()))
        after = self.intern(label.node, label.outcome.local, inbox)
        return self.weights[after] - self.weights[number], arrivals, self.environment.news(label)

    def _outgoing(self, label: Label) -> dict[int, Queue]:
        """What a move puts into each channel. That a node crashed is announced in its own name."""
        outgoing: dict[int, Queue] = {}
        announced = [(to, CRASHED) for to in self.told_of_crashes if to != label.node] if label.crashes else ()
        for to, message in (*label.outcome.sends, *announced):
            outgoing[to] = (*outgoing.get(to, ()), self.message_number(message))
        return outgoing

    # Messages in flight

    def _arrive(self, source: int, queue: Queue, number: int) -> int:
        """What it adds to the weight of a cell when messages of one sender come in."""
        node, local, inbox = self.cells[number]
        after = self.intern(node, local, self.with_queue(inbox, source, queue))
        return self.weights[after] - self.weights[number]

    def with_queue(self, inbox: Inbox, source: int, messages: Queue) -> Inbox:
        queues = dict(inbox)
        queue = (*queues.get(source, ()), *messages)
        queues[source] = queue if self.model.network is Network.FIFO else tuple(sorted(queue))
        return tuple(sorted(queues.items()))

    def _without_ignored(self, local: int, inbox: Inbox) -> Inbox:
        """Erase what the node says it will never use again, where its class has ``ignores``."""
        if not inbox or self.handlers.locals[local].state[0] not in self._ignoring:
            return inbox
        kept = ((source, tuple(each for each in queue if not self._ignores(local, each))) for source, queue in inbox)
        return tuple((source, queue) for source, queue in kept if queue)

    def _ignores(self, local: int, message: int) -> bool:
        key = (local, message)
        if key not in self._ignored:
            self._ignored[key] = self.handlers.ignores(local, self.messages[message])
        return self._ignored[key]

    def message_number(self, message: Message) -> int:
        known = self._message_ids.get(message)
        if known is None:
            known = self._message_ids[message] = len(self.messages)
            self.messages.append(message)
        return known

    def _arrival(self, source: int, queue: Queue) -> Arrival:
        key = (source, queue)
        if key not in self._arrivals:
            self._arrivals[key] = Memo(partial(self._arrive, source, queue))
        return self._arrivals[key]

    # Whole states

    def unpack(self, state: int) -> tuple[int, ...]:
        """The cells of a state, one a node."""
        return self.from_bytes(state.to_bytes(self.size_in_bytes, "little"))

    def at(self, state: int, node: int) -> int:
        """The cell of one node."""
        return (state >> WIDTH * node) & MASK

    def environment_of(self, state: int) -> int:
        return (state >> self.environment_shift) & MASK

    def apply(self, state: int, move: Move) -> int:
        """The state after a move, before the environment is told."""
        difference, arrivals, _ = move
        for to, arrival in arrivals:
            difference += arrival[self.at(state, to)]
        return state + difference

    def tell(self, state: int, news: Told) -> int | None:
        """The state after the environment was told, or None if what it was told cannot happen."""
        if not news:
            return state
        change = self.environment.change(self.environment_of(state), news)
        return None if change is None else state + change

    def first_states(self) -> dict[int, tuple[Outcome, ...]]:
        """Every state in which the system may start, with how each node started: its messages are in flight."""
        ways = [self.handlers.first(me, node) for me, node in enumerate(self.model.nodes)]
        return {self._started(outcomes): outcomes for outcomes in itertools.product(*ways)}

    def _started(self, outcomes: tuple[Outcome, ...]) -> int:
        inboxes: list[Inbox] = [()] * len(outcomes)
        for node, outcome in enumerate(outcomes):
            for to, queue in self._outgoing(Label(node, Event("start"), outcome)).items():
                inboxes[to] = self.with_queue(inboxes[to], node, queue)
        cells = (self.intern(node, each.local, inboxes[node]) for node, each in enumerate(outcomes))
        return sum(self.weights[cell] for cell in cells) + self.environment.weight(self.environment.first)

    def local(self, cell: int) -> Local:
        return self.handlers.locals[self.cells[cell].local]

    def messages_in(self, cell: int) -> Iterable[tuple[int, Message]]:
        for source, queue in self.cells[cell].inbox:
            for message in queue:
                yield source, self.messages[message]


def by_effort(moves: Sequence[Move]) -> Moves:
    plain = [(difference, arrivals) for difference, arrivals, news in moves if not news]
    silent = tuple(difference for difference, arrivals in plain if not arrivals)
    telling_one = tuple((difference, *arrivals[0]) for difference, arrivals in plain if len(arrivals) == 1)
    telling_many = tuple((difference, arrivals) for difference, arrivals in plain if len(arrivals) > 1)
    return silent, telling_one, telling_many, tuple(move for move in moves if move[2])


def _may_call(name: str, phase: Phase) -> bool:
    if name == "acquire":
        return phase is Phase.IDLE
    if name == "renew":
        return phase is Phase.INSIDE
    return True


def _firsts(queue: Queue) -> tuple[int, ...]:
    """The position of the first of each kind: equal messages in a bag are one choice."""
    return tuple(index for index, message in enumerate(queue) if index == 0 or queue[index - 1] != message)
