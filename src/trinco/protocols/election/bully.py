"""Garcia-Molina 1982: elections in a distributed computing system, the bully algorithm as the slides tell it.

Whoever notices that the leader does not answer asks all processes with higher ids (ELECTION). If one of them says OK,
it stands back, since that one now holds an election of its own; if none does, it is the highest that runs, leads, and
tells all lower ones (COORDINATOR). Whoever comes back after a crash holds an election too, and bullies the leader away
if its own id is higher (seed 001, "algoritmo do mandão").

Assumes: a message takes at most ``delta``, so who does not answer in time has crashed; a longer delay makes two leaders
(``bully/false-suspicion``). Any number may crash and come back, at any moment. Channels need not be FIFO. Messages, if
only the leader has crashed and the d-th lowest of n processes notices: (n-d)(n-d+1)/2 ELECTION, one of them of each
process to the dead leader; (n-d)(n-d-1)/2 OK; n-2 COORDINATOR: together (n-d)^2 + n-2. If all notice, as for d = 1.
Everybody knows the new leader 4 deltas after the next in rank noticed, 5 after a lower one did, 3 of them a timeout.

Against the slides, two rules more. Who said OK may crash before it leads: whoever stood back waits for COORDINATOR only
so long, then asks again (``slides/S-7``). And who comes back may have been taken for dead by a lower process, whose
COORDINATOR would arrive after its own (``bully/hasty-return``): it keeps still until all of those have arrived.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Elector

CLAIMS = Claims(
    paper="Garcia-Molina, Elections in a distributed computing system",
    year=1982,
    network=Network.UNORDERED,
    messages_per_entry=Formula("n-1..(n-1)**2+n-2"),
    delay=Formula("4..5"),
    fairness=Fairness.NONE,
    crashes=Formula("n-1"),
    elects=True,
)

MESSAGES = Formula("(n-d)**2+n-2")
"""Of one election, when only the leader has crashed and the d-th lowest process notices."""


class Election(Message, tag="election"):
    pass


class Ok(Message, tag="ok"):
    pass


class Coordinator(Message, tag="coordinator"):
    pass


class Stage(Enum):
    NORMAL = "normal"
    RETURNING = "returning"
    """Came back, and keeps still."""
    ASKING = "asking"
    """Has sent ELECTION; nobody has said OK."""
    STANDING_BACK = "standing back"
    """Somebody has said OK; its COORDINATOR has not come."""


@dataclass(slots=True)
class Bully(Elector):
    me: int
    n: int
    delta: float
    leader: int | None = None
    stage: Stage = Stage.NORMAL

    @property
    def electing(self) -> bool:
        return self.stage is not Stage.NORMAL

    @property
    def answer_timeout(self) -> float:
        """An ELECTION's way there, its OK's way back, and some time to spare."""
        return 3 * self.delta

    @property
    def return_timeout(self) -> float:
        """Until whoever asked us in vain has led, and its COORDINATOR has arrived everywhere."""
        return self.answer_timeout + self.delta

    @property
    def coordinator_timeout(self) -> float:
        """Our ELECTION's way there, all the time that the highest can take to lead, its COORDINATOR's way back, and
        some time to spare."""
        return self.return_timeout + self.answer_timeout + 3 * self.delta

    def elect(self, ctx: Context) -> None:
        if self.stage is Stage.NORMAL:
            self._ask(ctx)

    def on_restart(self, ctx: Context, stored: object) -> None:
        self.stage = Stage.RETURNING
        ctx.set_timer("return", self.return_timeout)

    def _ask(self, ctx: Context) -> None:
        if self.me == self.n - 1:
            self._lead(ctx)
            return
        self.stage = Stage.ASKING
        ctx.set_timer("answer", self.answer_timeout)
        ctx.broadcast(Election(), to=range(self.me + 1, self.n))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Election():
                ctx.send(source, Ok())
                self.elect(ctx)
            case Ok() if self.stage is Stage.ASKING:
                self.stage = Stage.STANDING_BACK
                ctx.cancel_timer("answer")
                ctx.set_timer("coordinator", self.coordinator_timeout)
            case Coordinator():
                self._follow(ctx, source)

    def on_timer(self, ctx: Context, name: str) -> None:
        if name == "answer":
            self._lead(ctx)
        else:
            self._ask(ctx)

    def _lead(self, ctx: Context) -> None:
        self.stage = Stage.NORMAL
        self.leader = self.me
        ctx.elected(self.me)
        ctx.broadcast(Coordinator(), to=range(self.me))

    def _follow(self, ctx: Context, leader: int) -> None:
        self.leader = leader
        ctx.elected(leader)
        if self.stage is not Stage.RETURNING:
            self.stage = Stage.NORMAL
            ctx.cancel_timer("answer")
            ctx.cancel_timer("coordinator")


@dataclass(frozen=True)
class BullyElection:
    """``delta``: how long a message takes at most."""

    delta: float = 1.0

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise UsageError(f"a message takes some time: delta must be above 0, not {self.delta:g}")

    def __call__(self, n: int) -> Sequence[Elector]:
        return [Bully(me, n, self.delta) for me in range(n)]
