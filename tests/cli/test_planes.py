"""``trinco planes``, as people call it."""

import json

import pytest

from trinco.cli.main import main
from trinco.protocols.quorums.planes import plane
from trinco.view.incidence import draw
from trinco.view.timeline import ASCII

ORDER_2 = """\
plane           order 2, 7 points and as many lines, 3 on each
difference set  {0, 1, 3} mod 7: line i has i plus each of these

node  asks   0123456
0     0 1 3  ●●.●...
1     1 2 4  .●●.●..
2     2 3 5  ..●●.●.
3     3 4 6  ...●●.●
4     0 4 5  ●...●●.
5     1 5 6  .●...●●
6     0 2 6  ●.●...●

there are 7 lines                             holds
3 points are on each line                     holds
3 lines go through each point                 holds
two points are on exactly one common line     holds
two lines meet in exactly one point           holds
point i is on line i                          holds
each of 1 to 6 is the difference of one pair  holds
"""

FOR_TEN = """\
nodes     10, on the plane of order 3 with 13 points
arbiters  13; 3 virtual, 0 pruned
at most   4 asked by one node, 2 run by one node

                                1
node  asks           0123456789 012
0     0 1 3 9        ●●.●.....●│...
1     1 2 4 10@1     .●●.●.....│●..
2     2 3 5 11@2     ..●●.●....│.●.
3     3 4 6 12@3     ...●●.●...│..●
4     0 4 5 7        ●...●●.●..│...
5     1 5 6 8        .●...●●.●.│...
6     2 6 7 9        ..●...●●.●│...
7     3 7 8 10@1     ...●...●●.│●..
8     4 8 9 11@2     ....●...●●│.●.
9     5 9 10@1 12@3  .....●...●│●.●

two clients have exactly one common arbiter                          holds
no client asks more than 4 arbiters                                  holds
every arbiter has two clients or more, or is pruned                  holds
a real arbiter runs at itself, a virtual one at a client of its own  holds
"""


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["planes", *words]) == code
    said = capsys.readouterr()
    assert not said.err
    return said.out


def test_a_plane_is_printed_drawn_and_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "2") == ORDER_2


def test_the_arrangement_of_any_number_of_nodes_says_who_runs_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "-n", "10") == printed(capsys, "--n", "10") == FOR_TEN


def test_a_plane_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(printed(capsys, "3", "--json"))
    assert told["order"] == 3
    assert told["points"] == 13
    assert told["difference_set"] == [0, 1, 3, 9]
    assert tuple(map(tuple, told["quorums"])) == plane(3)
    assert told["holds"] is True
    assert len(told["checks"]) == 7
    assert {check["fault"] for check in told["checks"]} == {None}


def test_an_arrangement_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(printed(capsys, "-n", "4", "--json"))
    assert told["n"] == 4
    assert told["order"] == 2
    assert told["points"] == 7
    assert told["quorums"] == [[1, 3], [1, 2, 4], [2, 3], [3, 4]]
    assert told["hosts"] == {"1": 1, "2": 2, "3": 3, "4": 1}
    assert told["largest_quorum"] == 3
    assert told["most_arbiters_at_a_node"] == 2
    assert told["holds"] is True


def test_a_plane_too_wide_to_draw_is_printed_without_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    assert "●" in printed(capsys, "8")
    lines = printed(capsys, "9").splitlines()
    assert "●" not in "".join(lines)
    assert lines[4] == "0     0 1 3 9 27 49 56 61 77 81"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("6",), "6 is not a power of a prime; the next order that works is 7"),
        (("10",), "10 is not a power of a prime; the next order that works is 11"),
        (("131",), "the order 131 is too large: planes are built up to order 128, which has 16,513 points"),
        (("-n", "16514"), "16,514 nodes are too many"),
        ((), "give the order of a plane, or else -n"),
        (("2", "-n", "7"), "give the order of a plane, or else -n"),
    ],
)
def test_wrong_input_gets_one_clear_line_and_exit_64(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    assert main(["planes", *words]) == 64
    said = capsys.readouterr()
    assert not said.out
    assert said.err.count("\n") == 1
    assert told in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("0",), "the order must be at least 1, not 0"),
        (("two",), "the order is a whole number, not 'two'"),
        (("-n", "0"), "n must be at least 1, not 0"),
    ],
)
def test_what_is_no_number_of_anything_is_64_too(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["planes", *words])
    assert ended.value.code == 64
    assert told in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["planes", "--help"])
    assert ended.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_plain_letters_draw_the_same_picture() -> None:
    assert list(draw(((0, 2), (1, 2)), 3, first=2, pen=ASCII)) == ["01 2", "*.|*", ".*|*"]
