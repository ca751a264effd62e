"""What an entry costs in the protocols of the paper, measured piece by piece for ``lab.bakery_experiment``.

Times are in message times: a message takes one, or between half and one and a half where several clients ask, so that
no two servers see the same order. Timers are far longer than any wait, but where a piece is about them.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import msgspec

from trinco.core.claims import Claims
from trinco.core.event import Kind
from trinco.core.message import tag_of
from trinco.core.node import Node, Process
from trinco.core.signed import Signed
from trinco.lab.tally import tallied
from trinco.protocols.bakery.algorithm2 import Algorithm2System
from trinco.protocols.bakery.messages import Exit, Listen, Set
from trinco.protocols.bakery.quorums import quorum
from trinco.protocols.bakery.register import Read
from trinco.protocols.bakery.system import CLAIMS, Bakery
from trinco.sim.laws import Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, Simulation
from trinco.sim.workload import Desk, Scripted, Source, Workload, saturated

HOLD = 1.0
QUIET = 100.0
"""From one request to the next, where the first is to be over."""
SOMEHOW = Links(Uniform(0.5, 1.5))
SIGNATURE_BYTES = 64
"""Of Ed25519. In the simulator a signature is a mark that nobody can forge, and takes none."""

System = Callable[[int], Sequence[Node]]

PATIENT = Bakery(hold=1_000.0, extension=6_000.0, silence=400.0, choosing=200.0, cap=6_000.0)

OPTIMISED, BROADCAST = "optimised (5.1)", "optimised, broadcast"
ALGORITHM2, ONE_ROUND = "algorithm 2", "algorithm 2, union"

VARIANTS: Mapping[str, Callable[[int], System]] = {
    OPTIMISED: lambda f: replace(PATIENT, f=f),
    BROADCAST: lambda f: replace(PATIENT, f=f, broadcast="bracha"),
    ALGORITHM2: Algorithm2System,
    ONE_ROUND: lambda f: Algorithm2System(f, active_set="collect"),
}
"""By f. The second has each request broadcast among the servers, by Bracha's broadcast (3.3); the last reads the active
set in one round: the union of what a quorum shows, instead of one set that all of them do."""


def servers_for(f: int) -> int:
    return 3 * f + 1


@dataclass(frozen=True)
class Outcome:
    entries: int
    violation: str | None


def scenario(build: System, n: int, workload: Workload, **options: Any) -> Scenario:
    claims: Claims = getattr(build, "claims", CLAIMS)
    return Scenario(protocol="bakery", build=build, claims=claims, n=n, workload=workload, **options)


def simulated(build: System, n: int, workload: Workload, **options: Any) -> Simulation:
    simulation = Simulation(scenario(build, n, workload, **options))
    simulation.run()
    return simulation


def complaint(result: Result) -> str | None:
    return result.violation.text if result.violation else None


def _records(simulation: Simulation) -> list[tuple[Any, ...]]:
    assert simulation.recording is not None
    return simulation.recording.records


def _clients(nodes: Sequence[Node]) -> list[int]:
    return [node for node, kind in enumerate(nodes) if isinstance(kind, Process)]


@dataclass(frozen=True)
class Cost(Outcome):
    """Of one entry that nobody else wants, not the first."""

    accesses: tuple[int, int]
    """To enter, and to leave."""
    messages: tuple[int, int]
    between_servers: int
    delay: float


@dataclass(frozen=True)
class Alone:
    """One client asks three times; the second counts, from its asking to the third."""

    variant: str
    f: int

    @property
    def title(self) -> str:
        return f"{self.variant}, f={self.f}, alone"

    def do(self) -> Cost:
        build, n = VARIANTS[self.variant](self.f), servers_for(self.f) + 1
        client = _clients(build(n))[0]
        simulation = simulated(build, n, Scripted(tuple((client, QUIET * turn, HOLD) for turn in range(3))))
        records, result = _records(simulation), simulation.result()
        (_, asked, left), (_, entered, _) = (_places(records, client, kind) for kind in (Kind.ACQUIRE, Kind.GRANT))
        enters, leaves = records[asked:entered], records[entered:left]
        return Cost(
            result.metrics.entries,
            complaint(result),
            (self._answers(enters, client, n), self._answers(leaves, client, n)),
            (_sent(enters), _sent(leaves)),
            sum(record[2] is Kind.SEND and client not in (record[1], record[3]) for record in records[asked:left]),
            records[entered][0] - records[asked][0],
        )

    def _answers(self, records: Sequence[tuple[Any, ...]], client: int, n: int) -> int:
        """An access is what a server answers; READ-COMPLETE is none."""
        one = next(node for node in range(n) if node != client)
        return sum(record[1:4] == (one, Kind.SEND, client) for record in records)


def _places(records: Sequence[tuple[Any, ...]], node: int, kind: Kind) -> list[int]:
    return [place for place, record in enumerate(records) if record[1:3] == (node, kind)]


def _sent(records: Sequence[tuple[Any, ...]]) -> int:
    return sum(record[2] is Kind.SEND and record[1] != record[3] for record in records)


@dataclass(frozen=True)
class Turns:
    """``live`` clients ask at any time: when one has left, the next asks that has not asked for longest. When all that
    was to be counted is over, one asks once more: its asking is the end."""

    live: int
    entries: int

    def start(self, desk: Desk) -> Source:
        turns = _Turns(deque(desk.processes), self.entries)
        for _ in range(self.live):
            turns.next_asks(desk, 0.0)
        return turns


@dataclass
class _Turns:
    idle: deque[int]
    budget: int
    asking: int = 0

    def left(self, desk: Desk, node: int, now: float) -> None:
        self.idle.append(node)
        self.asking -= 1
        self.next_asks(desk, now)

    def next_asks(self, desk: Desk, now: float) -> None:
        if self.budget:
            self.budget -= 1
            self.asking += 1
            desk.ask(self.idle.popleft(), now, HOLD)
        elif not self.asking:
            desk.ask(self.idle.popleft(), now + QUIET, HOLD)


@dataclass(frozen=True)
class Crowd(Outcome):
    """On average, for one entry."""

    per_entry: float
    with_clients: float
    """Of those: the messages that clients send and are sent."""
    between_servers: float
    accesses: float
    """To enter."""
    wait: float
    overtaken: int
    """By how many entries of others, at worst, between asking and entering."""
    overtaken_with_ticket: int | None
    """The same from when q servers have the ticket; None for who has no SET."""


@dataclass(frozen=True)
class Contended:
    """k clients ask all the time."""

    variant: str
    f: int
    k: int
    rounds: int

    @property
    def title(self) -> str:
        return f"{self.variant}, f={self.f}, k={self.k}"

    def do(self) -> Crowd:
        build, n = VARIANTS[self.variant](self.f), servers_for(self.f) + self.k
        clients = frozenset(_clients(build(n)))
        entries = self.rounds * self.k
        simulation = simulated(build, n, Turns(self.k, entries), links=SOMEHOW)
        records, result = _before_the_last_request(_records(simulation)), simulation.result()
        sent = [record for record in records if record[2] is Kind.SEND]
        between = sum(record[1] not in clients and record[3] not in clients for record in sent)
        return Crowd(
            entries,
            complaint(result),
            len(sent) / entries,
            (len(sent) - between) / entries,
            between / entries,
            self._accesses(sent, clients, n) / entries,
            _mean_wait(records),
            result.metrics.bypass,
            _overtaken_with_ticket(records, quorum(servers_for(self.f), self.f)),
        )

    def _accesses(self, sent: Sequence[tuple[Any, ...]], clients: frozenset[int], n: int) -> float:
        """Requests to one server, or through it to all. Who reads on until there is something newer has read once; of
        the four writes of an entry the last, ``number := 0``, is for leaving."""
        one = next(node for node in range(n) if node not in clients)
        asked = [getattr(record[4], "body", record[4]) for record in sent if record[1] in clients and record[3] == one]
        counted = Counter(tag_of(each) for each in asked if not isinstance(each, Read) or each.newer_than < 0)
        return sum(counted[kind] for kind in ENTERING) - counted["write"] / 4


ENTERING = ("get", "set", "listen", "add", "write", "read-set", "read")


def _before_the_last_request(records: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    return records[: max(place for place, record in enumerate(records) if record[2] is Kind.ACQUIRE)]


def _mean_wait(records: Sequence[tuple[Any, ...]]) -> float:
    """From asking to entering."""
    asked: dict[int, float] = {}
    waits: list[float] = []
    for at, node, kind, *_ in records:
        if kind is Kind.ACQUIRE:
            asked[node] = at
        elif kind is Kind.GRANT:
            waits.append(at - asked.pop(node))
    return fmean(waits)


def _overtaken_with_ticket(records: Sequence[tuple[Any, ...]], q: int) -> int | None:
    """Whoever asks when q servers have a ticket gets a later one: two quorums share a server that tells of it. So all
    that may still enter before are the turns that were going on."""
    servers: Counter[tuple[int, int]] = Counter()
    """Per client and turn: how many have its ticket."""
    since: dict[int, int] = {}
    entries, worst = 0, None
    for _, node, kind, peer, message, *_ in records:
        if kind is Kind.RECEIVE and isinstance(message, Set):
            servers[peer, message.sid] += 1
            if servers[peer, message.sid] == q:
                since[peer] = entries
        elif kind is Kind.GRANT:
            if node in since:
                worst = max(worst or 0, entries - since.pop(node))
            entries += 1
    return worst


LIVE = 4


@dataclass(frozen=True)
class Passed(Outcome):
    """On average, for one entry."""

    per_entry: float
    wait: float


@dataclass(frozen=True)
class Passing:
    """An open system: so many clients come by, and only ``LIVE`` at a time."""

    variant: str
    seen: int
    entries: int

    @property
    def title(self) -> str:
        return f"{self.variant}, {self.seen:,} clients come by"

    def do(self) -> Passed:
        build, n = VARIANTS[self.variant](1), servers_for(1) + self.seen
        tally = tallied(scenario(build, n, Turns(LIVE, self.entries), links=SOMEHOW, trace=False))
        wait = fmean(passage.delay for passage in tally.counted())
        return Passed(self.entries, complaint(tally.simulation.result()), tally.per_request() or 0.0, wait)


FIRST = "SET of ticket 1"
"""The only ticket that is above none: the answers that justify it need no certificate."""


@dataclass(frozen=True)
class Size:
    """Of one message."""

    signatures: int
    length: int
    """In bytes, with the signatures."""


@dataclass(frozen=True)
class Sizes(Outcome):
    of: Mapping[str, Size]


@dataclass(frozen=True)
class Certifying:
    f: int
    k: int

    @property
    def title(self) -> str:
        return f"certificates, f={self.f}, k={self.k}"

    def do(self) -> Sizes:
        build = VARIANTS[OPTIMISED](self.f)
        simulation = simulated(build, servers_for(self.f) + self.k, saturated(4 * self.k), links=SOMEHOW)
        sent = [record[4] for record in _records(simulation) if record[2] is Kind.SEND]
        sizes = {FIRST: min((_size(each) for each in sent if isinstance(each, Set)), key=_by_length)}
        for kind in (Set, Listen, Exit):
            largest = max((_size(each) for each in sent if isinstance(each, kind)), key=_by_length)
            sizes[kind.__name__.upper()] = largest
        return Sizes(simulation.result().metrics.entries, complaint(simulation.result()), sizes)


def _size(message: Any) -> Size:
    signatures = _signatures(message)
    return Size(signatures, len(msgspec.msgpack.encode(message)) + SIGNATURE_BYTES * signatures)


def _by_length(size: Size) -> int:
    return size.length


def _signatures(value: Any) -> int:
    if isinstance(value, Signed):
        return 1
    if isinstance(value, msgspec.Struct):
        return sum(_signatures(getattr(value, name)) for name in value.__struct_fields__)
    return sum(map(_signatures, value)) if isinstance(value, tuple) else 0
