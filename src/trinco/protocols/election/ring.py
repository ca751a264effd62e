"""The ring election of the slides (seed 001, "algoritmo baseado em anel").

The processes form a ring by their ids. Whoever notices that the leader does not answer sends an ELECTION round it, to
which everybody adds its id; when it comes back, the highest id in it leads, and a COORDINATOR goes round and tells so.
Who has crashed is passed over: whoever gets no answer from its successor sends to the one after.

Assumes: a message takes at most ``delta``; FIFO channels, or a round overtakes another that names a leader which has
crashed since, and some believe the one, some the other. Any number may crash and come back, at any moment. Messages,
with L processes running: 2L for each of those that noticed, and two attempts for each crashed process, which find
nobody. That a successor runs is seen by its acknowledgement; the slides do not count these, another 2L. (A perfect
detector would spare them, but knows nothing of processes that come back.) Everybody knows the new leader after 2n or
2n+3 deltas: once or twice somebody waits for the crashed one to answer.

Against the slides, four rules more. They let only the process that sent a message take it off the ring: if that one
crashes, it goes round for ever (``slides/S-8``); here the first that finds its own id in it acts for it. Whoever
crashes may take a message along: who sent it waits for it only so long. The winner may crash before COORDINATOR comes
to it: its predecessor, who gets no answer, holds a new election, or one round that has the winner in its list and one
that has not would leave two leaders. And who comes back lets the rounds end that passed it over, then holds its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.message import Message, describe
from trinco.core.node import Elector

CLAIMS = Claims(
    paper="Fundamentos de sistemas distribuídos, Coordenação: eleição baseada em anel",
    network=Network.FIFO,
    messages_per_entry=Formula("2*(n-1)..2*(n-1)**2"),
    delay=Formula("2*n..2*n+3"),
    fairness=Fairness.NONE,
    crashes=Formula("n-1"),
    elects=True,
)


class Election(Message, tag="election"):
    processes: tuple[int, ...]
    """Those that it has passed, the one that sent it first."""

    def in_words(self) -> str:
        return f"election[{_listed(self.processes)}]"


class Coordinator(Message, tag="coordinator"):
    leader: int
    processes: tuple[int, ...]

    def in_words(self) -> str:
        return f"coordinator {self.leader}[{_listed(self.processes)}]"


Circulating: TypeAlias = Election | Coordinator


class Received(Message, tag="received"):
    message: Circulating

    def in_words(self) -> str:
        return f"received {describe(self.message)}"


class Stage(Enum):
    NORMAL = "normal"
    RETURNING = "returning"
    """Came back, and waits for the rounds to end that passed it over."""
    ELECTING = "electing"
    """Its ELECTION is under way."""


@dataclass(slots=True)
class Member(Elector):
    me: int
    n: int
    delta: float
    leader: int | None = None
    stage: Stage = Stage.NORMAL
    attempts: tuple[tuple[Circulating, int], ...] = ()
    """What was sent to whom and has not been acknowledged."""

    @property
    def electing(self) -> bool:
        return self.stage is not Stage.NORMAL

    @property
    def acknowledgement_timeout(self) -> float:
        """A message's way there, its acknowledgement's way back, and some time to spare."""
        return 3 * self.delta

    @property
    def round_timeout(self) -> float:
        """For an ELECTION and a COORDINATOR, each all the way round, whoever must be passed over."""
        return 2 * self.n * (self.acknowledgement_timeout + self.delta)

    def elect(self, ctx: Context) -> None:
        if self.stage is Stage.NORMAL:
            self._start_round(ctx)

    def on_restart(self, ctx: Context, stored: object) -> None:
        self.stage = Stage.RETURNING
        ctx.set_timer("round", self.round_timeout)

    def _start_round(self, ctx: Context) -> None:
        self.stage = Stage.ELECTING
        ctx.set_timer("round", self.round_timeout)
        self._pass_on(ctx, Election((self.me,)))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Received():
                self._acknowledged(ctx, source, message.message)
            case Election() | Coordinator():
                if source != self.me:
                    ctx.send(source, Received(message))
                self._on_circulating(ctx, message)

    def _on_circulating(self, ctx: Context, message: Circulating) -> None:
        match message:
            case Election(processes) if self.me in processes:
                self._announce(ctx, leader=max(processes))
            case Election(processes):
                self._pass_on(ctx, Election((*processes, self.me)))
            case Coordinator(_, processes) if self.me in processes:
                if processes[0] == self.me and self.stage is Stage.NORMAL:
                    ctx.cancel_timer("round")
            case Coordinator(leader, processes):
                self._follow(ctx, leader)
                self._pass_on(ctx, Coordinator(leader, (*processes, self.me)))

    def _announce(self, ctx: Context, leader: int) -> None:
        if self.stage is Stage.ELECTING:
            self.stage = Stage.NORMAL
        self._follow(ctx, leader)
        self._pass_on(ctx, Coordinator(leader, (self.me,)))

    def _follow(self, ctx: Context, leader: int) -> None:
        self.leader = leader
        ctx.elected(leader)

    def _pass_on(self, ctx: Context, message: Circulating) -> None:
        self._attempt(ctx, message, (self.me + 1) % self.n)

    def _attempt(self, ctx: Context, message: Circulating, to: int) -> None:
        ctx.send(to, message)
        if to != self.me:
            self.attempts = (*self.attempts, (message, to))
            ctx.set_timer(_timer(message, to), self.acknowledgement_timeout)

    def _acknowledged(self, ctx: Context, source: int, message: Circulating) -> None:
        if (message, source) in self.attempts:
            self._forget(message, source)
            ctx.cancel_timer(_timer(message, source))

    def _forget(self, message: Circulating, to: int) -> None:
        self.attempts = tuple(each for each in self.attempts if each != (message, to))

    def on_timer(self, ctx: Context, name: str) -> None:
        if name == "round":
            self._start_round(ctx)
        else:
            message, to = next(each for each in self.attempts if _timer(*each) == name)
            self._forget(message, to)
            self._found_crashed(ctx, message, to)

    def _found_crashed(self, ctx: Context, message: Circulating, successor: int) -> None:
        if not isinstance(message, Coordinator) or message.leader != successor:
            self._attempt(ctx, message, (successor + 1) % self.n)
        elif self.stage is not Stage.RETURNING:
            self._start_round(ctx)


def _timer(message: Circulating, to: int) -> str:
    return f"{describe(message)} to p{to}"


def _listed(processes: tuple[int, ...]) -> str:
    return ",".join(map(str, processes))


@dataclass(frozen=True)
class RingElection:
    """``delta``: how long a message takes at most."""

    delta: float = 1.0

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise UsageError(f"a message takes some time: delta must be above 0, not {self.delta:g}")

    def __call__(self, n: int) -> Sequence[Elector]:
        return [Member(me, n, self.delta) for me in range(n)]
