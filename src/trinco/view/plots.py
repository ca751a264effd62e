"""Plots of formulas and measurements: what is claimed as lines, what was measured as points, on scales of powers.

Several algorithms claim the same, and a line for each would hide all but the last. So lines are grey and have their
formula written at their end; points have the colour and the shape of their algorithm, and stand side by side.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trinco.core.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#000000",
    "#a5aa99", "#80ba5a", "#e73f74", "#8c564b", "#17becf", "#8b0000", "#6b6ecf", "#b5a300",
)  # fmt: skip
MARKERS = "osD^vP*X<>hpd8H"
"""Not as many as colours and with no common divisor, so that colour and shape together repeat late."""
GREY = "#8a8a8a"
SIDE_STEP, SPREAD = 0.035, 0.42
"""How far apart the points of two algorithms stand, and those of all at most, of the way from one n to the next."""
GAP = 0.035
"""Between two labels, of the height of a panel."""


@dataclass(frozen=True)
class Curve:
    """A formula, or one end of its range."""

    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    is_lower_end: bool = False


@dataclass(frozen=True)
class Points:
    """``subject``: the place of its algorithm among all that are drawn, which decides on colour and shape."""

    subject: int
    xs: tuple[float, ...]
    ys: tuple[float | None, ...]
    hollow: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    horizontal: str
    curves: Sequence[Curve]
    points: Sequence[Points]
    filled: str
    """What filled points are."""
    hollow: str | None = None

    @property
    def values(self) -> list[float]:
        """All heights in it."""
        measured = [y for each in self.points for y in each.ys if y is not None]
        return [*measured, *(y for curve in self.curves for y in curve.ys)]


def format_of(name: str) -> str:
    """PNG or SVG, by the end of the file's name."""
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    if suffix not in FORMATS:
        raise UsageError(f"'{name}' must end in .png or .svg: those are the pictures that can be drawn")
    return suffix


def need_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as missing:
        raise ConfigError("a plot needs the package matplotlib: pip install 'trinco[plot]'") from missing


