"""The stores of a lock service as one process sees them, and everybody in it who asks for something.

One link to each store carries the accesses of all claimants. The hub does no waiting: ``send`` puts an access on its
way, ``receive`` takes in what has arrived at a link, ``pump`` hands replies and due timers to the claimants until
nothing is left to do (``deliver``: replies only, where that is enough). A shell (``locks.waiting`` for threads,
``locks.aio`` for tasks) sleeps until a link becomes readable or the next timer is due, and calls these.

                 threads or tasks            claimants (the proven code)             stores
                 acquire ─────────────────▶  request ──────────── send ───────────▶  b0 b1 b2 b3
                 sleep on the poller  ◀───── granted ◀─ pump ◀─── receive ◀──────── replies, hints
"""

from collections import deque

from trinco.core.duration import in_words
from trinco.leases.accesses import Apply, Reply
from trinco.leases.operation import Answer, Handed
from trinco.locks.agenda import NEVER
from trinco.locks.claimant import Claimant
from trinco.locks.pool import Pool
from trinco.locks.preference import Preference
from trinco.stores.clock import boottime, wall_microseconds
from trinco.stores.store import Failed, Hint, StaysOut, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from trinco.leases.accesses import Access
    from trinco.leases.operation import Operation
    from trinco.locks.entries import PlainEntries
    from trinco.locks.sealed import SealedEntries
    from trinco.stores.store import Link, Said

    class Sender(Protocol):
        """Whoever sends accesses: a claimant, or somebody who only looks."""

        resource: str
        failures: dict[int, str]
        reached: set[int]

        def expect_to_wait(self) -> None: ...

        def replied(self, base: int, tag: Any, reply: Any) -> None: ...

        def lost_touch(self, base: int, tag: Any) -> None: ...


SAID = object()
"""As a tag: nobody asked for it."""
SAYINGS = (Hint, Handed)


