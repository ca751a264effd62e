"""A simulated node for runs without trace, faults and chance: a send is an appointment for the receiver's own
``on_message`` and nothing in between."""

from collections.abc import Callable, Iterable, Mapping

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.sim.host import Host


class QuietHost(Host):
    """No trace, no faults, every message takes the same time: a send goes straight to the receiver's handler."""

    __slots__ = ("_delay", "_direct", "_moments")

    def connect(self, delay: float, direct: Mapping[int, tuple[Callable[..., None], Context]]) -> None:
        """``direct``: the handler and the context of every node."""
        self._delay = delay
        self._direct = direct
        self._moments = self._kernel.moments

    def send(self, to: int, message: Message) -> None:
        at = self._kernel.now
        try:
            handler, context = self._direct[to]
            if to != self.me:
                at += self._delay
                self.sent[message.__class__] += 1
            elif not isinstance(message, Message):
                raise TypeError(message)
        except (LookupError, TypeError):
            self._refuse_send(message, to)
        if at in self._moments:
            self._moments[at].append((handler, context, self.me, message))
        else:
            self._kernel.schedule(at, handler, context, self.me, message)

    def broadcast(self, message: Message, to: Iterable[int]) -> None:
        me, direct = self.me, self._direct
        others = [node for node in to if node != me]
        try:
            receivers = [direct[node] for node in others]
            self.sent[message.__class__] += len(receivers)
        except (LookupError, TypeError):
            self._refuse_send(message, *others)
        self._kernel.schedule_all(
            self._kernel.now + self._delay, [(handler, context, me, message) for handler, context in receivers]
        )
