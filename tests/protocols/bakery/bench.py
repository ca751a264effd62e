"""The bakery in the simulator with real keys: every message goes through bytes, every statement is signed or vouched
for. ``Keyring`` measures what that costs."""

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from time import perf_counter

import msgspec

from trinco.core.authentication import Keyed
from trinco.core.context import Context
from trinco.core.errors import DamagedData
from trinco.core.event import Kind
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.leases.keys import Ed25519Key, MacKey
from trinco.protocols.bakery import wire
from trinco.protocols.bakery.messages import Certify, GetReply, Go, SetReply
from trinco.protocols.bakery.system import CLAIMS, Bakery
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Closed


class Packet(Message, tag="packet"):
    data: bytes


class Keyring(Keyed):
    """Keys of a node, made from its number, and how long it has spent on each kind of work."""

    def __init__(self, me, n):
        keys = [Ed25519Key(_secret("own", node)) for node in range(n)]
        shared = {node: MacKey(_secret("shared", min(me, node), max(me, node))) for node in range(n)}
        Keyed.__init__(self, me, keys[me], {node: key.verifier() for node, key in enumerate(keys)}, shared)
        self.seconds, self.calls = Counter(), Counter()

    def sign(self, body):
        return self._timed(Keyed.sign, body)

    def vouch(self, body, readers):
        return self._timed(Keyed.vouch, body, readers)

    def verify(self, signed):
        return self._timed(Keyed.verify, signed)

    def _timed(self, work, *arguments):
        began = perf_counter()
        result = work(self, *arguments)
        self.seconds[work.__name__] += perf_counter() - began
        self.calls[work.__name__] += 1
        return result


def _secret(*of):
    return blake2b(repr(of).encode(), digest_size=32).digest()


class Shell(Context):
    """The world of a node that has keys, and whose messages are bytes."""

    __slots__ = ("_wired", "_world", "authenticator")

    def __init__(self, world, wired):
        self._world, self._wired = world, wired
        self.authenticator = wired.keys

    @property
    def me(self):
        return self._world.me

    @property
    def phase(self):
        return self._world.phase

    def send(self, to, message):
        data = wire.encode(self._wired.changed(to, message), self._wired.servers)
        self._world.send(to, Packet(data))


def _forwarded(effect):
    return lambda self, *arguments: getattr(self._world, effect)(*arguments)


for _effect in ("set_timer", "cancel_timer", "now", "wall_clock", "store", "grant", "refuse", "lost"):
    setattr(Shell, _effect, _forwarded(_effect))


@dataclass(slots=True)
class Wired(Node):
    inner: Node
    keys: Keyring
    servers: int
    refused: int = 0
    """Bytes that were no message."""

    def on_timer(self, ctx, name):
        self.inner.on_timer(Shell(ctx, self), name)

    def on_message(self, ctx, source, message):
        try:
            received = wire.decode(message.data, self.servers)
        except DamagedData:
            self.refused += 1
            return
        self.inner.on_message(Shell(ctx, self), source, received)

    def changed(self, to, message):
        return message


class WiredClient(Wired, Process):
    __slots__ = ()

    def acquire(self, ctx):
        self.inner.acquire(Shell(ctx, self))

    def release(self, ctx):
        self.inner.release(Shell(ctx, self))


change = msgspec.structs.replace


def tampered(signed, place=0):
    """With one bit of one proof changed."""
    proofs = list(signed.proofs)
    proofs[place] = bytes([proofs[place][0] ^ 1]) + proofs[place][1:]
    return change(signed, proofs=tuple(proofs))


class TampersWithOthers(Wired):
    """Passes on what other servers have signed with one bit changed."""

    __slots__ = ()

    def changed(self, to, message):
        if isinstance(message, GetReply):
            return change(message, certificate=tuple(map(tampered, message.certificate)))
        if isinstance(message, Certify):
            replies = tuple(change(each, highest=tampered(each.highest)) for each in message.justification)
            return change(message, justification=replies)
        return message


class TampersWithVotes(Wired):
    __slots__ = ()

    def changed(self, to, message):
        if isinstance(message, Go) or (isinstance(message, SetReply) and message.vote):
            return change(message, vote=tampered(message.vote))
        return message


class TampersForOneReader(Wired):
    """Answers GET so that one server cannot verify it, and all others can. Of a signature nobody can."""

    __slots__ = ()

    def changed(self, to, message):
        if isinstance(message, GetReply):
            readers = message.highest.readers
            return change(message, highest=tampered(message.highest, readers.index(3) if readers else 0))
        return message


class Relabels(Wired):
    """Says in another's name what it has signed itself."""

    __slots__ = ()

    def changed(self, to, message):
        if isinstance(message, SetReply) and message.vote:
            return change(message, vote=change(message.vote, signer=4))
        if isinstance(message, GetReply):
            return change(message, highest=change(message.highest, signer=4))
        return message


TAMPERERS = (TampersWithOthers, TampersWithVotes, TampersForOneReader, Relabels)


@dataclass(frozen=True)
class WithKeys:
    """A system whose nodes have keys; the last server is of the class that is named."""

    system: Bakery
    liar: type[Wired] = Wired

    def __call__(self, n):
        nodes = self.system(n)
        servers = self.system.size
        kinds = [WiredClient] * (n - servers) + [Wired] * (servers - 1) + [self.liar]
        return [kind(node, Keyring(me, n), servers) for me, (kind, node) in enumerate(zip(kinds, nodes, strict=True))]

    def letters(self, n):
        return self.system.letters(n)


LIAR = 6


def simulated(build, seed=0, liar=None):
    """Three clients contend for twelve entries; all are served, and no honest server bans any."""
    simulation = Simulation(
        Scenario(
            protocol="bakery",
            build=build,
            claims=CLAIMS,
            n=7,
            seed=seed,
            workload=Closed(12, think=Exponential(0.05 * (seed % 2)), hold=Constant(0.02)),
            links=Links(Uniform(0.001, 0.02)),
            byzantine={LIAR: liar} if liar else {},
            until=1000.0,
        )
    )
    simulation.run()
    result = simulation.result()
    assert (result.violation, result.finished, result.metrics.entries) == (None, True, 12)
    servers = [getattr(host.node, "inner", host.node) for host in simulation.hosts[3:LIAR]]
    assert [server.banned for server in servers] == [0, 0, 0]
    return simulation


def grants(simulation):
    """When, to whom, with which token."""
    return [(record[0], record[1], record[7]) for record in simulation.recording.records if record[2] is Kind.GRANT]
