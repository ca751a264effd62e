"""The plots of ``trinco compare``: what the algorithms claim about messages and delays, and what was measured."""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from trinco.core.formula import Formula
from trinco.lab.comparison import Compared, Subject
from trinco.lab.comparison_measures import Range
from trinco.lab.election_comparison import ElectionsCompared
from trinco.view.plots import Curve, Panel, Points, draw, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = "n, the number of nodes"


def draw_comparison(compared: Sequence[Compared]) -> "Figure":
    """Messages per entry and the delay before an entry, against n."""
    messages = Panel(
        "Messages per entry",
        SIZE,
        [curve for each in compared for curve in _claimed(each, each.subject.entry.claims.messages_per_entry)],
        [points for place, each in enumerate(compared) for points in _messages(place, each)],
        filled="everybody asks all the time",
        hollow="one asks after the other",
    )
    delay = Panel(
        "Message times from asking alone to entering",
        SIZE,
        [curve for each in compared for curve in _claimed(each, each.subject.entry.claims.delay)],
        [points for place, each in enumerate(compared) for points in _delays(place, each)],
        filled="messages in parallel",
        hollow="each message after the one before (sequential)",
    )
    largest = max(measures.n for each in compared for measures in each.measures)
    return draw([messages, delay], [_described(each.subject, largest) for each in compared])


def draw_elections(compared: Sequence[ElectionsCompared]) -> "Figure":
    """Messages of an election against n, and for the largest n against the rank of who notices."""
    sizes = tuple(dict.fromkeys(cost.n for cost in compared[0].costs))
    largest = max(sizes)
    by_size = Panel(
        "Messages of one election",
        SIZE,
        [curve for each in compared for curve in _extremes_claimed(each, sizes)],
        [points for place, each in enumerate(compared) for points in _extremes(place, each, sizes)],
        filled="the lowest notices",
        hollow="the highest that lives notices",
    )
    by_rank = Panel(
        f"Messages by the rank of who notices, n = {largest}",
        "d, the rank of the process that notices, from the lowest",
        [_ranks_claimed(each, largest) for each in compared],
        [_ranks(place, each, largest) for place, each in enumerate(compared)],
        filled="measured",
    )
    return draw([by_size, by_rank], [_described(each.subject, largest) for each in compared])


def _described(subject: Subject, n: int) -> str:
    """Its name, what it claims, and what the letters stand for with n nodes."""
    claim = written(subject.entry.claims.messages_per_entry.text)
    letters = [f"{name}={value:g}" for name, value in subject.entry.letters(n).items() if name in claim and name != "n"]
    known = f", with n={n}: {', '.join(letters)}" if letters else ""
    return f"{subject.title}: {claim}{known}"


def _claimed(each: Compared, formula: Formula) -> Iterable[Curve]:
    """Both ends of a range, as far as they say something: nothing is less than 0 or more than infinity."""
    xs = tuple(float(measures.n) for measures in each.measures)
    letters = [each.subject.entry.letters(measures.n) for measures in each.measures]
    low, _, high = formula.text.partition("..")
    lows = tuple(formula.low(**some) for some in letters)
    highs = tuple(formula.high(**some) for some in letters)
    if all(map(isfinite, highs)):
        yield Curve(high or low, xs, highs)
    if high and all(lows):
        yield Curve(low, xs, lows, is_lower_end=True)


def _messages(place: int, each: Compared) -> Iterable[Points]:
    xs = tuple(float(measures.n) for measures in each.measures)
    yield Points(place, xs, tuple(measures.messages.saturated for measures in each.measures))
    yield Points(place, xs, tuple(measures.messages.in_turn for measures in each.measures), hollow=True)


def _delays(place: int, each: Compared) -> Iterable[Points]:
    xs = tuple(float(measures.n) for measures in each.measures)
    yield Points(place, xs, tuple(_mean(measures.delay) for measures in each.measures))
    yield Points(place, xs, tuple(_mean(measures.sequential_delay) for measures in each.measures), hollow=True)


def _mean(delay: Range | None) -> float | None:
    return None if delay is None else delay.mean


def _extremes_claimed(each: ElectionsCompared, sizes: Sequence[int]) -> Iterable[Curve]:
    """When the lowest notices, and when the highest that lives does."""
    xs = tuple(map(float, sizes))
    yield Curve(_with_rank(each.formula, "1"), xs, tuple(each.of(n, 1).predicted for n in sizes))
    yield Curve(_with_rank(each.formula, "n-1"), xs, tuple(each.of(n, n - 1).predicted for n in sizes))


def _with_rank(formula: Formula, rank: str) -> str:
    return f"{formula}, d={rank}" if "d" in formula.text else formula.text


def _extremes(place: int, each: ElectionsCompared, sizes: Sequence[int]) -> Iterable[Points]:
    xs = tuple(map(float, sizes))
    yield Points(place, xs, tuple(float(each.of(n, 1).messages) for n in sizes))
    yield Points(place, xs, tuple(float(each.of(n, n - 1).messages) for n in sizes), hollow=True)


def _ranks_claimed(each: ElectionsCompared, n: int) -> Curve:
    ranks = each.ranks(n)
    return Curve(each.formula.text, tuple(map(float, ranks)), tuple(each.of(n, rank).predicted for rank in ranks))


def _ranks(place: int, each: ElectionsCompared, n: int) -> Points:
    ranks = each.ranks(n)
    return Points(place, tuple(map(float, ranks)), tuple(float(each.of(n, rank).messages) for rank in ranks))