def draw(panels: Sequence[Panel], subjects: Sequence[str]) -> "Figure":
    """``subjects``: what is written for each algorithm in the legend below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5 * len(panels), 7.5))
    spaces: Any = figure.subplots(1, len(panels), squeeze=False, gridspec_kw={"wspace": 0.34})[0]
    for axes, panel in zip(spaces, panels, strict=True):
        _draw_panel(axes, panel, len(subjects))
    _legend(figure, subjects)
    return figure


def picture(figure: "Figure", form: str) -> bytes:
    """The bytes of a file. The same figure gives the same bytes."""
    from matplotlib import rc_context

    undated: dict[str, Any] = {"Software": None} if form == "png" else {"Date": None}
    with io.BytesIO() as file, rc_context({"svg.hashsalt": "trinco"}):
        figure.savefig(file, format=form, dpi=130, metadata=undated, bbox_inches="tight")
        return file.getvalue()


def written(formula: str) -> str:
    """As people write it by hand."""
    return formula.replace("**2", "²").replace("*", "·")


def _draw_panel(axes: "Axes", panel: Panel, subjects: int) -> None:
    axes.set_title(panel.title, loc="left", fontsize=12, fontweight="bold", pad=42)
    axes.set_xlabel(panel.horizontal)
    curves = _distinct(panel.curves)
    for curve in curves:
        style = "--" if curve.is_lower_end else "-"
        axes.plot(curve.xs, curve.ys, style, color=GREY, linewidth=1.0, zorder=1)
    for each in panel.points:
        _draw_points(axes, each, subjects)
    _scale(axes, panel)
    _label(axes, curves)
    _explain(axes, panel)


def _distinct(curves: Iterable[Curve]) -> list[Curve]:
    """Those that lie on each other once, with all that is written for them."""
    by_values: dict[tuple[float, ...], Curve] = {}
    for curve in sorted(curves, key=lambda each: each.is_lower_end):
        known = by_values.setdefault(curve.ys, curve)
        if curve.label not in known.label.split(" = "):
            by_values[curve.ys] = replace(known, label=f"{known.label} = {curve.label}")
    return list(by_values.values())


def _draw_points(axes: "Axes", each: Points, subjects: int) -> None:
    colour = COLOURS[each.subject % len(COLOURS)]
    step = min((after / before for before, after in zip(each.xs, each.xs[1:], strict=False)), default=2.0)
    spread = min(SIDE_STEP * subjects, SPREAD)
    shift = step ** (spread * ((each.subject + 0.5) / subjects - 0.5))
    known = [(x * shift, y) for x, y in zip(each.xs, each.ys, strict=True) if y is not None]
    axes.plot(
        [x for x, _ in known],
        [y for _, y in known],
        linestyle="none",
        marker=MARKERS[each.subject % len(MARKERS)],
        markersize=9 if each.hollow else 6,  # a ring around the filled one where both are the same
        markeredgecolor=colour,
        markerfacecolor="none" if each.hollow else colour,
        markeredgewidth=1.2,
        zorder=2 if each.hollow else 3,
    )


def _scale(axes: "Axes", panel: Panel) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    axes.set_xscale("log", base=2)
    if min(panel.values) > 0:
        axes.set_yscale("log")
    else:
        axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    xs = sorted({x for each in panel.points for x in each.xs})
    axes.set_xticks(xs, [f"{x:g}" for x in xs])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _label(axes: "Axes", curves: Sequence[Curve]) -> None:
    """Each curve's formula beside its end."""
    heights = sorted(((_height(axes, curve), curve) for curve in curves), key=lambda pair: pair[0])
    places = apart([height for height, _ in heights])
    for (height, curve), place in zip(heights, places, strict=True):
        axes.annotate(
            written(curve.label),
            xy=(1.0, height),
            xytext=(1.04, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            color="#333333",
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )


def _height(axes: "Axes", curve: Curve) -> float:
    """Where it ends, of the height of the panel."""
    end = axes.transData.transform((curve.xs[-1], curve.ys[-1]))
    return float(axes.transAxes.inverted().transform(end)[1])


def apart(heights: Sequence[float], gap: float = GAP) -> list[float]:
    """The same heights, in order, at least a gap apart, and near to where they were: those that are too close to each
    other form a block around their middle."""
    blocks: list[list[float]] = []
    for height in heights:
        blocks.append([height])
        while len(blocks) > 1 and _middle(blocks[-1]) - _middle(blocks[-2]) < gap * _mean_size(blocks):
            last = blocks.pop()
            blocks[-1] += last
    return [_middle(block) + gap * (place - (len(block) - 1) / 2) for block in blocks for place in range(len(block))]


def _middle(block: Sequence[float]) -> float:
    return sum(block) / len(block)


def _mean_size(blocks: Sequence[Sequence[float]]) -> float:
    return (len(blocks[-1]) + len(blocks[-2])) / 2


def _explain(axes: "Axes", panel: Panel) -> None:
    """What the points and lines are, between the title and the panel, where nothing is covered."""
    from matplotlib.lines import Line2D

    shown = [Line2D([], [], linestyle="none", marker="o", color="black", label=panel.filled)]
    if panel.hollow:
        hollow = {"marker": "o", "color": "black", "markerfacecolor": "white"}
        shown.append(Line2D([], [], linestyle="none", label=panel.hollow, **hollow))  # type: ignore[arg-type]
    shown.append(Line2D([], [], color=GREY, label="claimed"))
    if any(curve.is_lower_end for curve in panel.curves):
        shown.append(Line2D([], [], color=GREY, linestyle="--", label="claimed: the least of a range"))
    axes.legend(handles=shown, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, fontsize=9, frameon=False)


def _legend(figure: "Figure", subjects: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=MARKERS[place % len(MARKERS)],
            color=COLOURS[place % len(COLOURS)],
            label=text,
        )
        for place, text in enumerate(subjects)
    ]
    columns = min(4, len(handles))
    figure.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.03), ncols=columns, fontsize=10, frameon=False
    )
