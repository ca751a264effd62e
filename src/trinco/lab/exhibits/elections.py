"""The elections, broken: as the slides print them, and as one gets them wrong."""

from trinco.check.elections import election_model
from trinco.check.model import Model
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.message import Message
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.election.bully import Bully, Ok
from trinco.protocols.election.ring import Circulating, Member

DELTA = 1 / 3
"""In ticks of the checker: the shortest timeouts that are still all of different length."""


class OneTimeout(Bully):
    """Whoever hears OK stops, as printed, and waits for COORDINATOR however long it takes."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        Bully.on_message(self, ctx, source, message)
        if isinstance(message, Ok):
            ctx.cancel_timer("coordinator")


class Impatient(Bully):
    """Takes for dead who has not answered at once."""

    __slots__ = ()

    @property
    def answer_timeout(self) -> float:
        return 0.0


class HastyReturn(Bully):
    """Executes the algorithm as soon as it is back, as printed."""

    __slots__ = ()

    def on_restart(self, ctx: Context, stored: object) -> None:
        self.elect(ctx)


class OnlyTheSenderRemoves(Member):
    """Takes off the ring what it sent itself, as printed, and nothing else."""

    __slots__ = ()

    def _on_circulating(self, ctx: Context, message: Circulating) -> None:
        if self.me in message.processes[1:]:
            self._pass_on(ctx, message)
        else:
            Member._on_circulating(self, ctx, message)


def _answered(kind: type[Bully]) -> Model:
    """The lower of two processes notices; the other may say OK and crash."""
    return election_model([kind(me, 2, DELTA) for me in range(2)], noticing=frozenset({0}), crashes=1)


def _sent_round(kind: type[Member]) -> Model:
    """One of two processes notices, and may crash."""
    nodes = [kind(me, 2, DELTA) for me in range(2)]
    return election_model(nodes, noticing=frozenset({0}), crashes=1, network=Network.FIFO)


def _noticed(kind: type[Bully], restarts: int = 0) -> Model:
    """The middle one of three processes notices; so many of them may crash and come back."""
    nodes = [kind(me, 3, DELTA) for me in range(3)]
    return election_model(nodes, noticing=frozenset({1}), crashes=restarts, restarts=restarts)


EXHIBITS = (
    Exhibit(
        name="slides/S-7",
        title="the bully algorithm without a second timeout",
        printed="slides, algoritmo bully, step 2c: whoever hears OK 'pára de executar o algoritmo'",
        lesson="Who says OK may crash before it leads. Whoever stood back for it waits for a COORDINATOR that never "
        "comes, and nobody leads.",
        breaks="unreachable",
        model=lambda: _answered(OneTimeout),
        mended=lambda: _answered(Bully),
    ),
    Exhibit(
        name="slides/S-8",
        title="a ring from which only the sender takes its message",
        printed="slides, eleição baseada em anel: 'retirada do círculo quando volta ao processo que a criou'",
        lesson="The sender may crash while its message goes round. Nobody else takes it off the ring, and nobody "
        "leads: it goes round for ever. The first that finds its own id in the message must act for the sender.",
        breaks="unreachable",
        model=lambda: _sent_round(OnlyTheSenderRemoves),
        mended=lambda: _sent_round(Member),
    ),
    Exhibit(
        name="bully/false-suspicion",
        title="the bully algorithm with a timeout shorter than an answer takes",
        printed="nowhere; what happens where messages take longer than was assumed",
        lesson="Who is slow is taken for dead: a lower process leads although a higher one runs. Both tell the rest, "
        "and whose COORDINATOR comes last is a matter of chance: two leaders, for good.",
        breaks="never",
        model=lambda: _noticed(Impatient),
        mended=lambda: _noticed(Bully),
    ),
    Exhibit(
        name="bully/hasty-return",
        title="the bully algorithm with a process that comes back and leads at once",
        printed="slides, algoritmo bully, step 5: 'se tiver o número mais alto, passa a ser coordenador'",
        lesson="Who comes back was dead when the others asked, so a lower process may lead at the same moment. The "
        "COORDINATORs of the two cross on their way to a third, which believes the wrong one for good.",
        breaks="never",
        model=lambda: _noticed(HastyReturn, restarts=1),
        mended=lambda: _noticed(Bully, restarts=1),
    ),
)
