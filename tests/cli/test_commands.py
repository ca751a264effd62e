"""The command line as a person or a script meets it: in a process of its own, judged by what it prints and its exit."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TRINCO = [sys.executable, "-m", "trinco"]
ROOT = Path(__file__).resolve().parent.parent.parent


def trinco(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TRINCO, *arguments], capture_output=True, text=True, timeout=120, check=False, **options)


def facts(*arguments: str, code: int = 0) -> Any:
    done = trinco(*arguments, "--json")
    assert done.returncode == code, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)


def complaint(*arguments: str, code: int = 64) -> str:
    """The one line that a wrong call gets."""
    done = trinco(*arguments)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert not done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def passes(file: Path) -> bool:
    pytest_run = [sys.executable, "-m", "pytest", "-q", str(file)]
    return subprocess.run(pytest_run, capture_output=True, timeout=60, check=False).returncode == 0


class TestTheCatalogue:
    def test_lists_every_protocol_with_its_claims(self) -> None:
        done = trinco("protocols")
        assert done.returncode == 0
        for words in ("ricart-agrawala", "2*(n-1)", "coordinator", "token-ring", "1..inf"):
            assert words in done.stdout

    def test_has_the_claims_as_data(self) -> None:
        claims = {entry["name"]: entry["claims"] for entry in facts("protocols")}
        assert claims["ricart-agrawala"]["messages_per_entry"] == "2*(n-1)"
        assert claims["coordinator"]["crashes"] == "0"

    def test_shows_one_protocol_whole(self) -> None:
        text = trinco("protocols", "token-ring").stdout
        assert "testemunho" in text
        assert "at most n-1" in text

    def test_shows_a_choice_by_the_word_that_makes_it(self) -> None:
        assert ", policy=priority," in trinco("protocols", "quorum-lease").stdout
        (entry,) = facts("protocols", "quorum-lease")
        assert entry["settings"]["policy"] == "priority"

    @pytest.mark.parametrize("command", ["protocols", "exhibit", "reproduce"])
    def test_help_promises_no_single_object_where_a_list_is_printed(self, command: str) -> None:
        assert "one JSON object" not in trinco(command, "--help").stdout
        assert isinstance(facts(command), list)

    def test_says_which_strategies_there_are(self) -> None:
        text = trinco("protocols", "--byzantine").stdout
        for strategy in ("server/equivocate", "client/leapfrog", "grant-all"):
            assert strategy in text

    def test_a_reader_that_has_seen_enough_is_no_failure(self) -> None:
        """``trinco protocols | head -1``"""
        with subprocess.Popen([*TRINCO, "protocols"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.wait(30) == 0


class TestSimulating:
    def test_k_is_set_where_it_can_be(self) -> None:
        told = facts("sim", "raymond-k", "-n", "6", "-k", "3", "--entries", "30", "--workload", "saturated")
        assert told["violation"] is None
        assert facts("check", "robust-k", "-k", "1", "--rounds", "1", "--fires", "0")["states"] == 51_110

    def test_two_values_for_k_are_refused(self) -> None:
        assert "contradict" in complaint("sim", "robust-k", "-k", "1", "--set", "k=2")

    @pytest.mark.parametrize("n", [4, 8, 16, 32, 50, 64])
    def test_ricart_agrawala_takes_two_messages_for_each_other_process(self, n: int) -> None:
        told = facts("sim", "ricart-agrawala", "-n", str(n), "--entries", "200" if n != 50 else "500")
        assert told["messages_per_entry"] == told["worst_messages_per_entry"] == 2 * (n - 1)
        assert told["violation"] is None
        assert told["verdict"] == "no violation"

    @pytest.mark.parametrize("n", [4, 16, 64])
    def test_the_coordinator_takes_three(self, n: int) -> None:
        told = facts("sim", "coordinator", "-n", str(n))
        assert told["messages_per_entry"] == told["worst_messages_per_entry"] == 3

    def test_a_saturated_ring_takes_one(self) -> None:
        told = facts("sim", "token-ring", "-n", "8", "--workload", "saturated", "--entries", "800")
        assert told["messages_per_entry"] == pytest.approx(1, abs=0.01)

    def test_the_same_seed_gives_the_same_trace_and_another_seed_another(self) -> None:
        first, again, other = (
            facts("sim", "ricart-agrawala", "--delay", "exponential:1", "--seed", seed)["trace_hash"] for seed in "112"
        )
        assert first == again != other

    def test_a_run_for_people_ends_with_its_verdict(self) -> None:
        done = trinco("sim", "coordinator")
        assert done.stdout.rstrip().endswith("no violation")

    def test_a_crash_beyond_the_claims_is_refused_and_says_how_to_see_it(self) -> None:
        assert "--beyond-claims" in complaint("sim", "ricart-agrawala", "--fault", "crash:1@3")

    def test_a_crash_beyond_the_claims_blocks_everybody(self) -> None:
        done = trinco("sim", "ricart-agrawala", "-n", "3", "--fault", "crash:1@3", "--beyond-claims", "--timeline")
        assert done.returncode == 1
        assert "deadlock" in done.stdout
        assert "crashes" in done.stdout

    def test_many_seeds_on_two_processes_find_the_same_as_on_one(self) -> None:
        call = ("sim", "ricart-agrawala", "--loss", "0.02", "--beyond-claims", "--seeds", "60", "--all", "--no-shrink")
        one, two = (facts(*call, "--jobs", jobs, code=1) for jobs in "12")
        assert one["seeds_violating"] == two["seeds_violating"]
        assert one["seeds_run"] == 60

    def test_a_failing_seed_is_made_small(self) -> None:
        told = facts("sim", "ricart-agrawala", "-n", "6", "--loss", "0.05", "--beyond-claims", "--seeds", "50", code=1)
        assert told["n"] == 2
        assert told["violation"]["property"] == "EveryoneServed"

    def test_a_script_asks_exactly_what_it_says(self) -> None:
        told = facts("sim", "ricart-agrawala", "-n", "2", "--ask", "0@0+1", "--ask", "1@0.5+1")
        assert (told["entries"], told["duration"]) == (2, 5.0)

    def test_nobody_may_wait_longer_than_the_patience_given(self) -> None:
        told = facts("sim", "coordinator", "--workload", "saturated", "--patience", "5", code=1)
        assert told["violation"]["property"] == "Patience"

    def test_a_run_cut_off_is_inconclusive(self) -> None:
        told = facts("sim", "token-ring", "--until", "3", code=3)
        assert told["verdict"] == "inconclusive"

    @pytest.mark.parametrize(
        "bound", [("--until", "30"), ("--max-events", "2000"), ("--max-memory", "60")], ids=lambda bound: bound[0]
    )
    def test_a_run_that_would_never_end_names_the_bound_that_ended_it(self, bound: tuple[str, str]) -> None:
        done = trinco("sim", "quorum-lease", "--fault", "crash:3@5", "--fault", "crash:4@5", *bound)
        assert done.returncode == 3
        assert f"INCONCLUSIVE: a bound, {' '.join(bound)}, cut the run off" in done.stdout

    def test_a_bound_on_memory_may_be_larger_than_any_machine(self) -> None:
        assert facts("sim", "coordinator", "--max-memory", "99999999999999999999")["bound"] is None

    def test_the_trace_of_a_run_that_took_too_much_memory_says_that_it_was_cut_off(self, tmp_path: Path) -> None:
        file = tmp_path / "run.ndjson"
        endless = ("sim", "quorum-lease", "--fault", "crash:3@5", "--fault", "crash:4@5", "--max-memory", "60")
        told = facts(*endless, "--trace", str(file), code=3)
        assert (told["verdict"], told["bound"]) == ("inconclusive", "--max-memory 60")
        assert 0 < told["duration"] < 1e9
        assert told["seconds"] > 0
        assert json.loads(file.read_text().partition("\n")[0])["finished"] is False

    def test_a_run_that_ends_by_itself_names_no_bound(self) -> None:
        assert facts("sim", "coordinator")["bound"] is None

    def test_seeds_without_a_violation_leave_no_trace_and_say_so(self, tmp_path: Path) -> None:
        file = tmp_path / "run.ndjson"
        done = trinco("sim", "coordinator", "--seeds", "2", "--jobs", "1", "--trace", str(file))
        assert done.returncode == 0
        assert f"{file} was not written: no seed violates anything" in done.stderr
        assert not file.exists()

    @pytest.mark.parametrize("faults", [("crash:4@44",), ("crash:4@10", "crash:3@60"), ("crash:0@5", "crash:4@5")])
    def test_somebody_who_lives_notices_each_crash_of_an_election(self, faults: tuple[str, ...]) -> None:
        told = facts("sim", "bully", "-n", "5", *(word for fault in faults for word in ("--fault", fault)))
        assert told["violation"] is None
        assert told["messages"] > 0


class TestChecking:
    @pytest.mark.parametrize(("rounds", "states"), [("2", 25_674), ("3", 122_015)])
    def test_ricart_agrawala_has_exactly_so_many_states(self, rounds: str, states: int) -> None:
        told = facts("check", "ricart-agrawala", "-n", "3", "--rounds", rounds)
        assert told["states"] == states
        assert told["violation"] is None
        assert told["deadlock_free"]
        assert told["starvation_free"]

    @pytest.mark.parametrize("protocol", ["token-ring", "coordinator"])
    @pytest.mark.parametrize("rounds", ["2", "forever"])
    def test_four_nodes_are_safe_deadlock_free_and_starvation_free(self, protocol: str, rounds: str) -> None:
        told = facts("check", protocol, "-n", "4", "--rounds", rounds)
        assert (told["violation"], told["deadlock_free"], told["starvation_free"]) == (None, True, True)

    def test_says_so_for_people(self) -> None:
        assert "no violation: safe, deadlock-free, starvation-free" in trinco("check", "token-ring", "-n", "4").stdout

    def test_says_how_often_timers_fired_where_there_are_any(self) -> None:
        assert ", fires 3\n" in trinco("check", "voting").stdout
        assert ", fires 1\n" in trinco("check", "voting", "--fires", "1").stdout
        assert "fires" not in trinco("check", "token-ring").stdout

    def test_gives_no_verdict_on_who_waits_for_a_timer_that_has_fired_as_often_as_it_may(self) -> None:
        shown = trinco("check", "voting").stdout
        assert "safe, no deadlock within these bounds; starvation cannot be told: " in shown
        told = facts("check", "voting")
        assert (told["verdict"], told["deadlock_free"], told["starvation_free"]) == ("no violation", None, None)

    def test_without_n_there_are_as_many_nodes_as_the_protocol_needs(self) -> None:
        assert facts("check", "bakery", "--max-states", "100", code=3)["n"] == 6
        assert facts("check", "token-ring")["n"] == 3

    def test_the_election_of_the_examples_has_a_verdict_in_seconds(self) -> None:
        example = ("check", "bully", "-n", "3", "--crashes", "1", "--restarts", "1")
        assert " ".join(example) in trinco("check", "--help").stdout
        assert facts(*example)["verdict"] == "no violation"

    @pytest.mark.parametrize("flag", ["--trace", "--write-test"])
    def test_without_a_counterexample_none_is_written_and_that_is_said(self, flag: str, tmp_path: Path) -> None:
        file = tmp_path / "kept"
        done = trinco("check", "token-ring", flag, str(file))
        assert done.returncode == 0
        assert done.stderr == f"trinco: {file} was not written: there is no counterexample\n"
        assert not file.exists()

    def test_a_bound_ends_without_a_verdict(self) -> None:
        told = facts("check", "ricart-agrawala", "--max-states", "100", code=3)
        assert told["verdict"] == "inconclusive"
        assert told["deadlock_free"] is None

    @pytest.mark.parametrize(
        "call", [("ricart-agrawala", "-n", "2000"), ("bully", "-n", "257"), ("quorum-lease", "--clients", "100000")]
    )
    def test_more_nodes_than_a_step_fits_into_memory_for_are_refused(self, call: tuple[str, ...]) -> None:
        assert "the checker takes at most 256" in complaint("check", *call, "--max-states", "10")

    def test_as_many_nodes_as_it_takes_end_at_a_bound(self) -> None:
        assert facts("check", "ricart-agrawala", "-n", "256", "--max-states", "10", code=3)["states"] > 10

    def test_a_crash_beyond_the_claims_deadlocks(self) -> None:
        told = facts("check", "ricart-agrawala", "-n", "2", "--crashes", "1", "--beyond-claims", code=1)
        assert told["violation"]["kind"] == "deadlock"
        assert told["deadlock_free"] is False

    def test_symmetry_leaves_fewer_states(self) -> None:
        plain, merged = (facts("check", "coordinator", "-n", "4", *more)["states"] for more in ((), ("--symmetry",)))
        assert merged < plain

    def test_overtaking_is_bounded_as_claimed(self) -> None:
        assert facts("check", "ricart-agrawala", "-n", "2", "--bypass")["violation"] is None


class TestExhibits:
    def test_are_listed(self) -> None:
        names = {exhibit["name"] for exhibit in facts("exhibit")}
        expected = {"slides/S-1", "slides/S-5", "ricart-agrawala/no-tie-break", "token-ring/two-tokens"}
        assert expected <= names
        assert "slides/S-5" in trinco("exhibit").stdout

    def test_each_exits_1_with_its_counterexample(self) -> None:
        for exhibit in facts("exhibit"):
            told = facts("exhibit", exhibit["name"], code=1)
            assert told["violation"]["kind"] == exhibit["breaks"]
            assert len(told["counterexample"]) > 0
            if told["repeats_from_step"] is None:
                assert len(told["counterexample"]) == told["depth"]

    def test_draw_a_timeline_for_people(self) -> None:
        done = trinco("exhibit", "ricart-agrawala/no-tie-break", env={**os.environ, "PYTHONIOENCODING": "utf-8"})
        assert done.returncode == 1
        assert "●◀────ok──────┤" in done.stdout

    def test_draw_with_plain_letters_where_the_terminal_has_no_others(self) -> None:
        done = trinco("exhibit", "ricart-agrawala/no-tie-break", env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert done.returncode == 1
        assert "*<----ok------+" in done.stdout

    def test_can_be_kept_as_a_test_that_replays(self, tmp_path: Path) -> None:
        file = tmp_path / "test_kept.py"
        assert trinco("exhibit", "slides/S-1", "--write-test", str(file)).returncode == 1
        assert passes(file)

    def test_a_check_can_be_kept_as_a_test_too(self, tmp_path: Path) -> None:
        file = tmp_path / "test_kept.py"
        crash = ("check", "ricart-agrawala", "-n", "2", "--crashes", "1", "--beyond-claims", "--network", "unordered")
        assert trinco(*crash, "--write-test", str(file)).returncode == 1
        assert passes(file)


class TestVerifying:
    def test_finds_nothing_wrong_with_a_good_run(self, tmp_path: Path) -> None:
        file = str(tmp_path / "run.ndjson")
        trinco("sim", "ricart-agrawala", "--trace", file)
        assert facts("verify", file)["violation"] is None

    def test_finds_what_a_broken_one_does(self, tmp_path: Path) -> None:
        file = str(tmp_path / "run.ndjson")
        trinco("exhibit", "ricart-agrawala/no-tie-break", "--trace", file)
        assert "inside together" in facts("verify", file, code=1)["violation"]
        assert "ENTERS" in trinco("verify", file, "--timeline").stdout

    @pytest.mark.parametrize(
        ("exhibit", "told"),
        [
            ("slides/S-5", "the checker found: deadlock: p0 and p1 wait and nothing can move"),
            ("slides/S-4", "the checker found: "),
            ("bakery/F9", "p0 entered with token"),
            ("quorum-lease/untagged-commit", "p1 entered with token 2 after 2"),
        ],
    )
    def test_a_counterexample_of_the_checker_is_never_passed(self, tmp_path: Path, exhibit: str, told: str) -> None:
        file = str(tmp_path / "run.ndjson")
        trinco("exhibit", exhibit, "--trace", file)
        assert told in facts("verify", file, code=1)["violation"]

    def test_says_who_still_waits_where_the_run_was_cut_off(self, tmp_path: Path) -> None:
        file = str(tmp_path / "run.ndjson")
        trinco("sim", "coordinator", "--workload", "saturated", "--until", "4", "--trace", file)
        done = trinco("verify", file)
        assert done.returncode == 0
        assert re.search(r"nothing wrong so far.*; p\d.* still wait", done.stdout)

    @pytest.mark.parametrize(
        ("setting", "monitor"),
        [(("robust-k", "-k", "1"), "TokenRises"), (("chandy-misra", "--set", "graph=ring"), "NoNeighboursInside")],
    )
    def test_watches_what_the_settings_of_the_run_promise(self, setting, monitor, tmp_path: Path) -> None:
        file = str(tmp_path / "run.ndjson")
        trinco("sim", *setting, "-n", "5", "--entries", "10", "--trace", file)
        assert monitor in facts("verify", file)["monitors"]
        text = Path(file).read_text().replace("k=1", "k=x").replace("graph=ring", "graph=tree")
        Path(file).write_text(text)
        assert file in complaint("verify", file, code=65)

    @pytest.mark.parametrize(
        ("damage", "told"),
        [
            (lambda data: data[:-40], "cut off"),
            (lambda data: b"".join(data.splitlines(keepends=True)[:-3]), "cut off"),
            (lambda data: data.replace(b'"kind":"grant"', b'"kind":"gremlin"', 1), "line "),
            (lambda data: b"\x80\x81" + data, "line 1"),
            (lambda data: b"", "line 1"),
            (
                lambda data: b"".join(data.splitlines(keepends=True)[:9] + data.splitlines(keepends=True)[10:]),
                "has not",
            ),
        ],
    )
    def test_a_damaged_trace_is_refused_with_the_line(self, tmp_path: Path, damage: Any, told: str) -> None:
        file = tmp_path / "run.ndjson"
        trinco("sim", "coordinator", "--trace", str(file))
        file.write_bytes(damage(file.read_bytes()))
        assert told in complaint("verify", str(file), code=65)

    def test_a_file_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        assert "cannot be read" in complaint("verify", str(tmp_path / "nothing"), code=65)


class TestWrongCalls:
    @pytest.mark.parametrize(
        ("call", "told"),
        [
            ((), "COMMAND"),
            (("simulate",), "there is no 'simulate' (there are run, "),
            (("rnu",), "there is no 'rnu', did you mean 'run'?"),
            (("nope",), "there is no 'nope' (there are run, "),
            (("-u", "memory:", "status", "x"), "options come after the command: trinco status -u ..."),
            (("--json", "list"), "options come after the command: trinco list --json ..."),
            (("-q",), "options come after the command: trinco COMMAND -q ..."),
            (("help",), "'trinco --help' lists the commands, and 'trinco COMMAND --help'"),
            (("help", "status"), "'trinco status --help'"),
            (("help", "nope"), "'trinco --help' lists the commands"),
            (("keys", "shwo"), "did you mean 'show'?"),
            (("status", "--jsn", "x"), "there is no option '--jsn', did you mean '--json'?"),
            (("sim", "nope"), "there is no protocol 'nope' ("),
            (("exhibit", "nope"), "there is no exhibit 'nope' ("),
            (("reproduce", "nope"), "there is no experiment 'nope' ("),
            (("sim",), "protocol"),
            (("sim", "coordinator", "--loss=--"), "--loss: invalid float value: '--'"),
            (("sim", "coordinator", "--workload=--"), "there is no '--' (there are closed, "),
            (("wait", "-w--", "x"), "'--' is no duration"),
            (("check", "ricart-agrawal"), "did you mean 'ricart-agrawala'?"),
            (("exhibit", "slides/S-99"), "did you mean 'slides/S-"),
            (("protocols", "tokenring"), "did you mean 'token-ring'?"),
            (("sim", "ordered-voting", "--set", "numbers=0"), "at least 2"),
            (("check", "voting", "--set", "doublings=-1"), "doublings"),
            (("sim", "voting", "--set", "slot=nan"), "slot"),
            (("sim", "coordinator", "-n", "0"), "at least 1"),
            (("sim", "coordinator", "-n", "1000000000", "--max-memory", "500"), "at most 1,000,000"),
            (("sim", "quorum-lease", "--clients", "1000000000"), "at most 1,000,000"),
            (("check", "coordinator", "-n", "1000000000"), "at most 1,000,000"),
            (("compare", "lamport", "-n", "1000000000"), "at most 1,000,000"),
            (("compare", "lamport", "--jobs", "9999999999"), "at most 1,000"),
            (("sim", "coordinator", "--seeds", "99999999999999999999"), "at most 1,000,000,000,000"),
            (("sim", "coordinator", "--pauses", "99999999999999999999"), "at most 1,000,000"),
            (("sim", "coordinator", "--partitions", "99999999999999999999"), "at most 1,000,000"),
            (("sim", "quorum-lease", "-f", "99999999999999999999"), "at most 1,000,000"),
            (("sim", "quorum-lease", "-f", "x"), "f is a whole number, not 'x'"),
            (("sim", "token-ring", "-n", "1"), "at least 2"),
            (("sim", "coordinator", "-n", "many"), "whole number"),
            (("sim", "coordinator", "-k", "2"), "k=2"),
            (("check", "coordinator", "-k", "0"), "at least 1"),
            (("sim", "coordinator", "--hold", "-1"), "--hold"),
            (("sim", "coordinator", "--delay", "uniform:3,1"), "lies above"),
            (("sim", "coordinator", "--delay", "weird:3"), "there is no law 'weird'"),
            (("sim", "coordinator", "--think", "exponential:-2"), "not a time"),
            (("sim", "coordinator", "--until", "-5"), "--until"),
            (("sim", "coordinator", "--entries", "0"), "at least 1"),
            (("sim", "coordinator", "--rate", "0", "--workload", "open"), "above 0"),
            (("sim", "coordinator", "--loss", "1.5", "--beyond-claims"), "chance"),
            (("sim", "coordinator", "--loss", "0.1"), "--beyond-claims"),
            (("sim", "coordinator", "--fault", "explode:1@2"), "is not a fault"),
            (("sim", "coordinator", "--fault", "crash:9@2", "--beyond-claims"), "there is no node 9"),
            (("sim", "coordinator", "--fault", "pause:1@-2+1"), "negative"),
            (("sim", "coordinator", "--ask", "1@2"), "is not a request"),
            (("sim", "coordinator", "--ask", "0@2+1"), "only (1, 2, 3, 4) can"),
            (("sim", "coordinator", "--byzantine", "0:grants"), "lists no strategy"),
            (("sim", "bakery", "--byzantine", "0:server/mute"), "p0 cannot lie as 'server/mute': it is a Client"),
            (("sim", "bakery", "--byzantine", "4:server/mutt"), "did you mean 'server/mute'"),
            (
                ("sim", "bakery", "--byzantine", "4:server/mute", "--byzantine", "3:server/any"),
                "does not claim to survive 2 Byzantine servers (claimed: 1)",
            ),
            (("sim", "coordinator", "--trace", "/nowhere/at/all"), "cannot write"),
            (("check", "ricart-agrawala", "--rounds", "forever"), "rounds"),
            (("check", "ricart-agrawala", "--rounds", "0"), "at least 1"),
            (("check", "ricart-agrawala", "--crashes", "1"), "does not claim"),
            (("check", "ricart-agrawala", "--network", "unordered"), "claims a network"),
            (("check", "ricart-agrawala", "--symmetry"), "compares the ids"),
            (("check", "coordinator", "--bypass"), "no claim about overtaking"),
            (("check", "coordinator", "--max-states", "0"), "at least 1"),
            (("check", "token-ring", "-n", "1"), "at least 2"),
            (("check", "ricart-agrawala", "--crashes", "1"), "--beyond-claims"),
            (("check", "ricart-agrawala", "--network", "unordered"), "--beyond-claims"),
            (("check", "ricart-agrawala", "--no-time"), "--no-time is for quorum-lease"),
            (("check", "ricart-agrawala", "--restarts", "1"), "give --crashes too"),
            (("check", "bully", "--rounds", "2"), "'--rounds' is for other protocols"),
            (("check", "bully", "--bypass"), "'--bypass' is for other protocols"),
            (("check", "quorum-lease", "--crashes", "1", "--restarts", "1"), "'--restarts' is not for quorum-lease"),
            (("check", "quorum-lease", "--drift", "1", "--drifting", "5"), "only 2 clients"),
            (("check", "quorum-lease", "--drifting", "1"), "give --drift too"),
            (("check", "quorum-lease", "--set", "policy=backoff"), "use --policy"),
            (("sim", "quorum-lease", "--set", "f=0"), "use -f"),
            (("sim", "quorum-lease", "--set", "wait=2"), "options of its own"),
            (("exhibit", "--trace", "run.ndjson"), "name the exhibit"),
            (("exhibit", "--write-test", "test_it.py"), "name the exhibit"),
            (("sim", "coordinator", "--timeline", "--seeds", "3"), "--timeline draws a single run"),
            (("sim", "coordinator", "--timeline", "--no-trace"), "contradicts --no-trace"),
            (("sim", "coordinator", "--max-memory", "100", "--seeds", "3"), "--max-memory is for a single run"),
            (("sim", "coordinator", "--ask", "1@1+1", "--workload", "open"), "'--workload' would change nothing"),
            (("sim", "coordinator", "--ask", "1@1+1", "--entries", "3"), "'--entries' would change nothing"),
            (("sim", "coordinator", "--workload", "one-shot", "--entries", "3"), "makes no use of '--entries'"),
            (("sim", "ricart-agrawala", "--notice", "1@1"), "is no election"),
            (("sim", "bully", "--ask", "1@1+1"), "'--ask' is for other protocols"),
            (("sim", "bully", "--workload", "open"), "'--workload' is for other protocols"),
            (("sim", "bully", "--entries", "3"), "'--entries' is for other protocols"),
            (("sim", "bully", "--crashes", "1"), "say with --notice"),
            (("sim", "coordinator", "--fault", "crash:9@1"), "trinco: crash:9@1: there is no node 9"),
            (("sim", "coordinator", "--fault", "restart:1@1"), "restart:1@1: node 1 has not crashed by then"),
            (("sim", "coordinator", "--fault", "restart:1@1", "--fault", "crash:1@2"), "has not crashed by then"),
            (("sim", "coordinator", "--fault", "partition:0,1|1,2@1+1"), "node 1 is named twice"),
        ],
    )
    def test_get_one_clear_line_and_exit_64(self, call: tuple[str, ...], told: str) -> None:
        assert told in complaint(*call)

    @pytest.mark.parametrize(
        "command", ["", "protocols", "sim", "check", "exhibit", "compare", "planes", "reproduce", "verify"]
    )
    def test_help_has_examples(self, command: str) -> None:
        done = trinco(*filter(None, [command]), "--help")
        assert done.returncode == 0
        assert "examples:" in done.stdout

    def test_nobody_reading_is_no_error(self) -> None:
        call = " ".join([*TRINCO, "sim", "ricart-agrawala", "-n", "5", "--timeline"])
        done = subprocess.run(f"{call} | head -1", shell=True, capture_output=True, text=True, timeout=60, check=True)
        assert not done.stderr


class TestTheMakefile:
    def make(self, *arguments: str) -> str:
        root = Path(__file__).parents[2]
        call = ["make", "--no-print-directory", *arguments]
        return subprocess.run(call, cwd=root, capture_output=True, text=True, timeout=60, check=True).stdout

    def test_help_has_a_line_for_each_target(self) -> None:
        told = dict(line.split(maxsplit=1) for line in self.make("help").splitlines())
        assert set(told) == {"setup", "demo", "test", "prove", "lint", "bench", "docs", "clean", "help"}
        assert all(told.values())

    def test_without_a_target_it_says_what_it_did(self) -> None:
        assert "Trinco is set up" in self.make("--dry-run")
        assert "Trinco is set up" not in self.make("--dry-run", "lint")


class TestOutOfMemory:
    @pytest.mark.parametrize(
        "call",
        [
            ("check", "ricart-agrawala", "-n", "4", "--rounds", "3"),
            ("sim", "ricart-agrawala", "-n", "50", "--entries", "100000"),
        ],
    )
    def test_is_a_bound_and_no_bug(self, call: tuple[str, ...]) -> None:
        words = " ".join([*TRINCO, *call])
        done = subprocess.run(
            f"ulimit -v 300000; exec {words}", shell=True, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, "Traceback" in done.stderr) == (3, False)
        assert "out of memory" in done.stderr.splitlines()[-1]

    def test_nodes_that_remember_too_much_are_not_set_up(self) -> None:
        """Each of them has a number for each of them: they would take a gigabyte."""
        told = complaint("sim", "raymond-k", "-n", "8000", "--no-trace", "--max-memory", "200", code=3)
        assert "out of memory, so there is no verdict" in told


class TestKilled:
    def test_a_swarm_whose_process_is_killed_leaves_no_worker_and_no_words_behind(self, tmp_path: Path) -> None:
        call = [*TRINCO, "sim", "ricart-agrawala", "--seeds", "1000000", "--jobs", "2"]
        with (tmp_path / "said").open("w") as said:
            process = subprocess.Popen(call, stdout=said, stderr=said)
        assert wait_for(lambda: list(descendants(process.pid).values()).count("spawn_main") >= 2)
        left_behind = set(descendants(process.pid))
        process.kill()
        process.wait(timeout=10)
        assert wait_for(lambda: not any(map(is_running, left_behind)))
        assert not (tmp_path / "said").read_text()

    def test_a_demo_whose_process_is_killed_leaves_no_worker_no_file_and_no_traceback(self, tmp_path: Path) -> None:
        place = tmp_path / "place"
        place.mkdir()
        with (tmp_path / "said").open("w") as said:
            environment = {**os.environ, "TMPDIR": str(place)}
            process = subprocess.Popen(
                [sys.executable, "-m", "demo.counter"], stdout=said, stderr=said, cwd=ROOT, env=environment
            )
        assert wait_for(lambda: any(ledger.stat().st_size for ledger in place.glob("*/ledger")))
        left_behind = set(descendants(process.pid))
        process.kill()
        process.wait(timeout=10)
        assert wait_for(lambda: not any(map(is_running, left_behind)))
        assert not list(place.iterdir())
        assert "Traceback" not in (tmp_path / "said").read_text()


def descendants(pid: int) -> dict[int, str]:
    """The living processes below one, with what they are: workers are "spawn_main"."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_text()
        except OSError:
            continue
        if parent == pid:
            what = "spawn_main" if "spawn_main" in command else command
            found |= {int(folder.name): what, **descendants(int(folder.name))}
    return found


