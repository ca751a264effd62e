"""A second model checker, slow and obvious, to compare the real one with.

Nothing is shared with ``trinco.check`` but the description of a model: whole worlds are deep-copied, channels are plain
tuples, nothing is interned or remembered, and a handler runs again for every transition. It knows messages, inputs,
choices and crashes; no clocks, timers, liars or reductions. Unlike the real one it does not stop at a violation.
"""

import copy
import dataclasses
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trinco.check.model import Model
from trinco.core.claims import Network
from trinco.core.context import IDLE, INSIDE, WAITING, Context, Phase
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.protocols.detection.perfect import CRASHED, PerfectDetector


class Notebook(Context):
    """Writes down what a handler does."""

    def __init__(self, me: int, phase: Phase, stored: Any, script: tuple[int, ...]) -> None:
        self.me = me
        self.phase = phase
        self.stored = stored
        self.script = script
        self.options: list[int] = []
        self.sent: list[tuple[int, Message]] = []

    def send(self, to: int, message: Message) -> None:
        self.sent.append((to, message))

    def choose(self, options: int) -> int:
        self.options.append(options)
        made = len(self.options)
        return self.script[made - 1] if made <= len(self.script) else 0

    def store(self, value: Any) -> None:
        self.stored = value

    def grant(self, token: Any = None, until: Any = None) -> None:
        assert self.phase is WAITING, "this example enters without having asked"
        self.phase = INSIDE

    def elected(self, leader: int) -> None:
        pass

    def refuse(self, reason: str) -> None:
        self.phase = IDLE


@dataclass
class World:
    nodes: list[Node | None]
    """None for a node that has crashed."""
    phases: list[Phase]
    left: list[dict[str, int | None]]
    stored: list[Any]
    crashes: int
    channels: dict[tuple[int, int], tuple[Message, ...]] = field(default_factory=dict)

    def key(self) -> tuple[Any, ...]:
        nodes = tuple(None if node is None else (type(node), dataclasses.astuple(node)) for node in self.nodes)
        left = tuple(tuple(counts.items()) for counts in self.left)
        return nodes, tuple(self.phases), left, tuple(self.stored), self.crashes, tuple(sorted(self.channels.items()))


@dataclass(frozen=True)
class Happening:
    """Something that can happen at one node. ``message`` has its place in the channel; None for an input."""

    node: int
    name: str
    source: int = -1
    message: Message | None = None
    place: int = 0

    @property
    def action(self) -> tuple[Any, ...] | None:
        """What fairness insists on; nobody has to ask."""
        if self.message is None and self.name != "release":
            return None
        return self.node, self.name, self.source, self.message


@dataclass
class Graph:
    states: list[World] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    edges: list[list[tuple[tuple[Any, ...] | None, int]]] = field(default_factory=list)
    """From each state: the action that fairness insists on, if it is one, and where it leads."""

    @property
    def transitions(self) -> int:
        return sum(map(len, self.edges))

    @property
    def depth(self) -> int:
        return max(self.depths)


def explore(model: Model) -> Graph:
    graph = Graph()
    numbers: dict[tuple[Any, ...], int] = {}
    frontier: deque[int] = deque()

    def number_of(world: World, depth: int) -> int:
        key = world.key()
        if key not in numbers:
            numbers[key] = len(graph.states)
            frontier.append(numbers[key])
            graph.states.append(world)
            graph.depths.append(depth)
            graph.edges.append([])
        return numbers[key]

    for world in _first_worlds(model):
        number_of(world, 0)
    while frontier:
        here = frontier.popleft()
        for action, after in _next_worlds(model, graph.states[here]):
            graph.edges[here].append((action, number_of(after, graph.depths[here] + 1)))
    return graph


def _first_worlds(model: Model) -> list[World]:
    n = len(model.nodes)
    left = [{name: count for name, count in model.inputs.items() if hasattr(node, name)} for node in model.nodes]
    worlds = [World(list(model.nodes), [IDLE] * n, left, [None] * n, model.crashes)]
    for me in range(n):
        worlds = [after for world in worlds for after, _ in _runs(model, world, Happening(me, "on_start"))]
    return worlds


def _next_worlds(model: Model, world: World) -> Iterator[tuple[tuple[Any, ...] | None, World]]:
    for happening in _happenings(model, world):
        for after, sent in _runs(model, world, happening):
            yield happening.action, after
            if world.crashes:
                for count in range(1, len(sent)):
                    yield (
                        None,
                        _crash(
                            model, _post(model, _taken(world, happening), happening.node, sent[:count]), happening.node
                        ),
                    )
    if world.crashes:
        for me, node in enumerate(world.nodes):
            if node is not None:
                yield None, _crash(model, copy.deepcopy(world), me)


