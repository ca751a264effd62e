"""The bakery against its library of Byzantine strategies: many seeds, each with other liars, delays and requests.

What must come out is nothing: no two correct clients inside together, no fencing token that does not rise, every
correct client served, and none of them banned by a server that does not lie.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.ids import bit
from trinco.core.node import Node
from trinco.core.snapshot import field_names
from trinco.lab.pieces import Listener, do_all
from trinco.protocols.bakery.automaton import State
from trinco.protocols.bakery.collusion import PAIRS
from trinco.protocols.bakery.messages import Get, Set
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.strategies import CLIENTS, SERVERS
from trinco.protocols.bakery.system import CLAIMS, Bakery
from trinco.protocols.bakery.turns import Turns, turn_of
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Closed

ACCURATE = Bakery(hold=1000.0, extension=6000.0, silence=400.0, choosing=300.0, cap=6000.0)
KINDS: Mapping[str, Bakery] = {
    "accurate": ACCURATE,
    "hasty": replace(ACCURATE, choosing=25.0),
    "f2": replace(ACCURATE, f=2),
}
"""Messages take up to 110. A hasty server gives a client less than that from GET to SET."""
DELAYS = Links(Uniform(1.0, 110.0))
ENTRIES = 12
LONGEST = 1e6
MOST_EVENTS = 400_000
BATCH = 20
"""Seeds a piece of work."""


@dataclass(frozen=True)
class Liars:
    """Classes, as many servers and clients as are to lie."""

    servers: tuple[type[Node], ...] = ()
    clients: tuple[type[Node], ...] = ()


def case(seed: int, kind: str) -> Scenario:
    """The run that this seed stands for: liars from the library, pairs among them."""
    return against(_drawn(random.Random(f"{seed}/{kind}/liars"), _system(kind).f), seed, kind)


def _system(kind: str) -> Bakery:
    if kind not in KINDS:
        raise UsageError(f"there is no kind '{kind}' of campaign; the kinds are {', '.join(KINDS)}")
    return KINDS[kind]


def _drawn(chance: random.Random, f: int) -> Liars:
    """In most runs as many servers as may lie, a third of them with an accomplice; up to three clients."""
    lying = f if chance.random() < 0.85 else 0
    pairs = [chance.choice(list(PAIRS.values())) for _ in range(lying) if chance.random() < 1 / 3]
    servers = [chance.choice(list(SERVERS.values())) for _ in range(lying - len(pairs))]
    clients = [chance.choice(list(CLIENTS.values())) for _ in range(chance.randrange(4 - len(pairs)))]
    return Liars((*(pair.server for pair in pairs), *servers), (*(pair.client for pair in pairs), *clients))


def against(liars: Liars, seed: int, kind: str) -> Scenario:
    """Three to five correct clients, some of them in a hurry, and these liars among them."""
    build, chance = _system(kind), random.Random(f"{seed}/{kind}/places")
    clients = chance.randint(3, 5) + len(liars.clients)
    n = clients + build.size
    servers = chance.sample(range(clients, n), len(liars.servers))
    lying_clients = chance.sample(range(clients), len(liars.clients))
    return Scenario(
        protocol="bakery",
        build=build,
        claims=CLAIMS,
        n=n,
        seed=seed,
        workload=Closed(ENTRIES, think=Exponential(chance.choice((0.0, 50.0, 400.0))), hold=Constant(20.0)),
        links=DELAYS,
        byzantine={
            **dict(zip(servers, liars.servers, strict=True)),
            **dict(zip(lying_clients, liars.clients, strict=True)),
        },
        until=LONGEST,
        max_events=MOST_EVENTS,
    )


@dataclass(frozen=True)
class Outcome:
    """What one seed came to."""

    seed: int
    violation: str | None
    served: bool
    """Whether everybody correct who asked was let in."""
    banned: bool
    """Whether a correct server took a correct client for a liar."""
    entries: int
    bypass: int
    overtaken: int
    """How many turns more others overtook than contended with it. See ``overtakings``."""
    highest: int
    """The highest ticket of a correct server: liars cannot make it huge."""

    @property
    def is_clean(self) -> bool:
        return self.violation is None and self.served and not self.banned


def outcome(scenario: Scenario) -> Outcome:
    simulation = Simulation(scenario)
    simulation.run()
    result = simulation.result()
    servers = [host.node for host in simulation.hosts if host.honest and isinstance(host.node, Server)]
    correct = sum(bit(client) for client in simulation.crowd.processes)
    waits = overtakings(simulation)
    return Outcome(
        seed=scenario.seed,
        violation=result.violation.text if result.violation else None,
        served=result.finished and result.metrics.entries >= ENTRIES,
        banned=any(server.banned & correct for server in servers),
        entries=result.metrics.entries,
        bypass=max((wait.bypass for wait in waits), default=0),
        overtaken=sum(wait.bypass > wait.contenders for wait in waits),
        highest=max((server.tickets.highest for server in servers), default=0),
    )


@dataclass
class Wait:
    """A turn, from when q servers have its ticket to its end: how many others waited then, and how many entered."""

    sid: int
    contenders: int
    bypass: int = 0


@dataclass
class _Queue:
    """The correct clients, in the light of a trace."""

    quorum: int
    waiting: set[int] = field(default_factory=set)
    reached: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    """By turn: the servers that have accepted its ticket."""
    open: dict[int, Wait] = field(default_factory=dict)
    closed: list[Wait] = field(default_factory=list)

    def asks(self, client: int) -> None:
        self.waiting.add(client)

    def begins(self, client: int) -> None:
        """A turn. If the one before did not end by entering, it was given up."""
        if client in self.open:
            self.closed.append(self.open.pop(client))

    def accepts(self, server: int, client: int, sid: int) -> None:
        servers = self.reached.setdefault((client, sid), set())
        if client in self.waiting and server not in servers and len(servers) == self.quorum - 1:
            self.open[client] = Wait(sid, len(self.waiting) - 1)
        servers.add(server)

    def ends(self, client: int) -> None:
        self.waiting.discard(client)
        self.begins(client)

    def enters(self, client: int) -> None:
        self.ends(client)
        for wait in self.open.values():
            wait.bypass += 1


def overtakings(simulation: Simulation) -> list[Wait]:
    """Whom correct clients let pass, counted from the moment at which q servers have accepted their ticket.

    From then on, and from no earlier moment, the bound holds: whoever asks after it is told of that ticket by a correct
    server (any two quorums share one) and takes a later one, so each other client can pass with the one turn that it
    was waiting in. Counted from asking it does not hold: a client whose GETs are slow is passed by quick ones again and
    again. Nor does it from when q servers have received the GET: tickets that others have set at few servers may have
    made its own ticket higher than those of the quick ones by more than one. A turn that its client gives up (it was
    wrongly suspected, or counted out too many servers) ends there; the next one is another turn, with a later ticket.
    """
    correct, honest = frozenset(simulation.crowd.processes), [host.honest for host in simulation.hosts]
    queue = _Queue(simulation.scenario.build.judge(simulation.scenario.n).quorum)  # type: ignore[attr-defined]
    assert simulation.recording is not None
    for _, node, kind, peer, message, _, _, _, state in simulation.recording.records:
        if kind is Kind.RECEIVE and isinstance(message, Set) and peer in correct:
            if not honest[node] or _holds(state[_TURNS], peer, message):
                queue.accepts(node, peer, message.sid)
        elif node in correct and kind in _EFFECTS:
            _EFFECTS[kind](queue, node)
        elif node in correct and kind is Kind.SEND and isinstance(message, Get):
            queue.begins(node)
    return [*queue.closed, *queue.open.values()]


_TURNS = field_names(Server).index("turns")
_EFFECTS: Mapping[Kind, Callable[[_Queue, int], None]] = {
    Kind.ACQUIRE: _Queue.asks,
    Kind.GRANT: _Queue.enters,
    Kind.LOST: _Queue.ends,
}


def _holds(turns: Turns, client: int, ticket: Set) -> bool:
    turn = turn_of(turns, client)
    return turn is not None and turn.sid == ticket.sid and turn.state is not State.E1


@dataclass(frozen=True)
class Batch:
    """A piece of work. ``liars`` None: drawn by the seed."""

    kind: str
    seeds: tuple[int, ...]
    liars: Liars | None = None

    @property
    def title(self) -> str:
        return f"{self.kind} {self.seeds[0]} to {self.seeds[-1]}"

    def do(self) -> list[Outcome]:
        liars = self.liars
        return [outcome(against(liars, seed, self.kind) if liars else case(seed, self.kind)) for seed in self.seeds]


@dataclass(frozen=True)
class Survey:
    """All seeds together; what must be empty has the seeds that bring it back."""

    kind: str
    seeds: int
    entries: int
    violations: tuple[int, ...]
    unserved: tuple[int, ...]
    banned: tuple[int, ...]
    overtaken: tuple[int, ...]
    bypass: int
    highest: int

    @property
    def is_clean(self) -> bool:
        return not (self.violations or self.unserved or self.banned)


def survey(
    kind: str,
    seeds: Iterable[int],
    executor: Executor | None = None,
    liars: Liars | None = None,
    listener: Listener | None = None,
) -> Survey:
    wanted = tuple(seeds)
    batches = [Batch(kind, wanted[start : start + BATCH], liars) for start in range(0, len(wanted), BATCH)]
    done = do_all(batches, executor, listener)
    found: list[Outcome] = sorted((each for batch in batches for each in done[batch]), key=lambda each: each.seed)
    return Survey(
        kind=kind,
        seeds=len(found),
        entries=sum(each.entries for each in found),
        violations=tuple(each.seed for each in found if each.violation),
        unserved=tuple(each.seed for each in found if not each.served),
        banned=tuple(each.seed for each in found if each.banned),
        overtaken=tuple(each.seed for each in found if each.overtaken),
        bypass=max(each.bypass for each in found),
        highest=max(each.highest for each in found),
    )
