"""Figure 3, drawn from the table that the servers go by."""

import re
from xml.etree import ElementTree

import pytest

from trinco.protocols.bakery import automaton as table
from trinco.protocols.bakery.automaton import BYZ, C, Move, R, State, edges
from trinco.view import automaton
from trinco.view.automaton import arrows, as_svg, as_text, name

SVG = "{http://www.w3.org/2000/svg}"


def drawn():
    return ElementTree.fromstring(as_svg())


def words():
    return [text.text for text in drawn().iter(f"{SVG}text")]


def numbers(path):
    return [float(number) for number in re.findall(r"-?[\d.]+", path)]


def test_every_edge_of_the_table_is_in_an_arrow_and_nothing_else():
    told = {(arrow.source, move, arrow.reached) for arrow in arrows() for move in arrow.moves}
    assert told == set(edges())
    assert len(arrows()) == 3 + 3 + 4, "on, back, and into byz"


def test_all_states_and_all_labels_are_written():
    assert {name(state) for state in State} <= set(words())
    assert {arrow.label for arrow in arrows()} <= set(words())
    assert "EXIT or a removal certificate" in words()


def test_what_changes_nothing_is_told_below():
    assert "LISTEN (in E1, E2, C)" in words()
    below = " ".join(words()[words().index("A client stays where it is on:") :])
    for (state, move), reached in table.TABLE.items():
        assert (move.value in below) or state is not reached


def test_an_arrow_begins_at_its_state_and_ends_at_the_other():
    circles = [circle.attrib for circle in drawn().iter(f"{SVG}circle")]
    centres = [float(circle["cx"]) for circle in circles]
    radius = float(circles[0]["r"])
    ways = [way for way in drawn().iter(f"{SVG}path") if "way" in way.get("class", "")]
    assert len(ways) == len(arrows())
    for arrow, way in zip(arrows(), ways, strict=True):
        start, end = numbers(way.attrib["d"])[0], numbers(way.attrib["d"])[-2]
        assert abs(start - centres[list(State).index(arrow.source)]) <= radius
        if arrow.reached is not BYZ:
            assert abs(end - centres[list(State).index(arrow.reached)]) <= radius + 3
        assert ("down" in way.attrib["class"]) is (arrow.reached is BYZ)


def test_nothing_is_outside_of_the_picture():
    _, _, width, height = map(float, drawn().attrib["viewBox"].split())
    for text in drawn().iter(f"{SVG}text"):
        assert 0 < float(text.attrib["x"]) < width
        assert 12 < float(text.attrib["y"]) < height


def test_no_two_texts_are_at_the_same_place():
    places = [(text.attrib["x"], text.attrib["y"]) for text in drawn().iter(f"{SVG}text")]
    assert len(set(places)) == len(places)


def test_as_text_each_state_says_where_it_leads():
    text = "\n".join(as_text())
    assert "C: granted\n  EXIT                   -> R\n  a removal certificate  -> R\n  anything else" in text
    assert text.endswith("byz: Byzantine\n  stays: for ever")
    assert text.count(" -> ") == len(set(edges()))


@pytest.mark.parametrize("draw", [as_svg, lambda: "\n".join(as_text())], ids=["svg", "text"])
def test_another_table_makes_another_picture(draw, monkeypatch):
    before = draw()
    shorter = {key: reached for key, reached in table.TABLE.items() if key != (C, Move.EXIT)}
    assert shorter[C, Move.REMOVAL] is R
    for module in (table, automaton):
        monkeypatch.setattr(module, "TABLE", shorter)
    assert draw() != before
