"""``trinco reproduce``, as people call it."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.cli.test_commands import TRINCO, complaint, descendants, is_running, wait_for
from trinco.cli.main import main
from trinco.lab import forks_experiment


def called(capsys, *words):
    code = main(["reproduce", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def small(monkeypatch):
    """An experiment that is over at once."""
    extent = replace(forks_experiment.QUICK, sizes=(7, 13), counted=20, paired=20, seeds=1)
    monkeypatch.setattr(forks_experiment, "QUICK", extent)


@pytest.mark.usefixtures("small")
class TestForPeople:
    def test_shows_tables_and_a_verdict_on_each_claim(self, capsys):
        code, out, err = called(capsys, "forks", "--quick", "--jobs", "1")
        assert (code, err) == (0, "")
        for words in ("Messages per entry, saturated load", "Two active nodes", "Symmetry", "What the paper claims"):
            assert words in out
        for verdict in ("holds", "holds only if", "refuted"):
            assert f"│ {verdict} " in out

    def test_help_has_examples(self, capsys):
        with pytest.raises(SystemExit) as left:
            main(["reproduce", "--help"])
        assert left.value.code == 0
        assert "trinco reproduce forks --quick" in capsys.readouterr().out

    def test_without_a_name_it_says_what_there_is(self, capsys):
        code, out, err = called(capsys)
        assert (code, err) == (0, "")
        assert "forks" in out
        assert "messages per entry, claim by claim" in out


@pytest.mark.usefixtures("small")
class TestForPrograms:
    def test_json_has_every_number_and_verdict(self, capsys):
        code, out, err = called(capsys, "forks", "--quick", "--jobs", "1", "--json")
        told = json.loads(out)
        assert (code, err, told["experiment"], told["quick"]) == (0, "", "forks", True)
        saturated = {row["n"]: row for row in told["tables"][2]["rows"]}
        assert saturated["Forks (Campos-Carvalho)"] == {"n": "Forks (Campos-Carvalho)", "7": "4", "13": "6"}
        first = told["findings"][1]
        assert (first["claim"], first["published"], first["verdict"]) == ("the first entry", "2 sqrt n", "holds")
        assert first["ours"] == "2m: 4 at n=7, 6 at n=13"

    def test_the_list_is_data_too(self, capsys):
        code, out, _ = called(capsys, "--json")
        assert code == 0
        assert "forks" in [each["name"] for each in json.loads(out)]

    @pytest.mark.parametrize(("name", "start"), [("forks.png", b"\x89PNG"), ("forks.svg", b"<?xml")])
    def test_a_plot_is_written(self, capsys, tmp_path, name, start):
        file = tmp_path / name
        assert called(capsys, "forks", "--quick", "--jobs", "1", "--plot", str(file))[0] == 0
        assert file.read_bytes().startswith(start)


class TestWrongCalls:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("froks",), "there is no experiment 'froks', did you mean 'forks'?"),
            (("forks", "--plot", "forks.jpg"), ".png or .svg"),
            (("forks", "--plot", "/nowhere/at/all.png"), "cannot write /nowhere/at/all.png: No such file or directory"),
        ],
    )
    def test_get_one_clear_line_and_exit_64_before_any_work(self, capsys, words, said):
        code, out, err = called(capsys, *words)
        assert (code, out, err.count("\n")) == (64, "", 1)
        assert said in err

    @pytest.mark.parametrize("words", [("forks", "--jobs", "0"), ("forks", "bakery"), ("forks", "--slow")])
    def test_that_the_parser_refuses_are_64_too(self, words):
        assert "trinco" in complaint("reproduce", *words)

    def test_without_matplotlib_it_says_how_to_get_it(self, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        code, _, err = called(capsys, "forks", "--plot", "forks.png")
        assert (code, err.count("\n")) == (78, 1)
        assert "pip install 'trinco[plot]'" in err


class TestSeveralProcesses:
    @pytest.mark.usefixtures("small")
    def test_find_the_same_as_one(self, capsys):
        """They are started afresh, with whatever order their sets have."""
        words = ("forks", "--quick", "--json", "--jobs")
        (_, one, _), (_, two, _) = (called(capsys, *words, jobs) for jobs in "12")
        assert json.loads(one) == json.loads(two)

    def test_are_gone_after_ctrl_c(self):
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        call = [*TRINCO, "reproduce", "forks", "--quick", "--jobs", "2"]
        process = subprocess.Popen(call, start_new_session=True, text=True, **output)
        assert wait_for(lambda: list(descendants(process.pid).values()).count("spawn_main") >= 2)
        left_behind = set(descendants(process.pid))
        os.killpg(process.pid, signal.SIGINT)
        shown, _ = process.communicate(timeout=60)
        assert process.returncode == 130, shown
        assert re.fullmatch(r"trinco: interrupted after \d+% of the work\n", shown)
        assert wait_for(lambda: not any(map(is_running, left_behind)))
