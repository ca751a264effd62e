"""Robust k-mutual exclusion, put together: the mutex over the tree over the detector, as in the paper's Figure 4.

Everything that the paper leaves open, and every improvement, is a setting by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from trinco.core.claims import Claims
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.node import Process
from trinco.protocols.broadcast.spanning_tree import Retry, Rules, SpanningTree
from trinco.protocols.detection.clusters import dimensions
from trinco.protocols.detection.hi_adsd import HiAdsd, Schedule, Timing
from trinco.protocols.detection.perfect import PerfectDetector
from trinco.protocols.permission.robust_k import CLAIMS, RobustK
from trinco.protocols.permission.robust_k_recovery import RecoveringRobustK

DETECTORS = ("perfect", "hi-adsd")
RETRIES: Mapping[str, Retry] = {each.name.lower().replace("_", "-"): each for each in Retry}
SCHEDULES: Mapping[str, Schedule] = {each.name.lower(): each for each in Schedule}


@dataclass(frozen=True)
class RobustKSystem:
    """``k`` processes may be inside at once. ``detector``: the oracle, or Hi-ADSD with its own messages; ``schedule``:
    which clusters that tests in an interval. ``tree``: whether requests go down the tree, or directly to all.
    ``retry``: what the root of the tree repeats when not all have acknowledged; ``acknowledges_again``: whether who has
    heard it already acknowledges it again. ``reply_is_ack``: whether a reply that is sent at once acknowledges too.
    ``notifies``: whether who finds a crash by its own test tells all. ``recovers``: whether processes may come back.
    ``delta``: how long a message takes at most, of which all timeouts are multiples, in the proportions of the paper's
    experiment (where it is 0.01). Hi-ADSD stands and falls with it; else it may be as large as one likes, and who has
    something to repeat waits longer."""

    k: int = 2
    detector: str = "perfect"
    schedule: str = "all"
    tree: bool = True
    retry: str = "missing"
    acknowledges_again: bool = True
    reply_is_ack: bool = False
    notifies: bool = False
    recovers: bool = False
    delta: float = 100.0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"at least one process must be let in, not {self.k}")
        if not self.delta > 0:
            raise UsageError(f"a message takes some time: delta cannot be {self.delta:g}")
        _one_of("detector", self.detector, {each: each for each in DETECTORS})
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("retry", self.retry, RETRIES)
        if self.reply_is_ack and not self.tree:
            raise UsageError("without a tree nothing is acknowledged, so no reply can stand for an acknowledgement")
        if self.notifies and self.detector != "hi-adsd":
            raise UsageError("the oracle tells all by itself: notifies is for detector=hi-adsd")
        if self.recovers and self.detector != "hi-adsd":
            raise UsageError("the oracle tells no news to those who are down: recovers is for detector=hi-adsd")
        if self.notifies and self.recovers:
            raise UsageError("a notice does not say which incarnation has crashed: take notifies or recovers")

    def letters(self, n: int) -> dict[str, float]:
        return {"k": self.k}

    @property
    def claims(self) -> Claims:
        """What the paper says, with what the settings change about it."""
        return replace(
            CLAIMS,
            messages_per_entry=self.messages_per_entry(),
            delay=CLAIMS.delay if self.tree else Formula("2"),
            fencing=self.fences,
        )

    @property
    def fences(self) -> bool:
        return self.k == 1 and not self.recovers

    def messages_per_entry(self) -> Formula:
        least = "3*n-k-2" if self.tree and not self.reply_is_ack else "2*n-k-1"
        most = "3*(n-1)" if self.tree else "2*(n-1)"
        return Formula(f"{least}..{'inf' if self.detector == 'hi-adsd' else most}")

    def __call__(self, n: int) -> list[Process]:
        if self.k >= n:
            raise UsageError(f"with {self.k} units for {n} processes nobody would ever wait: take at most {n - 1}")
        return [self.node(me, n) for me in range(n)]

    def node(self, me: int, n: int) -> RobustK:
        kind = RecoveringRobustK if self.recovers else RobustK
        return kind(me, n, self.k, *self.parts(me, n), notifies=self.notifies)

    def parts(self, me: int, n: int) -> tuple[PerfectDetector | HiAdsd, SpanningTree | None]:
        detector = HiAdsd(me, n, self.timing()) if self.detector == "hi-adsd" else PerfectDetector()
        return detector, SpanningTree(me, n, self.rules(n)) if self.tree else None

    def timing(self) -> Timing:
        return Timing(100 * self.delta, 4 * self.delta, self.delta, SCHEDULES[self.schedule])

    def rules(self, n: int) -> Rules:
        """The paper's timeout is 2 log n times delta, which for two processes leaves the answer no time to spare."""
        timeout = max(2 * dimensions(n), 3) * self.delta
        return Rules(timeout, RETRIES[self.retry], self.acknowledges_again, self.reply_is_ack)


Choice = TypeVar("Choice")


def _one_of(setting: str, word: str, choices: Mapping[str, Choice]) -> Choice:
    if word not in choices:
        raise UsageError(f"'{word}' is no {setting}: take {' or '.join(choices)}")
    return choices[word]