class Hub(Pool):
    """Slots, because a class with so many attributes finds each of them more slowly without."""

    __slots__ = (
        "__weakref__",
        "_concerned",
        "_handed_out",
        "_heard_at",
        "_in_use",
        "_inbox",
        "_out_until",
        "_outstanding",
        "_unsent",
        "chance",
        "entries",
        "is_closing",
        "left_out",
        "preference",
        "wall_clock",
    )

    def __init__(
        self,
        stores: "tuple[Store, ...]",
        entries: "PlainEntries | SealedEntries",
        *,
        client: str,
        address: str,
        chance: "Callable[[], float]",
        clock: "Callable[[], float]" = boottime,
    ) -> None:
        Pool.__init__(self, stores, client, address, clock)
        self.entries = entries
        self.chance = chance
        self.wall_clock = wall_microseconds
        self.preference = Preference(len(stores), clock)
        self._outstanding: list[deque[tuple[Sender, Any]]] = [deque() for _ in stores]
        self._unsent: list[deque[tuple[Sender, Access, Any]]] = [deque() for _ in stores]
        """What is to be sent to a store that is being connected to."""
        self._inbox: deque[tuple[Any, int, Any, Any]] = deque()
        self._handed_out: tuple[Any, int, Any, Any] | None = None
        """What somebody is being told. Who has been interrupted, and finds this set, knows that it was told in part, or
        not at all."""
        self._heard_at: list[float | None] = [None] * len(stores)
        self._in_use: int | None = None
        """Whose link somebody is using. Who finds this set knows that somebody was interrupted there (the handler of a
        signal raised): which answer belongs to whom is not known any more, and the link is given up."""
        self._concerned: tuple[Sender, Any] | None = None
        """Who sends, or whose answer comes in, and with which tag: it is to hear of that, since nobody knows what has
        been sent, or what was answered."""
        self._out_until = [0.0] * len(stores)
        """Until when each stays out."""
        self.is_closing = False
        """Nobody is to wait any longer."""
        self.left_out = NEVER
        """How many glances at the only store are to be left out: for ever, where others would have to wait, as in an
        event loop."""

    # Sending and receiving

    def send(self, sender: "Sender", base: int, access: "Access", tag: "Any") -> bool:
        """Put an access on its way. Its reply comes with its tag, from ``pump`` or ``deliver`` and never within this
        call. Whether it is still to come."""
        if self._in_use is not None:
            self.give_up_interrupted()
        link = self.links[base]
        if link is None:
            return self._send_later(sender, base, access, tag)
        self._in_use, self._concerned = base, (sender, tag)
        try:
            reply = link.send(sender.resource, access)
        except Exception as error:
            self._not_sent(sender, base, tag, error)
            return False
        if reply is None:
            self._outstanding[base].append((sender, tag))
            self._in_use = self._concerned = None
            return True
        self._in_use = self._concerned = None
        self._inbox.append((sender, base, tag, reply))
        self._note_heard(base)
        return False

    def _not_sent(self, sender: "Sender", base: int, tag: "Any", error: Exception) -> None:
        sender.failures[base] = self._give_up(base, error)
        self._concerned = None
        self._inbox.append((sender, base, tag, None))

    def _send_later(self, sender: "Sender", base: int, access: "Access", tag: "Any") -> bool:
        """If there is to be a link."""
        if self.is_connecting_to(base):
            self._unsent[base].append((sender, access, tag))
            return True
        sender.failures[base] = self.troubles[base] or f"{self.stores[base].url}: not connected"
        self._inbox.append((sender, base, tag, None))
        return False

    def converse(self, claimant: Claimant, operation: "Operation", tag: "Any") -> None:
        """``send`` to the only store. Where there is a way to hear the answer at once, it comes within this call."""
        self.send(claimant, 0, Apply(operation), tag)

    def receive(self, base: int) -> None:
        """Take in what has arrived at a link."""
        if self._in_use is not None:
            self.give_up_interrupted()
        link = self.links[base]
        if link is None:
            return
        self._in_use = base
        try:
            arrived = link.receive()
        except Exception as error:
            self._give_up(base, error)
            return
        self._sort(base, arrived)

    def _sort(self, base: int, arrived: "list[Any]") -> None:
        """Into the inbox, each for whoever asked. The link is still noted as in use."""
        if not arrived:
            self._in_use = None
            return
        outstanding = self._outstanding[base]
        said: list[Said] = []
        for each in arrived:
            if isinstance(each, SAYINGS):
                said.append(each)
            elif outstanding:
                self._concerned = outstanding[0]
                sender, tag = outstanding.popleft()
                self._inbox.append((sender, base, tag, each))
        self._in_use = self._concerned = None
        self._note_heard(base)
        for word in said:
            self._pass_on(base, word)

    def _note_heard(self, base: int) -> None:
        self.heard[base] += 1
        self._heard_at[base] = self.clock()

    def _pass_on(self, base: int, said: "Said") -> None:
        """What nobody asked for comes after the answers: a refusal that came with it may be older."""
        owner = getattr(said, "owner", None)
        if isinstance(owner, str):  # a store may say anything to nobody
            waiter = self.called(owner)
            if waiter is not None:
                self._inbox.append((waiter, base, SAID, said))

    def _give_up(self, base: int, error: Exception) -> str:
        """A link has raised something; why it is given up."""
        from trinco.locks.blame import fault

        reason = fault(self.stores[base].url, error)
        self.lose(base, reason)
        return reason

    def give_up_interrupted(self) -> None:
        """The link that somebody was interrupted with, if there is one."""
        if (base := self._in_use) is None:
            return
        self.excuse(base)
        reason = f"{self.stores[base].url}: somebody was interrupted while using the link; connect again"
        self.lose(base, reason)
        concerned, self._concerned = self._concerned, None
        if concerned is not None:
            sender, tag = concerned
            sender.failures[base] = reason
            sender.lost_touch(base, tag)

    def lose_interrupted(self) -> None:
        """Whoever told somebody of an answer was interrupted: it counts as lost."""
        told, self._handed_out = self._handed_out, None
        if told is not None and told[2] is not SAID:
            sender, base, tag, _ = told
            sender.lost_touch(base, tag)

    def can_hear(self, base: int) -> bool:
        """Whether a store can say soon what we want to know of it."""
        return Pool.can_hear(self, base) and self._out_until[base] <= self.clock()

    def silence(self, base: int) -> float | None:
        """For how long nothing has come from a store. None: nothing ever has."""
        heard_at = self._heard_at[base]
        return None if heard_at is None else max(self.clock() - heard_at, 0.0)

    def give_up_silent(self, base: int, patience: float) -> None:
        """A link on which nothing has come for so long may be dead without anybody having been told: try another."""
        self.lose(base, f"{self.stores[base].url}: no answer within {in_words(patience)}; connect again")

    def take_in(self) -> None:
        """Take in what has come by now, and hand it out. Nobody asks the system which link has anything: a server on
        this host may have answered before we had time to sleep, and then there is nothing to wait for."""
        for base, outstanding in enumerate(self._outstanding):
            if outstanding:
                self.receive(base)
        self.deliver()

    def deliver(self) -> None:
        """As much of ``pump`` as is needed before anybody sleeps. The timers of others may be due; one's own matter to
        who has to wait, and then ``pump`` is called."""
        if self._newcomers or len(self.active) > 1:
            self.pump()
        elif self._inbox:
            self._hand_out()

    def owes_one_answer(self) -> bool:
        """Whether answers are under way, and to nobody but one whose timers are not due yet."""
        return len(self.active) < 2 and any(self._outstanding)

    def pump(self) -> None:
        """Hand out what has come in, and what comes of that, until there is nothing left; then due timers."""
        while True:
            self._hand_out()
            if self._newcomers:
                self._welcome()
                continue
            now = self.clock()
            if self.agenda.next_due() > now:
                return
            if self.poller is not None:
                self.ready(self.poller.poll(0))  # what has arrived in time must not be taken for late
                if self._inbox:
                    continue
            self.agenda.fire(now)
            self.connect_missing()

    def _hand_out(self) -> None:
        if self._handed_out is not None:
            self.lose_interrupted()
        inbox, troubles = self._inbox, self.troubles
        while inbox:
            self._handed_out = sender, base, tag, reply = inbox.popleft()
            if tag is SAID:
                sender.was_told(base, reply)
            elif reply.__class__ is Answer and not sender.failures:  # what nearly all replies are
                troubles[base] = None
                sender.replied(base, tag, reply)
            else:
                sender.replied(base, tag, self._judged(sender, base, reply))
            self._handed_out = None

    def _judged(self, sender: "Sender", base: int, reply: "Any") -> "Any":
        """The reply, or None where the store could not do it."""
        if isinstance(reply, Failed):
            sender.failures[base] = self.troubles[base] = reply.reason
            if isinstance(reply, StaysOut):
                sender.reached.add(base)  # it works, and it will do again
                self._out_until[base] = self.clock() + reply.seconds
        elif isinstance(reply, (Answer, Reply)):
            if sender.failures:
                sender.failures.pop(base, None)
            self.troubles[base] = None
            return reply
        return None

    def next_due(self) -> float:
        """When something has to be done although nothing arrives. Whoever asks is about to wait."""
        for under_way in self._outstanding:
            for sender, _ in under_way:
                sender.expect_to_wait()
        for unsent in self._unsent:
            for sender, _, _ in unsent:
                sender.expect_to_wait()
        return self.agenda.next_due()

    # Links

    def greet(self, base: int, link: "Link") -> None:
        """A new link must know who waits, and they of it."""
        claimants = list(self.active.values())
        for claimant in claimants:
            if claimant.hinting:
                self.expect_hints(claimant, base)
        self.send_unsent(base)
        for claimant in claimants:
            claimant.has_link(base)

    def send_unsent(self, base: int) -> None:
        """There is a link at last, or there is none."""
        unsent, self._unsent[base] = self._unsent[base], deque()
        for sender, access, tag in unsent:
            self.send(sender, base, access, tag)

    def drop_unsent(self, sender: "Sender", base: int) -> None:
        """Nobody waits for it any more."""
        self._unsent[base] = deque(each for each in self._unsent[base] if each[0] is not sender)

    def lose(self, base: int, reason: str) -> None:
        """A link is dead, and so is what was under way on it. Who is interrupted here leaves it to the next one."""
        self._in_use = base
        self.hang_up(base, reason)
        outstanding, self._outstanding[base] = self._outstanding[base], deque()
        self._in_use = None
        for sender, tag in outstanding:
            sender.failures[base] = reason
            sender.lost_touch(base, tag)

    def expect_hints(self, claimant: Claimant, base: int) -> None:
        self._say(base, lambda link: link.expect_hints(claimant.owner))

    def ignore_hints(self, claimant: Claimant) -> None:
        for base in range(len(self.links)):
            self._say(base, lambda link: link.ignore_hints(claimant.owner))

    def _say(self, base: int, say: "Callable[[Link], None]") -> None:
        """Something that nobody answers."""
        self.give_up_interrupted()
        link = self.links[base]
        if link is not None:
            self._in_use = base
            try:
                say(link)
            except Exception as error:
                self._give_up(base, error)
            else:
                self._in_use = None
                self.watch(base)

    def disown(self) -> None:
        """In a forked child, before all is forgotten."""
        if self._in_use is None:  # else a thread that is not here was inside the store's library
            for link in self.links:
                if link is not None:
                    link.disown()

    def forget(self) -> None:
        """After a fork: nothing here is ours, not even to close."""
        Pool.forget(self)
        self._outstanding = [deque() for _ in self.stores]
        self._unsent = [deque() for _ in self.stores]
        self._inbox = deque()
        self._in_use = self._concerned = None
