"""Algorithm 2 as printed, over the objects of section 3."""

from collections import Counter

import pytest

from tests.mutants import bakery_objects as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.cost import messages_per_entry
from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.message import Message, tag_of
from trinco.core.signed import Signed
from trinco.lab.exhibits.bakery_objects import Forgets
from trinco.protocols.bakery.active_set import Collect, CollectReplica, Data, Listener, ReadSet
from trinco.protocols.bakery.algorithm2 import CLAIMS, Algorithm2System, Client, Server
from trinco.protocols.bakery.register import Read, Record, RegisterClient, Value
from trinco.protocols.catalogue import find
from trinco.sim.laws import Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, saturated


def scenario(n: int, build: Algorithm2System, **options: object) -> Scenario:
    return Scenario(protocol="bakery-algorithm2", build=build, claims=build.claims, n=n, **options)  # type: ignore[arg-type]


# Accesses and messages


@pytest.mark.parametrize(("active_set", "factor"), [("listener", 18), ("collect", 16)])
@pytest.mark.parametrize("f", [0, 1, 2, 3, 5, 10, 20])
def test_an_entry_that_nobody_else_wants_takes_18s_messages_72_for_f_1(f: int, active_set: str, factor: int) -> None:
    build = Algorithm2System(f, active_set=active_set)
    s = 3 * f + 1
    result = run(scenario(s + 2, build, workload=Scripted(((s, 0.0, 1.0), (s + 1, 50.0, 1.0), (s, 100.0, 1.0)))))
    assert result.violation is None
    assert result.recording is not None
    costs = messages_per_entry(result.recording.events_without_clocks())
    assert costs[:2] == [factor * s] * 2, "the run ends when the third begins to leave"
    assert result.metrics.waiting is not None
    assert result.metrics.waiting.max == 12.0 == CLAIMS.delay.high()


def test_there_are_six_accesses_to_enter_and_two_to_leave() -> None:
    """As one server sees them. With the own number read at a quorum there would be seven."""
    result = run(scenario(6, Algorithm2System(), workload=Scripted(((4, 0.0, 1.0), (5, 50.0, 1.0)))))
    assert result.recording is not None
    accesses: list[str] = []
    for event in result.recording.events_without_clocks():
        if event.node == 0 and event.kind is Kind.RECEIVE and event.peer == 4:
            assert isinstance(event.message, Message)
            accesses.append(tag_of(event.message))
    assert [each for each in accesses if each != "read-complete"] == [
        *("add", "write", "read-set", "write", "write", "read-set"),
        *("write", "remove"),
    ]


@pytest.mark.parametrize("k", [1, 2, 4, 8, 16])
def test_the_accesses_of_an_entry_grow_with_those_who_want_in_and_not_with_those_who_might(k: int) -> None:
    """ "The algorithm is adaptive": 40 clients, k of which ask at the same time."""
    workload = Scripted(tuple((4 + client, 0.0, 1.0) for client in range(k)))
    result = run(scenario(44, Algorithm2System(active_set="collect"), workload=workload))
    assert result.recording is not None
    reads: Counter[int] = Counter()
    for event in result.recording.events_without_clocks():
        if event.kind is Kind.SEND and event.peer == 0 and isinstance(event.message, Read):
            reads[event.node] += event.message.newer_than < 0
    assert [reads[4 + client] for client in range(k)] == [3 * (k - 1)] * k if k > 1 else not reads


# Safe and live


def model(
    servers: int,
    clients: int,
    rounds: int = 1,
    *,
    client: type[Client] = Client,
    active_set: str = "listener",
    network: Network = Network.FIFO,
) -> Model:
    build = Algorithm2System(0, servers, active_set)
    nodes = [*build(servers + clients)]
    nodes[servers:] = [client.in_place_of(node) for node in nodes[servers:]]
    return Model(nodes=nodes, network=network, inputs={"acquire": rounds}, reductions=False)


@pytest.mark.parametrize(
    ("checked", "states"),
    [
        (model(1, 2), 4_577),
        (model(1, 2, active_set="collect"), 3_431),
        (model(1, 2, 2, active_set="collect"), 91_346),
        (model(2, 2, active_set="collect", network=Network.UNORDERED), 62_991),
    ],
    ids=["listener", "collect", "collect, two entries each", "collect, two servers, unordered"],
)
def test_two_clients_exclude_each_other_and_neither_starves(checked: Model, states: int) -> None:
    result = check(checked)
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def test_two_clients_of_two_servers_that_listen_are_safe_and_deadlock_free() -> None:
    result = check(model(2, 2), liveness=False)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, 116_065)


