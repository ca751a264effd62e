"""Figures of a reproduction: one panel a figure, what was printed as lines, what was measured as points."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trinco.lab.reproduction import Curve, Panel
from trinco.view.plots import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT_IN, WIDTH_IN = 5.0, 10.0


def draw_panels(title: str, panels: Sequence[Panel]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN * len(panels)), layout="constrained")
    figure.suptitle(title, fontsize=12)
    for place, panel in enumerate(panels):
        _draw(figure.add_subplot(len(panels), 1, place + 1), panel)
    return figure


def _draw(axes: "Axes", panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=11, loc="left")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.logarithmic:
        _use_powers(axes)
    for place, curve in enumerate(panel.curves):
        _add(axes, curve, place)
    axes.grid(visible=True, alpha=0.25)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _use_powers(axes: "Axes") -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def _add(axes: "Axes", curve: Curve, place: int) -> None:
    line, marker = ("-", MARKERS[place % len(MARKERS)]) if curve.measured else ("--", None)
    colour = COLOURS[place % len(COLOURS)]
    axes.plot(curve.xs, curve.ys, color=colour, linestyle=line, marker=marker, markersize=4, label=curve.label)
