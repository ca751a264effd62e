"""Raymond 1989: a tree-based algorithm for distributed mutual exclusion.

The processes form a tree, and each knows only its neighbours. HOLDER names the neighbour in whose direction the
privilege, the one token, is. A REQUEST goes that way hop by hop, and each process sends one for all who are in its
REQUEST_Q; the PRIVILEGE comes back the same way and turns each HOLDER round as it passes.

Assumes: no crash, no loss. Channels need not be FIFO: all that can overtake is the REQUEST sent right behind a
PRIVILEGE, and whoever gets it early has asked already and puts it into its queue. How often others enter while a
REQUEST is on its way has no bound.

Messages per entry: on a tree of diameter d the privilege makes at most d hops from one entry to the next, and each hop
answers one REQUEST. So on average it is at most 2d, and less than 4 when all ask all the time; one that asks alone pays
twice the hops to the privilege. No number is claimed for a single entry: many share a REQUEST, and ``core.cost``
charges it to one of them.

Against the paper: USING is the runtime's phase. The paper leaves the tree open; ours are rooted at process 0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import INSIDE, Context
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Process

CLAIMS = Claims(
    paper="Raymond, A tree-based algorithm for distributed mutual exclusion",
    year=1989,
    network=Network.UNORDERED,
    messages_per_entry=Formula("0..2*d"),
    amortised=True,
    delay=Formula("0..2*d"),
    fairness=Fairness.BY_TURNS,
)


class Request(Message, tag="request"):
    pass


class Privilege(Message, tag="privilege"):
    pass


@dataclass(slots=True)
class RaymondTree(Process):
    holder: int
    """A neighbour, or oneself."""
    queue: tuple[int, ...] = ()
    """The neighbours that asked, and oneself if one waits, in the order of asking."""
    asked: bool = False

    def acquire(self, ctx: Context) -> None:
        self.enqueue(ctx.me)
        self.assign_privilege(ctx)
        self.make_request(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.enqueue(source)
            case Privilege():
                self.holder = ctx.me
        self.assign_privilege(ctx)
        self.make_request(ctx)

    def release(self, ctx: Context) -> None:
        self.assign_privilege(ctx)
        self.make_request(ctx)

    def enqueue(self, node: int) -> None:
        self.queue = (*self.queue, node)

    def assign_privilege(self, ctx: Context) -> None:
        if self.holder != ctx.me or ctx.phase is INSIDE or not self.queue:
            return
        self.holder, *rest = self.queue
        self.queue = tuple(rest)
        self.asked = False
        if self.holder == ctx.me:
            ctx.grant()
        else:
            ctx.send(self.holder, Privilege())

    def make_request(self, ctx: Context) -> None:
        if self.holder != ctx.me and self.queue and not self.asked:
            self.asked = True
            ctx.send(self.holder, Request())


PARENTS: Mapping[str, Callable[[int], int]] = {
    "binary": lambda node: (node - 1) // 2,
    "line": lambda node: node - 1,
    "star": lambda node: 0,
}
"""The trees by their names: the parent of each process but the root, which is process 0."""


@dataclass(frozen=True)
class Tree:
    """Calling it makes the nodes. The privilege starts at the root."""

    tree: str = "binary"

    def __post_init__(self) -> None:
        if self.tree not in PARENTS:
            raise UsageError(f"there is no tree '{self.tree}'; the trees are {', '.join(PARENTS)}")

    def letters(self, n: int) -> dict[str, float]:
        return {"d": self.diameter(n)}

    def diameter(self, n: int) -> int:
        """The most hops between two processes. Parents have the smaller ids, so each is seen after its children."""
        heights, widest = [0] * n, 0
        for node in range(n - 1, 0, -1):
            parent, height = PARENTS[self.tree](node), heights[node] + 1
            widest = max(widest, heights[parent] + height)
            heights[parent] = max(heights[parent], height)
        return widest

    def __call__(self, n: int) -> list[Process]:
        parents = (PARENTS[self.tree](node) for node in range(1, n))
        return [RaymondTree(holder=0), *(RaymondTree(holder=parent) for parent in parents)]
