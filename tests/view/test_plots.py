"""Plots: formulas as lines, measurements as points, and nothing written over anything else."""

import sys
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from matplotlib.text import Text

from trinco.core.errors import ConfigError, UsageError
from trinco.lab.comparison import Compared, everybody, subjects
from trinco.lab.comparison_measures import measure
from trinco.lab.election_comparison import compare_elections, elections
from trinco.lab.properties import Properties
from trinco.view.comparison_plot import draw_comparison, draw_elections
from trinco.view.plots import Curve, Panel, Points, apart, draw, format_of, need_matplotlib, picture, written

SIZES = (4, 8, 32)


def compared(chosen, sizes=SIZES):
    nothing = Properties({}, "", "")
    return [Compared(subject, tuple(measure(subject.entry, n) for n in sizes), nothing, ()) for subject in chosen]


@pytest.fixture(scope="module")
def whole():
    """Every algorithm there is: that is when it gets crowded."""
    return draw_comparison(compared(everybody()))


def lines(axes, style):
    return [tuple(line.get_ydata()) for line in axes.lines if line.get_linestyle() == style]


def points(axes):
    return [tuple(line.get_ydata()) for line in axes.lines if line.get_linestyle() == "None"]


def shown_labels(axis):
    """Those at places outside of the picture exist and are not drawn."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


def texts(figure):
    """Everything written, with the room it takes; the thin lines that lead to it may pass others."""
    figure.draw_without_rendering()
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    written_in = [text for legend in legends for text in legend.get_texts()]
    beside = [text for axes in figure.axes for text in axes.texts]
    titles = [axes.title for axes in figure.axes] + [axes.xaxis.label for axes in figure.axes]
    left = [axes._left_title for axes in figure.axes]
    ticks = [tick for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for tick in shown_labels(axis)]
    return {
        text: Text.get_window_extent(text) for text in (*written_in, *beside, *titles, *left, *ticks) if text.get_text()
    }


class TestTheComparison:
    def test_has_messages_and_delay_against_n_on_scales_of_powers(self, whole):
        messages, delay = whole.axes
        assert messages.get_title(loc="left") == "Messages per entry"
        assert "Message times" in delay.get_title(loc="left")
        assert {axes.get_xscale() for axes in whole.axes} == {"log"}
        assert {axes.get_yscale() for axes in whole.axes} <= {"log", "symlog"}

    def test_draws_what_is_claimed_as_lines_and_what_was_measured_as_points(self):
        messages, delay = draw_comparison(compared(subjects(["ricart-agrawala", "token-ring"]))).axes
        assert lines(messages, "-") == [(6, 14, 62)]
        assert lines(messages, "--") == [(1, 1, 1)]
        assert points(messages)[:3] == [(6, 14, 62), (6, 14, 62), (1, 1, 1)]
        assert points(delay)[:2] == [(2, 2, 2), (6, 14, 62)], "in parallel, and one after the other"
        assert (3, 7, 31) in lines(delay, "-")

    def test_draws_a_line_that_several_claim_once_and_says_what_they_call_it(self):
        axes = draw_comparison(compared(subjects(["ricart-agrawala", "carvalho-roucairol"]))).axes[0]
        assert lines(axes, "-") == [(6, 14, 62)]
        assert [text.get_text() for text in axes.texts] == ["2·(n-1)"]

    def test_writes_nothing_over_anything_else(self, whole):
        for (one, its), (other, others) in combinations(texts(whole).items(), 2):
            assert not its.overlaps(others), (one.get_text(), other.get_text())

    def test_writes_everything_inside_the_picture_that_is_saved(self, whole):
        saved = whole.get_tightbbox().padded(0.1)
        scale = 1 / whole.dpi
        for text, room in texts(whole).items():
            assert saved.x0 <= room.x0 * scale, text
            assert room.x1 * scale <= saved.x1, text

    def test_names_every_algorithm_with_its_claim_and_a_look_of_its_own(self, whole):
        legend = whole.legends[0]
        names = [text.get_text() for text in legend.get_texts()]
        assert [name.partition(":")[0] for name in names] == [subject.name for subject in everybody()]
        assert "ricart-agrawala: 2·(n-1)" in names
        looks = {(handle.get_marker(), handle.get_color()) for handle in legend.legend_handles}
        assert len(looks) == len(names)

    def test_covers_no_point_with_its_legend(self, whole):
        whole.draw_without_rendering()
        for axes in whole.axes:
            assert axes.get_legend().get_window_extent().y0 >= axes.get_window_extent().y1 - 1

    def test_can_show_a_single_n(self):
        figure = draw_comparison(compared(subjects(["coordinator"]), sizes=(4,)))
        assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["4"]
        assert picture(figure, "png")


@pytest.fixture(scope="module")
def elected():
    return draw_elections(compare_elections(elections(["bully", "ring-election"]), (4, 8)))


class TestElections:
    def test_have_messages_against_n_and_against_the_rank(self, elected):
        by_size, by_rank = elected.axes
        assert (11, 55) in lines(by_size, "-")
        assert (3, 7) in points(by_size)
        assert points(by_rank)[0] == (55, 42, 22, 10, 7) == lines(by_rank, "-")[0]

    def test_write_nothing_over_anything_else(self, elected):
        for (one, its), (other, others) in combinations(texts(elected).items(), 2):
            assert not its.overlaps(others), (one.get_text(), other.get_text())


@pytest.fixture(scope="module")
def figure():
    panel = Panel("title", "n", [Curve("2*n", (4.0, 8.0), (8.0, 16.0))], [Points(0, (4.0, 8.0), (8.0, None))], "seen")
    return draw([panel], ["an algorithm"])


class TestPictures:
    def test_are_png(self, figure):
        assert picture(figure, "png").startswith(b"\x89PNG")

    def test_are_svg(self, figure):
        root = ElementTree.fromstring(picture(figure, "svg").decode())
        assert root.tag.endswith("svg")

    @pytest.mark.parametrize("form", ["png", "svg"])
    def test_are_the_same_when_drawn_again(self, figure, form):
        assert picture(figure, form) == picture(figure, form)

    def test_leave_out_what_was_not_measured(self, figure):
        assert points(figure.axes[0]) == [(8.0,)]

    def test_of_zero_have_a_place_on_the_scale(self):
        panel = Panel("title", "n", [], [Points(0, (4.0, 8.0), (0.0, 16.0))], "seen")
        assert draw([panel], ["an algorithm"]).axes[0].get_yscale() == "symlog"

    @pytest.mark.parametrize("name", ["plot", "plot.jpg", "png", ".PNG.txt"])
    def test_are_nothing_else(self, name):
        with pytest.raises(UsageError, match=r"must end in \.png or \.svg"):
            format_of(name)

    def test_are_what_the_name_says(self):
        assert [format_of(name) for name in ("a.png", "b.c.SVG")] == ["png", "svg"]

    def test_need_matplotlib_and_say_how_to_get_it(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(ConfigError, match=r"pip install 'trinco\[plot\]'"):
            need_matplotlib()


class TestLabels:
    @pytest.mark.parametrize(
        "heights", [[0.1, 0.2, 0.3], [0.5, 0.5, 0.5, 0.5], [0.1, 0.11, 0.12, 0.3, 0.31], [0.1, 0.13, 0.16, 0.19, 0.2]]
    )
    def test_stand_apart_in_their_order(self, heights):
        places = apart(heights, gap=0.04)
        assert all(above - below >= 0.04 - 1e-9 for below, above in pairwise(places))
        assert sum(places) == pytest.approx(sum(heights))

    def test_stay_where_there_is_room(self):
        assert apart([0.1, 0.2, 0.9], gap=0.04) == [0.1, 0.2, 0.9]

    def test_are_written_as_by_hand(self):
        assert written("(n-d)**2+3*m") == "(n-d)²+3·m"