def _happenings(model: Model, world: World) -> Iterator[Happening]:
    for me, node in enumerate(world.nodes):
        if node is None:
            continue
        for name, count in world.left[me].items():
            if count != 0 and (name != "acquire" or world.phases[me] is IDLE):
                yield Happening(me, name)
        if isinstance(node, Process) and world.phases[me] is INSIDE:
            yield Happening(me, "release")
        for source in range(len(world.nodes)):
            queue = world.channels.get((source, me), ())
            for place, message in enumerate(queue):
                if place == 0 or (model.network is Network.UNORDERED and message not in queue[:place]):
                    yield Happening(me, "on_message", source, message, place)


def _taken(world: World, happening: Happening) -> World:
    """A copy of the world with the message out of its channel."""
    world = copy.deepcopy(world)
    if happening.message is not None:
        channel = (happening.source, happening.node)
        queue = list(world.channels.pop(channel))
        del queue[happening.place]
        if queue:
            world.channels[channel] = tuple(queue)
    return world


def _runs(model: Model, world: World, happening: Happening) -> Iterator[tuple[World, list[tuple[int, Message]]]]:
    """Every way a handler can go, by trying every script of choices that is not a mere beginning of another."""
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        script = scripts.pop()
        after, notes = _run(_taken(world, happening), happening, script)
        if len(notes.options) > len(script):
            scripts += [(*script, option) for option in range(notes.options[len(script)])]
        else:
            yield _post(model, after, happening.node, notes.sent), notes.sent


def _run(world: World, happening: Happening, script: tuple[int, ...]) -> tuple[World, Notebook]:
    me, name = happening.node, happening.name
    phases = {"acquire": WAITING, "release": IDLE}
    notes = Notebook(me, phases.get(name, world.phases[me]), world.stored[me], script)
    arguments = () if happening.message is None else (happening.source, happening.message)
    getattr(world.nodes[me], name)(notes, *arguments)
    if world.left[me].get(name) is not None:
        world.left[me][name] -= 1
    world.phases[me], world.stored[me] = notes.phase, notes.stored
    return world, notes


def _post(model: Model, world: World, source: int, sent: list[tuple[int, Message]]) -> World:
    for to, message in sent:
        if world.nodes[to] is not None:
            queue = (*world.channels.get((source, to), ()), message)
            world.channels[source, to] = queue if model.network is Network.FIFO else tuple(sorted(queue, key=repr))
    return world


def _crash(model: Model, world: World, me: int) -> World:
    world.nodes[me], world.phases[me], world.left[me] = None, IDLE, {}
    world.channels = {channel: queue for channel, queue in world.channels.items() if channel[1] != me}
    world.crashes -= 1
    told = [to for to, node in enumerate(world.nodes) if isinstance(getattr(node, "detector", None), PerfectDetector)]
    return _post(model, world, me, [(to, CRASHED) for to in told])


def depth_of_first_violation(model: Model, graph: Graph) -> int | None:
    """How many steps it takes to two inside together, or to a state where somebody waits and nothing must happen."""
    wrong = (
        depth
        for world, depth, edges in zip(graph.states, graph.depths, graph.edges, strict=True)
        if world.phases.count(INSIDE) > model.k
        or (WAITING in world.phases and all(action is None for action, _ in edges))
    )
    return min(wrong, default=None)


def can_starve(graph: Graph) -> bool:
    """Whether a process can wait for ever in a fair run: see each knot of states in which it always waits."""
    processes = range(len(graph.states[0].nodes))
    return any(not _neglects(graph, knot) for process in processes for knot in _knots(graph, process))


def _knots(graph: Graph, process: int) -> Iterator[set[int]]:
    """Maximal sets of states that reach each other while the process waits."""
    waiting = {number for number, world in enumerate(graph.states) if world.phases[process] is WAITING}
    onward = {here: {to for _, to in graph.edges[here]} & waiting for here in waiting}
    backward: dict[int, set[int]] = {here: set() for here in waiting}
    for here, successors in onward.items():
        for to in successors:
            backward[to].add(here)
    while waiting:
        here = min(waiting)
        knot = _reach(onward, here, waiting) & _reach(backward, here, waiting)
        if knot:
            yield knot
        waiting -= knot | {here}


def _reach(onward: dict[int, set[int]], start: int, within: set[int]) -> set[int]:
    """What can be reached in one step or more."""
    reached: set[int] = set()
    ahead = [start]
    while ahead:
        fresh = (onward[ahead.pop()] & within) - reached
        reached |= fresh
        ahead += fresh
    return reached


def _neglects(graph: Graph, knot: set[int]) -> bool:
    """Whether some action could be taken everywhere in the knot but always leads out of it."""
    everywhere = set.intersection(*({action for action, _ in graph.edges[here]} for here in knot)) - {None}
    taken = {action for here in knot for action, to in graph.edges[here] if to in knot}
    return bool(everywhere - taken)