def is_running(pid: int) -> bool:
    """A process that has ended and that nobody has asked about has no command any more."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_text())
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 30.0, every: float = 0.05) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        select.select([], [], [], every)
    return True


class TestWorkers:
    def test_one_that_is_killed_leaves_no_verdict_and_is_no_bug_of_ours(self) -> None:
        """As the system does it where memory runs out."""
        call = [*TRINCO, "sim", "ricart-agrawala", "--seeds", "1000000", "--jobs", "2"]
        process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert wait_for(lambda: list(descendants(process.pid).values()).count("spawn_main") == 2)
        workers = [pid for pid, name in descendants(process.pid).items() if name == "spawn_main"]
        os.kill(workers[0], signal.SIGKILL)
        shown, _ = process.communicate(timeout=30)
        assert process.returncode == 3
        assert "was killed, so there is no verdict" in shown
        assert shown.count("\n") == 1


class TestCtrlC:
    def interrupt(self, *arguments: str, after: str) -> tuple[int, str]:
        """Run on a terminal, press Ctrl-C once ``after`` is to be seen, and give the exit code and what was shown, on
        one line: where a terminal ends a line depends on the numbers in it."""
        screen, terminal = pty.openpty()
        process = subprocess.Popen([*TRINCO, *arguments], stdout=terminal, stderr=terminal, start_new_session=True)
        os.close(terminal)
        shown, pressed, deadline = "", False, time.monotonic() + 60
        while time.monotonic() < deadline:
            if screen in select.select([screen], [], [], 0.1)[0]:
                try:
                    shown += os.read(screen, 65536).decode(errors="replace")
                except OSError:
                    break
            if after in shown and not pressed:
                pressed = True
                os.killpg(process.pid, signal.SIGINT)
        os.close(screen)
        return process.wait(timeout=30), " ".join(shown.split())

    def test_ends_a_check_and_says_what_was_explored(self) -> None:
        code, shown = self.interrupt("check", "ricart-agrawala", "-n", "4", "--rounds", "3", after="states/s")
        assert code == 130
        assert "interrupted" in shown
        assert "no violation so far" in shown

    def test_ends_a_simulation_and_says_how_far_it_came(self) -> None:
        code, shown = self.interrupt("sim", "ricart-agrawala", "--entries", "10000000", "--no-trace", after=" entries")
        assert code == 130
        assert "interrupted" in shown
        assert "units of time, no violation so far" in shown

    @pytest.mark.parametrize("workers", [1, 2])
    def test_while_workers_are_still_starting_is_theirs_to_ignore(self, workers: int) -> None:
        """As soon as so many have been seen, they are in the middle of loading."""
        call = [*TRINCO, "sim", "ricart-agrawala", "--seeds", "1000000", "--jobs", "2"]
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(call, start_new_session=True, text=True, **output)  # type: ignore[call-overload]
        assert wait_for(lambda: list(descendants(process.pid).values()).count("spawn_main") >= workers, every=0.001)
        os.killpg(process.pid, signal.SIGINT)
        shown, _ = process.communicate(timeout=30)
        assert process.returncode == 130
        assert shown.count("\n") == 1
        assert "interrupted after" in shown

    def test_again_while_all_is_being_left_is_no_traceback(self) -> None:
        """Where much memory is given back, a second one comes before the interrupts are left to the system again."""
        again = """if True:
            import signal, sys
            from trinco.__main__ import main
            leavings = []
            def interrupt(frame, event, argument):
                if event == "call" and frame.f_code.co_name == "_leave_interrupts_to_the_system":
                    leavings.append(event)
                    if len(leavings) == 2:
                        signal.raise_signal(signal.SIGINT)
            sys.setprofile(interrupt)
            sys.exit(main())
        """
        call = [sys.executable, "-c", again, "protocols", "--json"]
        done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (130, "")

    def test_ends_a_swarm_and_says_how_many_seeds_were_run(self) -> None:
        code, shown = self.interrupt("sim", "ricart-agrawala", "--seeds", "1000000", "--jobs", "2", after=" seeds")
        assert code == 130
        assert "interrupted after" in shown
        assert "Traceback" not in shown
