"""A flag that would change nothing is refused: whoever gave it meant something."""

import json

import pytest

from trinco.cli.main import main

BEYOND = ("--crashes", "99", "--beyond-claims")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("reproduce", "--plot", "some.png"), "--plot is for an experiment: name one"),
        (("reproduce", "--quick"), "--quick is for an experiment"),
        (("reproduce", "--jobs", "2"), "--jobs is for an experiment"),
        (("sim", "coordinator", "--all"), "--all is for many seeds: give --seeds too"),
        (("sim", "coordinator", "--jobs", "2"), "--jobs is for many seeds"),
        (("sim", "coordinator", "--no-shrink", "--seeds", "1"), "--no-shrink is for many seeds"),
        (("sim", "coordinator", "--seeds", "2", "--no-trace"), "--no-trace is for a single run"),
        (("sim", "coordinator", "--within", "20"), "give --crashes, --pauses or --partitions too"),
        (("sim", "coordinator", *BEYOND), "there are only 5 nodes"),
        (("sim", "coordinator", "--timeline", "--json"), "--timeline draws for people"),
        (("sim", "coordinator", "-n", "5001"), "give --no-trace with more than 5,000"),
        (("sim", "quorum-lease", "--clients", "1", *BEYOND), "there are only 5 nodes"),
        (("sim", "bully", "--patience", "3"), "'--patience' is for other protocols"),
        (("sim", "bully", "-k", "1"), "'-k' is for other protocols"),
        (("sim", "bakery", "--byzantine", "5:server/mute", "--byzantine", "5:server/any"), "one way only"),
        (("sim", "quorum-lease", "--byzantine", "5:silent", "--byzantine", "5:any"), "one way only"),
        (("sim", "voting", "--set", "m=3", "--set", "m=4"), "'m' is set to 3 and to 4"),
        (("check", "coordinator", *BEYOND), "there are only 3 nodes"),
        (("check", "bully", *BEYOND), "there are only 3 nodes"),
        (("check", "bully", "--crashes", "5", "--restarts", "1"), "there are only 3 nodes, of which 1 come back"),
        (("check", "bully", "--crashes", "3"), "does not claim to survive 3 crashes"),
        (("check", "quorum-lease", "--crashes", "7"), "there are only 6 nodes"),
        (("check", "bully", "--crashes", "1", "--restarts", "2"), "only 1 crashes to come back from"),
        (("check", "token-ring", "--fires", "2"), "token-ring sets no timer"),
        (("check", "coordinator", "--symmetry", "--no-reductions"), "contradicts --no-reductions"),
        (("check", "quorum-lease", "--byzantine", "5:silent", "--byzantine", "5:any"), "one way only"),
        (("compare", "--vote-loss", "--jobs", "2"), "no --jobs"),
        (("compare", "--elections", "--seed", "0"), "it takes no --seed"),
        (("exhibit", "--no-reductions"), "--no-reductions is for the search of an exhibit: name one"),
        (("exhibit", "--max-states", "5"), "--max-states is for the search"),
        (("exhibit", "--max-memory", "500"), "--max-memory is for the search"),
        (("verify", "run.ndjson", "--timeline", "--json"), "--timeline draws for people"),
    ],
)
def test_a_flag_that_would_change_nothing_says_what_it_needs(
    call: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(call)) == 64
    shown = capsys.readouterr()
    assert told in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out


def test_everybody_may_crash_and_one_of_them_twice() -> None:
    few = ("--max-states", "10", "--beyond-claims")
    assert main(["check", "bully", "-n", "2", "--crashes", "3", "--restarts", "1", *few]) == 3


def test_ways_to_lie_are_listed_as_data_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocols", "bakery", "--byzantine", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert ("bakery", "server/mute") in {(each["protocol"], each["strategy"]) for each in listed}
    assert all(each["what"] for each in listed)
