"""A Redis server that forgets.

Redis may lose its last seconds, or everything, in a crash. What tells is its *life*: its run id, and where it was
promoted the history that it took over (``master_replid2``), since a server can become a replica and a primary again
in one run. The first client that is let in leaves the life under ``trinco:epoch``:

    the same life                it has forgotten nothing: it grants
    another                      it was restarted, or it is a replica that was promoted, and when that was nobody knows:
                                 it stays out for t_max from when it was first seen, when every lease that it may have
                                 forgotten is over
    none, and promoted           likewise
    none and a short uptime      it may have lost the key as well: it stays out until it has been up for t_max
    none and a longer uptime     it is new to us: it is given the key, and grants

When it was first seen is left under ``trinco:epoch:seen``, with the life, by whoever comes while it stays out: who
lives for a moment only gets in when those before it have waited long enough. It is the server's time of day, as that of
leases is, so it must not be set forward meanwhile. If it is set back, the time of the sight is not over yet: then it is
first seen just now. The key stands alone because it proves nothing: lost, or of another life, it only costs time.

No setting of the server shortens that, not even ``appendfsync always``: it tells how this run writes, not what it began
with. Its data may have been lost, or be a backup, or a file from before the setting was changed, or have come from a
primary that went on without it; and a key that says otherwise would be copied along with them.

Beside the life stands the t_max for which it has stayed out; who has a longer one waits for the rest of it.

All this is looked at when a connection is made, and a restart drops it. A server that becomes a replica and a primary
again need not; so every call tells the life that its link knows, and the script gives nothing where ``trinco:epoch``
has another, or is gone. Then the link is given up, and the next one looks anew.
"""

from math import ceil

from trinco.core.value import Value

EPOCH = "trinco:epoch"
SEEN = "trinco:epoch:seen"
NEVER_HELD = 1e9
"""Seconds: a server that has never held a lock need not stay out for anybody."""
UPTIME_ERROR_S = 1
"""The uptime is the difference of two truncated times: it may be this much shorter than it says."""
MICROS_DIGITS = 17
PROMOTED = b":"


class Recovery(Value):
    """A server that may have forgotten. ``until``: when it may grant again, by our own clock that never steps."""

    __slots__ = ("fresh_would_help", "started", "until")

    def __init__(self, started: float, until: float, fresh_would_help: bool) -> None:
        self.started = started
        self.until = until
        self.fresh_would_help = fresh_would_help

    def in_words(self, now: float) -> str:
        hint = " If it has never held a lock, say ?fresh=1" if self.fresh_would_help else ""
        return (
            f"this server came up {now - self.started:.0f} s ago and may have forgotten who holds what; "
            f"it stays out for {ceil(self.until - now)} s more (t_max).{hint}"
        )


class Standing(Value):
    """What a server says of itself. ``uptime`` in seconds; ``epoch`` and ``seen``: what was left there; ``time``: its
    time of day in seconds."""

    __slots__ = ("epoch", "life", "seen", "time", "uptime")

    def __init__(
        self, life: bytes, uptime: int, epoch: "bytes | None" = None, seen: "bytes | None" = None, time: float = 0.0
    ) -> None:
        self.life = life
        self.uptime = uptime
        self.epoch = epoch
        self.seen = seen
        self.time = time

    @property
    def is_promoted(self) -> bool:
        return PROMOTED in self.life

    def is_life(self, other: "bytes | None") -> bool:
        """A server forgets that it was promoted when it has had no replica for an hour."""
        return other is not None and self.life in (other, other.partition(PROMOTED)[0])

    def seen_for(self) -> "float | None":
        """For how many seconds; None if nobody has left that."""
        life, first = _life_and_seconds(self.seen)
        return self.time - first if self.is_life(life) and 0 < first <= self.time else None


def recovery(t_max: float, fresh: bool, standing: Standing, now: float) -> Recovery | None:
    """None: it can grant at once. ``fresh``: it is said to have never held a lock."""
    known, stayed_out = read_epoch(standing.epoch)
    if (standing.is_life(known) and stayed_out >= t_max) or (known is None and fresh):
        return None
    started = now - max(standing.uptime - UPTIME_ERROR_S, 0)
    until = _since(known, standing, started, now) + t_max
    return Recovery(started, until, known is None) if until > now else None


def _since(known: "bytes | None", standing: Standing, started: float, now: float) -> float:
    """From when on it has given out nothing that it could have forgotten."""
    if known is None and not standing.is_promoted:
        return started
    seen_for = standing.seen_for()
    if seen_for is not None:
        return now - seen_for
    return started if standing.is_life(known) and not standing.is_promoted else now


def life(run_id: bytes, history: bytes) -> bytes:
    """``history``: the one that it took over when it was promoted; nothing but zeros if it never was."""
    return run_id + PROMOTED + history if history.strip(b"0") else run_id


def read_epoch(epoch: "bytes | None") -> "tuple[bytes | None, float]":
    """The life and the t_max that were left there."""
    return _life_and_seconds(epoch)


def write_epoch(life: bytes, t_max: float) -> bytes:
    return b"%s %d" % (life, round(t_max * 1e6))


def write_seen(standing: Standing) -> bytes:
    return b"%s %d" % (standing.life, ceil(standing.time * 1e6))


def _life_and_seconds(text: "bytes | None") -> "tuple[bytes | None, float]":
    if text is None:
        return None, 0.0
    life, _, micros = text.partition(b" ")
    return life, int(micros) / 1e6 if micros.isdigit() and len(micros) <= MICROS_DIGITS else 0.0
