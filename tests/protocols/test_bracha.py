"""Bracha's reliable broadcast: agreement, validity and totality, whoever lies."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.mutants import bakery_objects as mutants
from trinco.check.model import Model
from trinco.check.run import Result, check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context
from trinco.core.formula import Formula
from trinco.core.message import Codec, Message
from trinco.core.node import Node, Process
from trinco.protocols.broadcast.bracha import Bracha, Broadcaster, Echo, Initial, Ready
from trinco.sim.laws import Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation, run
from trinco.sim.workload import Scripted, saturated


class Word(Message, tag="word"):
    text: str


class Done(Message, tag="done"):
    pass


A, B = Word("a"), Word("b")


@dataclass(slots=True)
class Server(Node):
    bracha: Bracha
    heard: tuple[str, ...] = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        for origin, body in self.bracha.on_message(ctx, source, message):
            assert isinstance(body, Word)
            self.heard = (*self.heard, body.text)
            self.answer(ctx, origin)

    def answer(self, ctx: Context, origin: int) -> None:
        pass

    def ignores(self, message: Message) -> bool:
        """What is said about a broadcast that is over changes nothing."""
        return isinstance(message, Echo | Ready) and message.number <= len(self.heard)


class Answering(Server):
    __slots__ = ()

    def answer(self, ctx: Context, origin: int) -> None:
        ctx.send(origin, Done())


@dataclass(slots=True)
class Client(Process):
    """Broadcasts its next word, and enters when all but f servers have delivered it."""

    broadcaster: Broadcaster
    f: int
    done: int = 0

    def acquire(self, ctx: Context) -> None:
        self.done = 0
        self.broadcaster.broadcast(ctx, Word("abc"[self.broadcaster.number % 3]))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.done += 1
        if self.done == self.broadcaster.servers - self.f:
            ctx.grant()

    def release(self, ctx: Context) -> None:
        pass


@dataclass(slots=True)
class TwoFaced(Process):
    """Tells the first server one thing and the second another; the third either, or nothing, which is branched on."""

    broadcaster: Broadcaster
    f: int

    def acquire(self, ctx: Context) -> None:
        ctx.send(0, Initial(1, A))
        ctx.send(1, Initial(1, B))
        third = ctx.choose(3)
        if third < 2:
            ctx.send(2, Initial(1, (A, B)[third]))

    def release(self, ctx: Context) -> None:
        pass


class LyingServer(Server):
    """Tells the first server that it echoes, and is ready for, what that one was told, and the others the other."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        pass

    def mischief(self, ctx: Context) -> None:
        for server, body in enumerate((A, B, B)):
            ctx.send(server, Echo(4, 1, body))
            ctx.send(server, Ready(4, 1, body))


class Mute(Server):
    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        pass


def heard(view: View) -> list[tuple[str, ...]]:
    return [view.node(server).heard for server in range(3)]


def disagree(view: View) -> bool:
    """two correct servers delivered different things"""
    return len({each for each in heard(view) if each}) > 1


def some_but_not_all(view: View) -> bool:
    """one correct server has delivered, another never will"""
    return view.quiet() and any(heard(view)) and not all(heard(view))


def model(bracha: type[Bracha] = Bracha, liar: type[Server] = LyingServer) -> Model:
    """Three correct servers, one that lies, and a client that does."""
    servers: list[Server] = [*(Server(bracha(me, 4, 1)) for me in range(3)), liar(Bracha(3, 4, 1))]
    return Model(
        nodes=[*servers, TwoFaced(Broadcaster(4), 1)],
        inputs={"acquire": 1, "mischief": 1},
        byzantine=frozenset({3, 4}),
        never=[disagree, some_but_not_all],
    )


# In the checker


def complaint(result: Result) -> str | None:
    return result.violation.text if result.violation else None


@pytest.mark.parametrize(("liar", "states"), [(LyingServer, 93_466), (Mute, 1_540)], ids=["lies", "mute"])
def test_all_correct_servers_deliver_the_same_or_none_does_whatever_the_client_and_a_server_say(
    liar: type[Server], states: int
) -> None:
    """Agreement and totality; what is said of broadcasts that are over is left out."""
    result = check(model(liar=liar), liveness=False)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, states)


@pytest.mark.parametrize("bracha", [mutants.ReadyByEchoesOnly, mutants.DeliversEarly], ids=lambda kind: kind.__name__)
def test_a_rule_that_is_dropped_is_missed(bracha: type[Bracha]) -> None:
    assert complaint(check(model(bracha), liveness=False)) == "one correct server has delivered, another never will"


# In the simulator

CLAIMS = Claims(
    paper="Bracha, An asynchronous [(n-1)/3]-resilient consensus protocol",
    year=1984,
    network=Network.UNORDERED,
    messages_per_entry=Formula("s+2*s*(s-1)+s"),
    delay=Formula("4"),
    fairness=Fairness.NONE,
    k=Formula("n"),
    byzantine=Formula("f"),
)


