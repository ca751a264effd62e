"""The timelines on the pages about algorithms: one contended entry of each, simulated; of an election, the slides'
example. Every message takes 1, so the same picture comes out on any machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from trinco.core.errors import UsageError
from trinco.core.event import Event, Kind
from trinco.core.node import Process
from trinco.protocols.catalogue import Entry
from trinco.sim.faults import Crash
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Elections, Scripted
from trinco.view.timeline import draw

MOST_ROWS = 60
LARGEST_N = 12


@dataclass(frozen=True, kw_only=True)
class Story:
    """``asks``: who, when, and held for how long. ``notices``: of an election, who notices when."""

    text: str
    n: int
    asks: tuple[tuple[int, float, float], ...] = ()
    notices: tuple[tuple[int, float], ...] = ()
    crashes: tuple[tuple[int, float], ...] = ()
    settings: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    """Fields that say nothing which the messages do not say. What a node is made of is not shown anyway."""
    gathered: bool = False
    """Whether what one sends to several, or several to one, is one row: else many servers make a picture too long."""

    def command(self, entry: Entry) -> str:
        words = [f"trinco sim {entry.name} -n {self.n}"]
        words += ["--delay 1"] if entry.delay != 1 else []
        words += [f"--set {setting}" for setting in self.settings]
        words += [f"--ask {node}@{at:g}+{hold:g}" for node, at, hold in self.asks]
        words += [f"--notice {node}@{at:g}" for node, at in self.notices]
        words += [f"--fault crash:{node}@{at:g}" for node, at in self.crashes]
        return " ".join((*words, "--timeline"))

    def drawn(self, entry: Entry) -> str:
        shown = [msgspec.structs.replace(event, state=self._shown(event.state)) for event in self._events(entry)]
        lines = list(islice(draw(shown, self.n, steps=False, gathered=self.gathered), MOST_ROWS + 1))
        return "\n".join(lines if len(lines) <= MOST_ROWS else (*lines[:MOST_ROWS], "and so on"))

    def left_out(self, entry: Entry) -> list[str]:
        """The fields that the command shows, and the picture does not."""
        states = [event.state for event in self._events(entry) if event.kind is not Kind.START]
        return list(dict.fromkeys(name for state in states for name in state if name not in self._shown(state)))

    def _events(self, entry: Entry) -> list[Event]:
        entry = entry.set(*self.settings)
        result = run(
            Scenario(
                protocol=entry.name,
                build=entry.build,
                claims=entry.claims,
                n=self.n,
                workload=Elections(self.notices) if self.notices else Scripted(self.asks),
                faults=tuple(Crash(node, at) for node, at in self.crashes),
            )
        )
        assert result.recording is not None
        return list(result.recording.events())

    def _shown(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in state.items() if name not in self.hidden and not _is_part(value)}


def _is_part(value: Any) -> bool:
    """A component, such as a failure detector: in a trace its class comes first."""
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], type)


def story(entry: Entry) -> Story | None:
    """The one that was written for it, otherwise the usual one. Leases have a page of their own."""
    if entry.name in STORIES or entry.claims.timed:
        return STORIES.get(entry.name)
    return _an_election() if entry.claims.elects else _two_ask(entry)


def _an_election() -> Story:
    return Story(text="The highest process has crashed, and p1 notices.", n=4, notices=((1, 1.0),), crashes=((3, 0.5),))


def _two_ask(entry: Entry) -> Story | None:
    for n in range(max(3, entry.smallest), LARGEST_N):
        processes = _processes(entry, n)
        if len(processes) > 1:
            *_, second, first = processes
            asks = ((first, 1.0, 2.0), (second, 1.5, 1.0))
            return Story(text=f"p{first} asks, and p{second} a moment later.", n=n, asks=asks)
    return None


def _processes(entry: Entry, n: int) -> list[int]:
    try:
        return [node for node, kind in enumerate(entry.nodes(n)) if isinstance(kind, Process)]
    except UsageError:
        return []


TWO = ((2, 1.0, 2.0), (1, 1.5, 1.0))

STORIES = {
    "bakery": Story(
        text="A run, as the paper's figure 2 shows one (our copy lacks the drawing): three clients and four "
        "servers. p0 and p1 learn from GET that there is no ticket yet, so both take ticket 1, and p0 has the smaller "
        "id. Neither is free at once, so both LISTEN, and every server votes for p0 (GO), for p1 when p0 has left, and "
        "for p2, which has ticket 2, in the end.",
        n=7,
        settings=("hold=100", "choosing=20", "silence=40"),
        asks=((0, 1.0, 2.0), (1, 1.5, 1.0), (2, 6.0, 1.0)),
        hidden=(
            *("sid", "access", "replies", "sent", "tickets", "votes", "heard", "until"),
            *("turns", "last", "seen"),
        ),
        gathered=True,
    ),
    "bully": Story(
        text="The slides' example: p7, the leader, has crashed, and p4 notices. 6 ELECTION, 3 OK, 6 COORDINATOR. "
        "What is sent to p7 finds nobody; p6 leads when its time to wait for an answer is over.",
        n=8,
        notices=((4, 1.0),),
        crashes=((7, 0.5),),
    ),
    "carvalho-roucairol": Story(
        text="p1 still has the permission that it shares with p2, so it asks p0 only. Both requests have the stamp "
        "1, and p1 has the smaller id: it keeps p2 waiting until it leaves. A second entry of p2 would cost "
        "nothing.",
        n=3,
        asks=TWO,
    ),
    "chandy-misra": Story(
        text="Every two share a fork. p1 is hungry itself, but its fork is dirty: it gives it to p2 and asks for "
        "it back at once. Forks that arrive are clean, and are kept until their owner has eaten.",
        n=3,
        asks=TWO,
    ),
    "coordinator": Story(
        text="p0 is the coordinator. p1 comes second and is put into the queue.",
        n=3,
        asks=TWO,
    ),
    "coordinator-failover": Story(
        text="p3 leads; p0 is inside and p1 in the queue when it crashes. Everybody tells p2, the next leader, "
        "where it stands; p2 grants nothing before it knows that p0 is still inside.",
        n=4,
        asks=((0, 1.0, 6.0), (1, 1.5, 1.0)),
        crashes=((3, 4.0),),
    ),
    "lamport": Story(
        text="Everybody keeps a copy of the whole queue. The stamps are equal and p1 has the smaller id: it enters "
        "first, and p2 when the release has reached it.",
        n=3,
        asks=TWO,
    ),
    "maekawa": Story(
        text="A grid of two by two: p3 asks p1 and p2, and so does p0. Both members are locked for p3 when p0 "
        "comes with an equal stamp and a smaller id: they ask p3 for the lock back (INQUIRE), but it is "
        "inside already.",
        n=4,
        asks=((3, 1.0, 2.0), (0, 1.5, 1.0)),
    ),
    "naimi-trehel": Story(
        text="p0 has the token. It sends it to p2 and takes p2 for its father, so p1's request is passed on to p2, "
        "which notes p1 as the next.",
        n=3,
        asks=TWO,
    ),
    "ordered-voting": Story(
        text="p0 and p1 vote, p2 is the sequencer. It numbers p4's request before p3's, so both voters have the "
        "same queue; p3 gets its votes when p4's release has been delivered.",
        n=5,
        asks=((4, 1.0, 2.0), (3, 1.5, 1.0)),
    ),
    "raymond-k": Story(
        text="Two units (k = 2) and three processes, all with the stamp 1: each needs one reply. p1 and p0 have "
        "the smaller ids and get one first; p2 gets its own when p0 leaves.",
        n=3,
        asks=((2, 1.0, 3.0), (1, 1.5, 2.0), (0, 2.0, 1.0)),
    ),
    "raymond-tree": Story(
        text="p0 is the root and has the privilege; p1 and p2 are its children and know only it. p0 sends the "
        "privilege to p2 and asks for it back, for p1.",
        n=3,
        asks=TWO,
    ),
    "regenerating-ring": Story(
        text="p2 is inside when it crashes, and the token is lost with it. p0, the lowest that runs, asks "
        "everybody who has it. Nobody does, so it makes one of the next epoch, and p1 enters.",
        n=4,
        asks=((2, 0.5, 10.0), (1, 3.5, 1.0)),
        crashes=((2, 4.0),),
    ),
    "ricart-agrawala": Story(
        text="Both requests have the stamp 1. p1 has the smaller id, so it keeps its OK to p2 back until it leaves.",
        n=3,
        asks=TWO,
    ),
    "ring-election": Story(
        text="p3, the leader, has crashed; p0 and p1 notice at nearly the same time. Both rounds choose p2. Each "
        "process acknowledges what it receives; p2 gets no acknowledgement from p3 and sends to p0 instead.",
        n=4,
        notices=((0, 1.0), (1, 1.5)),
        crashes=((3, 0.5),),
        hidden=("attempts",),
    ),
    "robust-k": Story(
        text="One unit, which p0 holds when p3 asks: p1 passes the request on to p0, which acknowledges it and keeps "
        "its reply back. Then p0 crashes. As soon as p3 is told, it needs one permission fewer, and has it.",
        n=4,
        settings=("k=1",),
        asks=((0, 1.0, 20.0), (3, 6.0, 1.0)),
        crashes=((0, 10.0),),
    ),
    "robust-units": Story(
        text="Two units. p0 takes unit 0; p1 learns that from p0's reply and takes unit 1. p2 has all replies, and no "
        "unit is free: it is next in line. When it is told that p1 has crashed, it takes unit 1.",
        n=4,
        settings=("tree=no",),
        asks=((0, 1.0, 30.0), (1, 1.5, 30.0), (2, 6.0, 1.0)),
        crashes=((1, 10.0),),
    ),
    "suzuki-kasami": Story(
        text="p0 has the privilege. Both ask everybody; p2's request arrives first. When p2 leaves, it knows of "
        "p1's request and sends the privilege straight there.",
        n=3,
        asks=TWO,
        hidden=("privilege",),
    ),
    "token-ring": Story(
        text="The token goes round whether anybody wants it or not. It comes to p1 just before p1 asks, and is "
        "back when it has been at p2 and p0.",
        n=3,
        asks=TWO,
    ),
    "voting": Story(
        text="p0 to p2 have a vote each, and two are enough. p4 gets all three; p3 gets none, waits for a random "
        "time and tries again.",
        n=5,
        settings=("m=3",),
        asks=((4, 1.0, 2.0), (3, 1.5, 1.0)),
    ),
}
