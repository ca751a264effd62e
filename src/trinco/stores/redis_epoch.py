"""A Redis server that forgets.

Redis may lose its last seconds, or everything, in a crash. What tells is its run id, which the first client leaves
under ``trinco:epoch``:

    the same run id              it has forgotten nothing: it grants
    another                      it was restarted, or it is a replica that was promoted, and when that was nobody knows:
                                 it stays out for t_max from now, when every lease that it may have forgotten is over
    none and a short uptime      it may have lost the key as well: it stays out until it has been up for t_max
    none and a longer uptime     it is new to us: it is given the key, and grants

No setting of the server shortens that, not even ``appendfsync always``: it tells how this run writes, not what it began
with. Its data may have been lost, or be a backup, or a file from before the setting was changed, or have come from a
primary that went on without it; and a key that says otherwise would be copied along with them.

Beside the run id stands the t_max for which it has stayed out; who has a longer one waits for the rest of it. A restart
drops the connection, so it is enough to look once per connection.
"""

from math import ceil

from trinco.core.value import Value

EPOCH = "trinco:epoch"
NEVER_HELD = 1e9
"""Seconds: a server that has never held a lock need not stay out for anybody."""
UPTIME_ERROR_S = 1
"""The uptime is the difference of two truncated times: it may be this much shorter than it says."""


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


def recovery(
    t_max: float, fresh: bool, epoch: "bytes | None", run_id: bytes, uptime: int, now: float
) -> Recovery | None:
    """None: it can grant at once. ``fresh``: it is said to have never held a lock."""
    known, stayed_out = read_epoch(epoch)
    if (known == run_id and stayed_out >= t_max) or (epoch is None and fresh):
        return None
    started = now - max(uptime - UPTIME_ERROR_S, 0)
    until = (started if known in (run_id, None) else now) + t_max
    return Recovery(started, until, epoch is None) if until > now else None


def read_epoch(epoch: "bytes | None") -> "tuple[bytes | None, float]":
    """The run id and the t_max that were left there."""
    if epoch is None:
        return None, 0.0
    run_id, _, micros_text = epoch.partition(b" ")
    return run_id, int(micros_text) / 1e6 if micros_text.isdigit() and len(micros_text) < 18 else 0.0


def write_epoch(run_id: bytes, t_max: float) -> bytes:
    return b"%s %d" % (run_id, round(t_max * 1e6))
