"""What somebody else wrote into a store or a file, on a terminal: it is shown, and never obeyed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trinco
from tests.cli.running import Run
from tests.locks.services import take
from trinco.cli.main import main
from trinco.core.errors import AcquireTimeout
from trinco.locks.service import LockService

NASTY = "a\x1b[31m\x1b]0;pwned\x07\nstate free\u202e\x9b1m"
SHOWN = r"a\x1b[31m\x1b]0;pwned\x07\nstate free\u202e\x9b1m"
ENDLESS = "x" * 1100
Capture = pytest.CaptureFixture[str]


def stranger(url: str, owner: str = NASTY) -> LockService:
    """Another program, which does not keep to our rules for names."""
    service = trinco.connect(url)
    service.desk.hub.client = owner
    return service


@pytest.fixture
def held(url: str) -> Iterator[LockService]:
    """The lock 'nightly' is held by somebody with an odd name."""
    with stranger(url) as service:
        take(service.lock("nightly", metadata=NASTY))
        yield service


def told(capsys: Capture, *arguments: str, code: int = 0) -> str:
    """All that a command says, of which nothing moves a cursor."""
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert (out + err).replace("\n", "").isprintable()
    return out + err


def test_status_shows_owner_and_metadata_as_text_in_a_line_each(url: str, held: LockService, capsys: Capture) -> None:
    lines = told(capsys, "status", "-u", url, "nightly").splitlines()
    assert [line.split()[0] for line in lines] == [
        "lock", "state", "holder", "since", "remaining", "token", "metadata", "waiting"
    ]  # fmt: skip
    assert lines[2].endswith(SHOWN)
    assert lines[6].endswith(SHOWN)


def test_json_has_the_words_themselves(url: str, held: LockService, capsys: Capture) -> None:
    facts = json.loads(told(capsys, "status", "-u", url, "nightly", "--json"))
    assert (facts["owner"], facts["metadata"]) == (NASTY, NASTY)


def test_list_shows_an_owner_as_text(url: str, held: LockService, capsys: Capture) -> None:
    assert r"a\x1b[31m" in told(capsys, "list", "-u", url)


def test_wait_names_an_owner_as_text(url: str, held: LockService, capsys: Capture) -> None:
    assert SHOWN in told(capsys, "wait", "-u", url, "-w", "0", "nightly", code=75)


@pytest.mark.parametrize(("token", "code"), [((), 0), (("--token", "7"), 1)])
def test_break_names_an_owner_as_text(
    url: str, held: LockService, capsys: Capture, token: tuple[str, ...], code: int
) -> None:
    assert SHOWN in told(capsys, "break", "-u", url, "nightly", *token, code=code)


@pytest.mark.parametrize("patience", [("-n",), ("-w", "100ms"), ("-v", "-w", "100ms")])
def test_run_names_an_owner_as_text(
    url: str, held: LockService, trinco_run: Callable[..., Run], patience: tuple[str, ...]
) -> None:
    code, _, said = trinco_run(*patience, "nightly", "--", "true").end()
    assert code == 75
    assert SHOWN in said
    assert said.replace("\n", "").isprintable()


def test_an_error_names_an_owner_as_text(url: str, held: LockService) -> None:
    with trinco.connect(url) as service, pytest.raises(AcquireTimeout) as caught:
        service.lock("nightly").hold(timeout=0.05).__enter__()
    assert SHOWN in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("call", [("status",), ("wait", "-w", "0"), ("break",), ("break", "--token", "7")])
def test_a_name_without_an_end_is_cut(url: str, capsys: Capture, call: tuple[str, ...]) -> None:
    with stranger(url, ENDLESS) as service:
        take(service.lock("nightly"))
        main([*call, "-u", url, "nightly"])
    said = "".join(capsys.readouterr())
    assert f"{'x' * 200}..." in said
    assert "x" * 201 not in said


def test_metadata_without_an_end_is_cut(url: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trinco.locks.entries.MAX_METADATA_BYTES", len(ENDLESS))  # as that of another program may be
    with trinco.connect(url) as service:
        take(service.lock("nightly", metadata=ENDLESS))
        said = told(capsys, "status", "-u", url, "nightly")
    assert f"{'x' * 1024}...\n" in said


# Traces from elsewhere


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """A trace, with something in its header and in the first message that is sent."""

    def write(message: dict[str, Any], **header: str) -> str:
        path = tmp_path / "run.ndjson"
        assert main(["sim", "coordinator", "--entries", "3", "--trace", str(path)]) == 0
        first, *events = map(json.loads, path.read_text().splitlines())
        next(event for event in events if event["kind"] == "send")["message"] = message
        path.write_text("".join(json.dumps(line) + "\n" for line in ({**first, **header}, *events)))
        return str(path)

    return write


def test_a_trace_is_shown_and_drawn_as_text(written: Callable[..., str], capsys: Capture) -> None:
    file = written({"type": NASTY}, protocol=NASTY)
    capsys.readouterr()
    assert told(capsys, "verify", file, "--timeline").count(r"\x1b[31m") > 1


def test_the_format_that_a_trace_claims_is_told_as_text(written: Callable[..., str], capsys: Capture) -> None:
    file = written({"type": "request"}, format=NASTY)
    capsys.readouterr()
    assert "line 1 says format" in told(capsys, "verify", file, code=65)


def test_a_message_without_a_type_is_damage_and_told_before_any_verdict(
    written: Callable[..., str], capsys: Capture
) -> None:
    file = written({"text": "please"})
    capsys.readouterr()
    said = told(capsys, "verify", file, "--timeline", code=65)
    assert "its message does not say of what type it is" in said
    assert "line " in said
    assert said.count("\n") == 1
