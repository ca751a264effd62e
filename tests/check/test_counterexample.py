"""A counterexample is a shortest run, a trace like any other, and a test that replays it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.check.examples import lease, quoting
from tests.check.examples.notaries import Notary, TwoFaced
from tests.check.examples.notaries import system as notaries
from tests.check.examples.waiting import starving
from tests.check.scripts import Walk
from trinco.check.counterexample import Counterexample, build
from trinco.check.model import Clocks, Model
from trinco.check.paths import Way
from trinco.check.replay import as_pytest, replay
from trinco.check.run import check
from trinco.check.search import Violation
from trinco.check.view import View
from trinco.core.event import Kind
from trinco.core.trace import lines, read
from trinco.core.verify import verify
from trinco.lab.exhibits.catalogue import EXHIBITS, find
from trinco.protocols.detection.perfect import CRASHED


def drifting() -> Model:
    return Model(nodes=lease.system(ttl=4, margin=1), clocks=Clocks(drifting=frozenset({1, 2}), window=1))


def late() -> Model:
    return Model(nodes=lease.system(lease.CountsFromTheReturn), clocks=Clocks())


def two_faced() -> Model:
    return Model(nodes=notaries(Notary(), Notary(), TwoFaced()), byzantine=frozenset({2}))


UNSAFE: dict[str, Callable[[], Model]] = {
    **{exhibit.name: exhibit.model for exhibit in EXHIBITS if exhibit.breaks == "safety"},
    "lease": late,
    "drift": drifting,
    "liar": two_faced,
}
STUCK = {exhibit.name: exhibit.model for exhibit in EXHIBITS if exhibit.breaks == "deadlock"}

each_unsafe = pytest.mark.parametrize("make", UNSAFE.values(), ids=UNSAFE.keys())
each_wrong = pytest.mark.parametrize("make", (UNSAFE | STUCK).values(), ids=(UNSAFE | STUCK).keys())
SILENT = {"robust-k/F6", "robust-k/eventually-perfect", "slides/S-6"}
"""Where nobody hears anything before it goes wrong: they suspect each other and enter, or the token is lost."""
HEARD = {name: make for name, make in (UNSAFE | STUCK).items() if name not in SILENT}


def found_in(model: Model) -> Counterexample:
    found = check(model, protocol="example").counterexample
    assert found is not None
    return found


def plain(line: bytes) -> object:
    """What a line of a trace says, whatever the order of its fields."""
    return msgspec.json.decode(line)


@each_wrong
def test_a_script_replays_to_the_same_violation(make: Callable[[], Model]) -> None:
    found = found_in(make())
    assert replay(make(), found.script) == found.violation


@each_wrong
def test_no_beginning_of_the_run_is_a_violation_yet(make: Callable[[], Model]) -> None:
    found = found_in(make())
    assert all(replay(make(), found.script[:steps]) is None for steps in range(len(found.script)))


@each_wrong
def test_the_trace_is_the_same_when_it_was_written_and_read(make: Callable[[], Model], tmp_path: Path) -> None:
    recording = found_in(make()).recording
    path = tmp_path / "trace.ndjson"
    recording.write(path)
    header, events = read(path)
    assert header == recording.header
    counted = msgspec.structs.replace(header, events=len(events))
    assert [plain(line) for line in lines(counted, events)] == [plain(line) for line in recording.lines()]


@each_unsafe
def test_monitors_over_the_trace_find_the_violation_that_the_checker_found(
    make: Callable[[], Model], tmp_path: Path
) -> None:
    found = found_in(make())
    path = tmp_path / "trace.ndjson"
    found.recording.write(path)
    findings = verify(*read(path), claims=None)
    assert findings.violation == found.violation.text
    assert findings.at == len(found.script)


@pytest.mark.parametrize("make", HEARD.values(), ids=HEARD.keys())
def test_every_message_in_the_trace_was_sent_before_it_was_received(make: Callable[[], Model]) -> None:
    events = list(found_in(make()).recording.events())
    position = {(event.node, event.clock[event.node]): event for event in events}
    received = [event for event in events if event.kind is Kind.RECEIVE]
    assert received
    for event in received:
        assert event.cause is not None
        sent = position[event.cause]
        if sent.kind is Kind.CRASH:
            assert (sent.node, event.message) == (event.peer, CRASHED)
        else:
            assert (sent.kind, sent.node, sent.peer, sent.message) == (Kind.SEND, event.peer, event.node, event.message)


def test_nothing_is_told_of_a_node_after_its_crash() -> None:
    """p1 crashes while it has a lease: from then on no time passes for it, and nothing of it runs out."""
    script = (
        *("p1 acquire", "p0 receives ask(2) from p1", "p1 receives answer(True) from p0"),
        *("p1 crashes", "time passes", "time passes"),
    )
    path = Walk(Model(nodes=lease.system(), clocks=Clocks(), crashes=1), script)
    path.search.run()
    way = Way(path.search.starts[path.states[0]], path.steps)
    told = build(path.search, way, Violation("example", "a run that was chosen by hand"), "example")
    assert told.script == script
    events = list(told.recording.events())
    crash = next(number for number, event in enumerate(events) if event.kind is Kind.CRASH)
    assert [event.kind.value for event in events[crash + 1 :] if event.node == 1] == []


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_pytest_files_of_all_exhibits_run_and_pass(tmp_path: Path) -> None:
    imports = ["from trinco.lab.exhibits.catalogue import find"]
    for number, exhibit in enumerate(EXHIBITS):
        model, command = f"find({exhibit.name!r}).model()", f"trinco exhibit {exhibit.name}"
        text = as_pytest(found_in(exhibit.model()), model, imports, command)
        (tmp_path / f"test_found_{number}.py").write_text(text)
    finished = run_pytest(tmp_path)
    assert finished.returncode == 0, finished.stdout
    assert f"{len(EXHIBITS)} passed" in finished.stdout


def test_the_pytest_file_fails_for_a_model_in_which_the_run_ends_well(tmp_path: Path) -> None:
    found = found_in(find("ricart-agrawala/no-tie-break").model())
    mended = "model_of(find('ricart-agrawala'), n=2)"
    imports = ["from trinco.check.standard import model_of", "from trinco.protocols.catalogue import find"]
    (tmp_path / "test_found.py").write_text(as_pytest(found, mended, imports, "by hand"))
    assert run_pytest(tmp_path).returncode == 1


def run_here(text: str) -> None:
    """Run the tests of a generated file in this process."""
    names: dict[str, object] = {}
    exec(compile(text, "generated", "exec"), names)
    tests = [test for name, test in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test()  # type: ignore[operator]


def both_ask(view: View) -> bool:
    """both tenants wait"""
    return view.waiting() == (1, 2)


def forbidding() -> Model:
    return Model(nodes=lease.system(), clocks=Clocks(), never=[both_ask])


def test_the_pytest_file_of_what_must_never_be_passes() -> None:
    text = as_pytest(found_in(forbidding()), "forbidding()", [f"from {__name__} import forbidding"], "by hand")
    run_here(text)


def test_the_pytest_file_of_a_run_for_ever_passes() -> None:
    imports = ["from tests.check.examples.waiting import starving"]
    run_here(as_pytest(found_in(starving()), "starving()", imports, "by hand"))


def test_the_pytest_file_passes_whatever_a_message_says() -> None:
    imports = ["from tests.check.examples import quoting"]
    run_here(as_pytest(found_in(quoting.model()), "quoting.model()", imports, "by hand"))