@dataclass(frozen=True)
class System:
    """n - 1 servers and a client, which waits for their answers."""

    f: int = 1
    bracha: type[Bracha] = Bracha
    client: type[Client] = Client

    def letters(self, n: int) -> dict[str, float]:
        return {"s": n - 1, "f": self.f}

    def __call__(self, n: int) -> Sequence[Node]:
        servers = [Answering(self.bracha(me, n - 1, self.f)) for me in range(n - 1)]
        return [*servers, self.client(Broadcaster(n - 1), self.f)]


class Deceiver(Client):
    """Tells each server one of two things or nothing, as chance has it, and does not wait."""

    __slots__ = ()

    def acquire(self, ctx: Context) -> None:
        for server in range(self.broadcaster.servers):
            choice = ctx.choose(5)
            if choice < 4:
                ctx.send(server, Initial(1, (A, B)[choice % 2]))
        ctx.grant()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        pass


class Accomplice(Answering):
    """Answers whatever it hears by an ECHO and a READY for this or that, to whoever spoke."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Echo | Ready):
            ctx.send(source, Echo(message.origin, 1, (A, B)[ctx.choose(2)]))
            ctx.send(source, Ready(message.origin, 1, (A, B)[ctx.choose(2)]))


def scenario(n: int, build: System, **options: object) -> Scenario:
    return Scenario(protocol="bracha", build=build, claims=CLAIMS, n=n, **options)  # type: ignore[arg-type]


def delivered(build: System, seed: int) -> list[tuple[str, ...]]:
    """By the three correct servers, when all is over."""
    workload = Scripted(((4, 0.0, 1000.0),))
    links = Links(Uniform(0.1, 20.0), ordered=False)
    simulation = Simulation(scenario(5, build, seed=seed, workload=workload, links=links, byzantine={3: Accomplice}))
    simulation.run()
    nodes = [simulation.hosts[server].node for server in range(3)]
    return [node.heard for node in nodes if isinstance(node, Server)]


def test_in_random_runs_with_a_deceiver_and_an_accomplice_all_deliver_the_same_or_none_does() -> None:
    outcomes = [set(delivered(System(client=Deceiver), seed)) for seed in range(200)]
    assert all(len(each) == 1 for each in outcomes)
    assert {("a",), ("b",), ()} == {heard for each in outcomes for heard in each}, "and all of it happens"


@pytest.mark.parametrize(
    "bracha",
    [mutants.ReadyAfterFewEchoes, mutants.ReadyByEchoesOnly, mutants.DeliversEarly],
    ids=lambda kind: kind.__name__,
)
def test_random_runs_miss_a_rule_that_is_dropped_too(bracha: type[Bracha]) -> None:
    """In the same 200 runs."""
    outcomes = (set(delivered(System(bracha=bracha, client=Deceiver), seed)) for seed in range(200))
    assert any(len(each) > 1 for each in outcomes)


@pytest.mark.parametrize("liar", [Mute, Accomplice])
def test_what_a_correct_client_says_is_delivered_in_its_order_whatever_a_server_does(liar: type[Server]) -> None:
    """Validity, over several broadcasts, of which later ones may arrive first."""
    links = Links(Uniform(0.1, 20.0), ordered=False)
    for seed in range(50):
        options = {"workload": saturated(6), "links": links, "byzantine": {0: liar}}
        simulation = Simulation(scenario(5, System(), seed=seed, **options))
        simulation.run()
        assert simulation.result().violation is None
        for host in simulation.hosts[1:4]:
            assert isinstance(host.node, Server)
            assert host.node.heard == tuple("abcabc")[: len(host.node.heard)]


@pytest.mark.parametrize(("n", "f"), [(4, 1), (7, 2), (10, 3), (16, 5), (31, 10), (64, 21)])
def test_a_broadcast_with_its_answers_takes_n_plus_2n_n_minus_1_plus_n_messages(n: int, f: int) -> None:
    result = run(scenario(n + 1, System(f), workload=Scripted(((n, 0.0, 50.0),))))
    assert result.violation is None
    sent = result.metrics.messages_by_kind
    assert sent == {"initial": n, "echo": n * (n - 1), "ready": n * (n - 1), "done": n}
    assert result.metrics.messages == n + 2 * n * (n - 1) + n
    assert result.metrics.waiting is not None
    assert result.metrics.waiting.max == 4.0, "three to be delivered, one for the answers"


def test_servers_forget_a_broadcast_that_is_over() -> None:
    simulation = Simulation(scenario(5, System(), workload=Scripted(((4, 0.0, 50.0), (4, 60.0, 50.0)))))
    simulation.run()
    for host in simulation.hosts[:4]:
        assert isinstance(host.node, Server)
        assert (host.node.bracha.instances, host.node.bracha.delivered) == ((), ((4, 2),))


def test_all_messages_have_a_form_for_the_wire() -> None:
    codec: Codec[Message] = Codec(Initial[Word], Echo[Word], Ready[Word])
    for message in (Initial(1, A), Echo(4, 1, A), Ready(4, 1, B)):
        assert codec.decode(codec.encode(message)) == message
