"""``trinco compare``, as people call it."""

import csv
import json
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.test_commands import TRINCO, complaint, descendants, is_running, wait_for
from trinco.cli.main import main

FEW = ("coordinator", "ricart-agrawala", "-n", "4,6", "--jobs", "1")


def called(capsys, *words):
    code = main(["compare", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def rows_of(text):
    """The cells of all tables that were printed."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]


def read_csv(file):
    return list(csv.DictReader(file.read_text().splitlines()))


@pytest.fixture(scope="module")
def shown():
    done = subprocess.run([*TRINCO, "compare", *FEW], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


class TestForPeople:
    def test_says_what_is_claimed_and_measured(self, shown):
        rows = rows_of(shown)
        assert ["ricart-agrawala", "alone", "2*(n-1)", "6", "10"] in rows
        assert ["ricart-agrawala", "parallel", "2", "2", "2"] in rows
        assert ["", "sequential", "", "6", "10"] in rows
        assert ["coordinator", "2", "3.545", "15", "4", "1"] in rows, "delays, responses, overtaking, Jain's index"

    def test_says_how_each_property_was_established(self, shown):
        assert "checked exhaustively: n=3, 2 entries each, 25,674 states" in shown
        assert "S1" in shown
        assert "V2" in shown

    def test_says_how_well_the_resource_is_used(self, shown):
        assert "by offered load, n = 6" in shown

    def test_says_what_its_words_mean(self, shown):
        for word in ("alone", "in turn", "light", "saturated", "parallel", "sequential", "response"):
            assert word in shown

    def test_help_has_examples(self):
        done = subprocess.run([*TRINCO, "compare", "--help"], capture_output=True, text=True, timeout=60, check=True)
        assert "examples:" in done.stdout


class TestForPrograms:
    def test_json_and_csv_have_everything(self, capsys, tmp_path):
        file = tmp_path / "compare.csv"
        code, out, err = called(capsys, *FEW, "--json", "--csv", str(file))
        told = json.loads(out)
        assert (code, err, told["sizes"], told["seed"]) == (0, "", [4, 6], 0)
        coordinator, ricart_agrawala = told["protocols"]
        assert coordinator["measured"][0]["messages"] == {"alone": 3, "in_turn": 3, "light": 3, "saturated": 3}
        assert ricart_agrawala["measured"][1]["sequential_delay"]["mean"] == 10
        checked = {"claimed": True, "holds": True, "how": "checked exhaustively"}
        assert ricart_agrawala["properties"]["findings"]["V2"] == checked
        assert [each["offered"] for each in coordinator["utilisation"]][:2] == [0.1, 0.25]
        assert [(row["protocol"], row["n"], row["messages_saturated"]) for row in read_csv(file)] == [
            ("coordinator", "4", "3.0"),
            ("coordinator", "6", "3.0"),
            ("ricart-agrawala", "4", "6.0"),
            ("ricart-agrawala", "6", "10.0"),
        ]

    @pytest.mark.parametrize(("name", "start"), [("c.png", b"\x89PNG"), ("c.svg", b"<?xml")])
    def test_a_plot_is_written(self, capsys, tmp_path, name, start):
        file = tmp_path / name
        assert called(capsys, "coordinator", "-n", "4", "--jobs", "1", "--plot", str(file))[0] == 0
        assert file.read_bytes().startswith(start)

    def test_two_processes_find_the_same_as_one(self, capsys):
        """Those are started afresh, with whatever order their sets have."""
        words = ("coordinator", "token-ring", "-n", "4", "--json", "--jobs")
        (_, one, _), (_, two, _) = (called(capsys, *words, jobs) for jobs in "12")
        assert json.loads(one) == json.loads(two)

    def test_a_setting_makes_another_algorithm_of_it(self, capsys):
        code, out, _ = called(capsys, "coordinator", "--set", "says_nok=yes", "-n", "4", "--jobs", "1", "--json")
        measured = json.loads(out)["protocols"][0]["measured"][0]["messages"]
        assert code == 0
        assert (measured["alone"], measured["saturated"]) == (3, 4)


class TestElections:
    def test_shows_messages_against_n_and_against_the_rank(self, capsys, tmp_path):
        file = tmp_path / "elections.png"
        code, out, _ = called(capsys, "--elections", "-n", "4,8", "--jobs", "1", "--plot", str(file))
        rows = rows_of(out)
        assert code == 0
        assert ["bully", "the lowest, d=1", "(n-d)**2+n-2", "11", "55"] in rows
        assert ["bully", "4", "22", "22", "4", "0"] in [row[:6] for row in rows]
        assert ["ring-election", "4", "14", "14 (+2)", "2", "14"] in [row[:6] for row in rows]
        assert ["ring-election", "the lowest, d=1", "2*(n-1)", "6 (+2)", "14 (+2)"] in rows
        assert ["", "all", "2*(n-1)**2", "18 (+6)", "98 (+14)"] in rows
        assert file.read_bytes().startswith(b"\x89PNG")

    def test_are_data_too(self, capsys, tmp_path):
        file = tmp_path / "elections.csv"
        code, out, _ = called(capsys, "bully", "--elections", "-n", "8", "--jobs", "1", "--csv", str(file), "--json")
        measured = json.loads(out)["elections"][0]["measured"]
        assert code == 0
        assert [(each["rank"], each["messages"]) for each in measured][-2:] == [(7, 7), (None, 55)]
        assert read_csv(file)[-1]["rank"] == "all"


class TestVoteLoss:
    def test_has_the_textbook_s_sizes_beside_a_simulation(self, capsys):
        code, out, _ = called(capsys, "--vote-loss", "--json")
        told = json.loads(out)
        chances = {(each["m"], each["v"]): each["probability"] for each in told["predicted"] if each["p"] < 0.001}
        assert code == 0
        assert chances[8, 5] == pytest.approx(6.9e-6, rel=0.01)
        assert all(abs(each["share"] - each["predicted"]) < 0.1 for each in told["simulated"])

    def test_is_a_table_for_people(self, capsys):
        code, out, _ = called(capsys, "--vote-loss")
        assert code == 0
        assert "6.93e-06" in out
        assert "two inside together" in out


class TestWrongCalls:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("lamprt",), "did you mean 'lamport'?"),
            (("ordered-voting", "-n", "2"), "at least 3 nodes, not 2"),
            (("quorum-lease",), "clocks and stores"),
            (("bully",), "--elections"),
            (("coordinator", "--elections"), "is no election"),
            (("--vote-loss", "-n", "4"), "--vote-loss takes no"),
            (("--set", "m=3"), "name them"),
            (("coordinator", "--set", "slot=3"), "no setting 'slot'"),
            (("--plot", "picture.jpg"), ".png or .svg"),
            (("--plot", "/nowhere/at/all.png"), "cannot write /nowhere/at/all.png: No such file or directory"),
            (("--csv", "/nowhere/at/all.csv"), "cannot write"),
            (("--csv", "/"), "cannot write /: Is a directory"),
        ],
    )
    def test_get_one_clear_line_and_exit_64_before_any_work(self, capsys, words, said):
        code, out, err = called(capsys, *words)
        assert (code, out, err.count("\n")) == (64, "", 1)
        assert said in err

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("-n", "1"), "n must be at least 2, not 1"),
            (("-n", "4,many"), "n is a whole number, not 'many'"),
            (("-n", ""), "n is a whole number"),
            (("--jobs", "0"), "at least 1"),
            (("--elections", "--vote-loss"), "not allowed with"),
        ],
    )
    def test_that_the_parser_refuses_are_64_too(self, words, said):
        assert said in complaint("compare", *words)

    def test_a_file_that_can_be_written_is_not_touched_before_there_is_something_to_write(self, capsys, tmp_path):
        kept, absent = tmp_path / "kept.csv", tmp_path / "absent.png"
        kept.write_text("as it was")
        assert called(capsys, "nosuch", "--csv", str(kept), "--plot", str(absent))[0] == 64
        assert kept.read_text() == "as it was"
        assert not absent.exists()

    def test_without_matplotlib_it_says_how_to_get_it(self, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        code, _, err = called(capsys, "--plot", "compare.png")
        assert (code, err.count("\n")) == (78, 1)
        assert "pip install 'trinco[plot]'" in err


class TestCtrlC:
    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_ends_it_with_130_and_leaves_nothing_running(self, jobs):
        call = [*TRINCO, "compare", "lamport", "-n", "128,256,512", "--jobs", jobs]
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(call, start_new_session=True, text=True, **output)
        workers = int(jobs) if jobs != "1" else 0
        assert wait_for(lambda: list(descendants(process.pid).values()).count("spawn_main") >= workers)
        assert wait_for(lambda: cpu_seconds(process.pid) > 1.0)
        left_behind = set(descendants(process.pid))
        os.killpg(process.pid, signal.SIGINT)
        shown, _ = process.communicate(timeout=30)
        assert process.returncode == 130, shown
        assert shown.startswith("trinco: interrupted")
        assert shown.count("\n") == 1
        assert wait_for(lambda: not any(map(is_running, left_behind)))


def cpu_seconds(pid):
    """What a process and those below it have used."""
    ticks = 0
    for each in (pid, *descendants(pid)):
        try:
            with open(f"/proc/{each}/stat") as file:
                ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")
