"""Little traces made by hand: what happened, told event by event, for the tests of the trace and of its readers."""

from dataclasses import dataclass

from trinco.core.event import Kind
from trinco.core.trace import FORMAT, Header, Record, Recording


@dataclass(slots=True)
class Stateless:
    pass


class Story:
    """Each call is one event and returns its position, which a later event may name as its cause."""

    def __init__(self, n, kinds=None, **header):
        self.recording = Recording(Header(FORMAT, "made-by-hand", n, **header), kinds or [Stateless] * n)
        self._step = [None] * n
        self._now = 0.0

    @property
    def header(self):
        return self.recording.header

    @property
    def events(self):
        return list(self.recording.events())

    def step(self, node, kind, **rest):
        """A step, which the node's following effects are caused by."""
        self._step[node] = self._add(node, kind, **rest)
        return self._step[node]

    def effect(self, node, kind, **rest):
        return self._add(node, kind, cause=self._step[node], **rest)

    def acquire(self, node):
        return self.step(node, Kind.ACQUIRE)

    def release(self, node):
        return self.step(node, Kind.RELEASE)

    def grant(self, node, token=None):
        return self.effect(node, Kind.GRANT, token=token)

    def send(self, node, to, message=None):
        return self.effect(node, Kind.SEND, peer=to, message=message)

    def receive(self, sent):
        """The message of a send arrives."""
        _, source, _, node, message, *_ = self.recording.records[sent]
        return self.step(node, Kind.RECEIVE, peer=source, message=message, cause=sent)

    def crash(self, node):
        self._step[node] = None
        return self._add(node, Kind.CRASH)

    def _add(self, node, kind, **rest):
        self._now += 1.0
        self.recording.records.append(Record(self._now, node, kind, **rest))
        return len(self.recording.records) - 1
