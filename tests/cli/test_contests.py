"""A run in which nobody has a rival proves nothing: by default there is a contest, and without one that is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from trinco.cli.leases import NAME as LEASE
from trinco.cli.main import main
from trinco.core import trace
from trinco.core.event import Kind
from trinco.lab.comparison import SIZES, everybody
from trinco.lab.properties import establish
from trinco.protocols.catalogue import ENTRIES, Entry, competitors, find

every_protocol = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


def most_inside(entry: Entry, n: int) -> float:
    return entry.claims.k.high(**entry.letters(n))


def told(capsys: pytest.CaptureFixture[str], *call: str) -> Any:
    main([*call, "--json"])
    shown = capsys.readouterr()
    assert not shown.err
    return json.loads(shown.out)


@every_protocol
def test_a_check_without_n_has_more_who_compete_than_may_be_inside(
    entry: Entry, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = told(capsys, "check", entry.name, "--max-states", "1")
    competing = facts["clients"] if entry.name == LEASE else competitors(entry.nodes(facts["n"]))
    assert competing > most_inside(entry, max(facts["n"], entry.smallest))


@every_protocol
def test_a_simulation_without_n_has_more_who_ask_than_may_be_inside(
    entry: Entry, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "run.ndjson"
    facts = told(capsys, "sim", entry.name, "--trace", str(file))
    _, events = trace.read(file)
    asking = {event.node for event in events if event.kind is Kind.ACQUIRE}
    competing = competitors(entry.nodes(facts["n"])) if entry.claims.elects else len(asking)
    assert competing > most_inside(entry, facts["n"])


def test_all_that_is_compared_without_n_is_a_contest() -> None:
    for subject in everybody():
        for n in SIZES:
            assert competitors(subject.entry.nodes(n)) > most_inside(subject.entry, n)


def test_what_is_compared_by_random_runs_is_a_contest() -> None:
    """Of 5 nodes of this one, 4 are servers."""
    assert "n=6, " in establish(find("bakery-algorithm2"), most_states=1).established


def test_settings_that_need_more_nodes_get_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "sim", "bakery", "--set", "f=2")["n"] == 7 + 2
    assert told(capsys, "sim", "raymond-k", "-k", "7")["n"] == 8


@pytest.mark.parametrize("command", ["check", "sim", "compare"])
def test_who_asks_for_too_few_to_compete_is_told_so(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "coordinator", "-n", "2"]) == 0
    complaint = capsys.readouterr().err
    assert complaint.startswith("trinco: coordinator: only one of these 2 nodes competes")
    assert complaint.endswith("-n 3 gives it a rival\n")
    assert complaint.count("\n") == 1


def test_a_script_says_itself_who_competes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "coordinator", "-n", "2", "--ask", "1@0+1"]) == 0
    assert not capsys.readouterr().err


@pytest.mark.parametrize("call", [("check", "-n", "1", "-f", "0"), ("sim", "--entries", "3")], ids=lambda call: call[0])
def test_a_lease_with_one_client_is_told_so_too(call: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    command, *more = call
    assert main([command, LEASE, "--clients", "1", *more]) == 0
    assert "there is only one client" in capsys.readouterr().err
