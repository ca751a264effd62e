"""Ricart-Agrawala in SimPy: the yardstick for our simulator, in two versions.

One SimPy process a node, reading its inbox (a ``Store``), plain tuples for messages, and the same workload as ours:
everybody asks at once, holds 1, and asks again until the entries are used up. ``Peer`` delays a message as SimPy's
documentation does it, by a process a message that waits and then puts; ``TunedPeer`` does without that process, by a
callback on a bare timeout, which is as quick as SimPy gets.
"""

from collections.abc import Generator
from typing import Any

import simpy

DELAY = 1.0
HOLD = 1.0

Mail = tuple[str, int, int]


class Peer:
    def __init__(self, env: simpy.Environment, me: int, peers: list["Peer"], budget: list[int]) -> None:
        self.env, self.me, self.peers, self.budget = env, me, peers, budget
        self.inbox = simpy.Store(env)
        self.clock = self.timestamp = self.missing = self.deliveries = self.entries = 0
        self.waiting = self.inside = False
        self.deferred: list[int] = []

    def send(self, to: int, mail: Mail) -> None:
        self.env.process(self.latency(to, mail))

    def latency(self, to: int, mail: Mail) -> Generator[Any, Any, None]:
        yield self.env.timeout(DELAY)
        self.peers[to].inbox.put(mail)

    def run(self) -> Generator[Any, Any, None]:
        self.ask()
        while True:
            kind, source, timestamp = yield self.inbox.get()
            self.deliveries += kind != "leave"
            if kind == "request":
                self.clock = max(self.clock, timestamp)
                if self.inside or (self.waiting and (self.timestamp, self.me) < (timestamp, source)):
                    self.deferred.append(source)
                else:
                    self.send(source, ("ok", self.me, 0))
            elif kind == "ok":
                self.missing -= 1
                if self.missing == 0:
                    self.enter()
            else:
                self.leave()

    def ask(self) -> None:
        if self.budget[0] > 0:
            self.budget[0] -= 1
            self.clock += 1
            self.timestamp, self.waiting, self.missing = self.clock, True, len(self.peers) - 1
            for to in range(len(self.peers)):
                if to != self.me:
                    self.send(to, ("request", self.me, self.timestamp))

    def enter(self) -> None:
        self.waiting, self.inside = False, True
        self.entries += 1
        timeout = self.env.timeout(HOLD, ("leave", self.me, 0))
        timeout.callbacks.append(self.arrived)

    def arrived(self, event: Any) -> None:
        self.inbox.put(event.value)

    def leave(self) -> None:
        self.inside = False
        deferred, self.deferred = self.deferred, []
        for to in deferred:
            self.send(to, ("ok", self.me, 0))
        self.ask()


class TunedPeer(Peer):
    def send(self, to: int, mail: Mail) -> None:
        timeout = self.env.timeout(DELAY, mail)
        timeout.callbacks.append(self.peers[to].arrived)


def run(n: int, entries: int, kind: type[Peer] = Peer) -> int:
    """How many messages were delivered."""
    env = simpy.Environment()
    peers: list[Peer] = []
    budget = [entries]
    peers.extend(kind(env, me, peers, budget) for me in range(n))
    for peer in peers:
        env.process(peer.run())
    env.run()
    assert sum(peer.entries for peer in peers) == entries
    return sum(peer.deliveries for peer in peers)
