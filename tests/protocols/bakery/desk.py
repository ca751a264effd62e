"""A single node by hand: what it sends, which timers it arms, whom it lets in; and what others would have signed."""

from trinco.core.context import IDLE, INSIDE, WAITING, Context
from trinco.core.instant import Instant
from trinco.core.signed import Signed
from trinco.protocols.bakery.certificates import Begun, Highest, Suspicion, Ticket, Vote
from trinco.protocols.bakery.messages import Get, GetReply, Set, SetReply, Suspect
from trinco.protocols.bakery.system import Bakery

LOCK = "lock/0"
CLIENTS = (0, 1, 2)
SERVERS = (3, 4, 5, 6)
N = 7


class Desk(Context):
    """The world of one node."""

    def __init__(self, me, node):
        self.me, self.node = me, node
        self.phase = IDLE
        self.time = 0.0
        self.sent, self.timers, self.grants, self.losses = [], {}, [], []

    def send(self, to, message):
        self.sent.append((to, message))

    def set_timer(self, name, delay):
        self.timers[name] = self.time + delay

    def cancel_timer(self, name):
        self.timers.pop(name, None)

    def now(self):
        return Instant(self.time)

    def wall_clock(self):
        return int(self.time * 1_000_000)

    def store(self, value):
        self.stored = value

    def grant(self, token=None, until=None):
        self.phase = INSIDE
        self.grants.append((token, until))

    def lost(self, reason):
        self.phase = IDLE
        self.losses.append(reason)

    def acquire(self):
        self.phase = WAITING
        return self._sent_by(self.node.acquire)

    def release(self):
        self.phase = IDLE
        return self._sent_by(self.node.release)

    def receives(self, source, message):
        """What it sends when this arrives."""
        return self._sent_by(self.node.on_message, source, message)

    def fires(self, name):
        self.time = max(self.time, self.timers.pop(name))
        return self._sent_by(self.node.on_timer, name)

    def _sent_by(self, handler, *arguments):
        before = len(self.sent)
        handler(self, *arguments)
        return self.sent[before:]


def desk(me, **settings):
    return Desk(me, Bakery(**settings)(N)[me])


def begun(client, sid):
    return Signed(client, Begun(LOCK, client, sid))


def get(client, sid=1):
    return Get(sid, begun(client, sid))


def ticket_certificate(number, signers=(3, 4)):
    return tuple(Signed(signer, Ticket(LOCK, number)) for signer in signers)


def get_reply(server, client, sid=1, number=0, certificate=None):
    proof = ticket_certificate(number) if number else ()
    highest = Signed(server, Highest(LOCK, client, sid, number))
    return GetReply(sid, highest, proof if certificate is None else certificate)


def justification(client, sid=1, numbers=(0, 0, 0), signers=(3, 4, 5)):
    return tuple(get_reply(server, client, sid, number) for server, number in zip(signers, numbers, strict=True))


def set_ticket(client, sid=1, numbers=(0, 0, 0)):
    return Set(sid, 1 + max(numbers), justification(client, sid, numbers))


def vote(server, client, sid=1, number=1, heartbeat=0):
    return Signed(server, Vote(LOCK, client, sid, number, heartbeat))


def set_reply(server, client, sid=1, number=1, free=True):
    granted = vote(server, client, sid, number) if free else None
    return SetReply(sid, Signed(server, Ticket(LOCK, number)), granted)


def suspicion(server, client, sid=1):
    return Signed(server, Suspicion(LOCK, client, sid))


def suspect(server, client, sid=1, asks=True):
    return Suspect(suspicion(server, client, sid), begun(client, sid), asks)