BROKEN = {
    "line 6": (mutants.NeverJoins, "safety"),
    "line 7": (mutants.NeverSaysItChooses, "safety"),
    "line 11": (mutants.LooksOnce, "safety"),
    "line 13": (mutants.IgnoresChoosing, "safety"),
    "line 14, no ties broken": (mutants.BreaksNoTies, "safety"),
    "line 14, ties wait": (mutants.WaitsForTies, "deadlock"),
    "line 17": (mutants.NeverResets, "deadlock"),
}


@pytest.mark.parametrize(("client", "kind"), BROKEN.values(), ids=BROKEN.keys())
def test_a_line_that_is_left_out_is_missed(client: type[Client], kind: str) -> None:
    result = check(model(1, 2, client=client, active_set="collect"))
    assert result.violation is not None
    assert result.violation.kind == kind


# Liars


class Mute(Server):
    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        pass


class Rearguard(Server):
    """Answers reads with the oldest it has ever kept, and shows an active set of its own invention."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Read():
                ctx.send(source, Value(message.access, self.registers.kept(message.register)))
            case ReadSet():
                ctx.send(source, Data(message.access, ctx.choose(256), last=True))
            case _ if not self.registers.records:
                Server.on_message(self, ctx, source, message)
            case _:
                kept = self.registers.records
                Server.on_message(self, ctx, source, message)
                known = {each.body.register for each in kept}
                self.registers.records = (*kept, *(each for each in self.registers.records if _new(each, known)))


def _new(signed: Signed, known: set[object]) -> bool:
    return signed.body.register not in known


class Forger(Server):
    """Shows everybody's registers with values of its own, signed by itself."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Read):
            value = ctx.choose(3)
            ctx.send(source, Value(message.access, ctx.sign(Record(message.register, value, 1_000_000))))
        else:
            Server.on_message(self, ctx, source, message)


@pytest.mark.parametrize("active_set", ["listener", "collect"])
@pytest.mark.parametrize("liar", [Mute, Rearguard, Forger, Forgets], ids=lambda kind: kind.__name__)
def test_one_lying_server_of_four_changes_nothing_in_random_runs(liar: type[Server], active_set: str) -> None:
    links = Links(Uniform(0.1, 20.0), ordered=active_set == "listener")
    build = Algorithm2System(active_set=active_set)
    swarm = Swarm(scenario(7, build, workload=saturated(12), links=links, byzantine={2: liar}))
    swarm.run(range(25))
    assert (swarm.violations, swarm.done, swarm.unfinished) == ([], 25, 0)


@pytest.mark.parametrize("workload", [saturated(15), Closed(15, think=Exponential(200.0))], ids=["saturated", "light"])
@pytest.mark.parametrize("active_set", ["listener", "collect"])
def test_random_runs_keep_to_the_claims(workload: Closed, active_set: str) -> None:
    links = Links(Uniform(0.1, 20.0), ordered=active_set == "listener")
    swarm = Swarm(scenario(7, Algorithm2System(active_set=active_set), workload=workload, links=links))
    swarm.run(range(50))
    assert (swarm.violations, swarm.done, swarm.unfinished) == ([], 50, 0)


# What can be set


def test_one_server_may_lie_unless_there_is_no_room_for_four_and_a_client() -> None:
    entry = find("bakery-algorithm2")
    assert [entry.letters(n)["s"] for n in (2, 4, 5, 64)] == [1, 1, 4, 4]
    assert entry.letters(7) == {"n": 7, "s": 4, "f": 1, "c": 3}
    chosen = entry.set("f=1", "servers=5", "active_set=collect")
    assert chosen.claims.network is Network.UNORDERED
    nodes = chosen.nodes(6)
    assert nodes == [*(Server(active=CollectReplica()) for _ in range(5)), Client(RegisterClient(5, 4), Collect(5, 4))]


def test_the_printed_active_set_is_the_usual_one() -> None:
    assert find("bakery-algorithm2").nodes(5)[4] == Client(RegisterClient(4, 3), Listener(4, 3))


@pytest.mark.parametrize(
    ("build", "n", "why"),
    [
        (lambda: Algorithm2System(f=1, servers=3), 5, "cannot outvote"),
        (lambda: Algorithm2System(f=1), 4, "4 servers and a client are 5 nodes, not 4"),
        (lambda: Algorithm2System(active_set="gossip"), 5, "not 'gossip'"),
        (lambda: Algorithm2System(limit=0), 5, "at least one set"),
    ],
)
def test_what_makes_no_sense_is_refused(build, n, why) -> None:
    with pytest.raises(UsageError, match=why):
        build()(n)
