"""The docs are true: what they show is what the commands print, and what they claim is in the evidence."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trinco
from trinco.protocols.catalogue import ENTRIES, find

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALGORITHMS = sorted((ROOT / "docs" / "algorithms").glob("*.md"))
ADVICE: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "advice.py"))["ADVICE"]
NAMES = [entry.name for entry in ENTRIES]


def proofs(room: str) -> dict[str, Any]:
    path = ROOT / "docs" / "evidence" / f"{room}.json"
    return json.loads(path.read_text(encoding="utf-8"))["proofs"]  # type: ignore[no-any-return]


def text_of(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def python_blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            if "import" in block or page.name == "contract.md":  # there every one is to be tried out
                yield page.name, block


@pytest.mark.parametrize(("page", "code"), list(python_blocks()))
def test_python_on_a_page_runs(page: str, code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_generated_pages_and_shown_sessions_are_up_to_date() -> None:
    call = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


DRAWN = re.compile(r"```\n(time[^`]*)\n```\n\n(?:Drawn|With a row for each message,) by `trinco ([^`]*)`(.*)\.\n")


def without(fields: str, lines: list[str]) -> list[str]:
    """Only what is drawn, and not what is written beside it, where fields are left out."""
    width = lines[0].index("p1") - lines[0].index("p0")
    columns = lines[0].index("p0") + width * len(lines[0].split()[1:])
    return [line[:columns].rstrip() for line in lines] if fields else lines


@pytest.mark.parametrize("name", [name for name in NAMES if DRAWN.search(text_of(f"algorithms/{name}.md"))])
def test_the_command_below_a_picture_draws_it(name: str) -> None:
    """But for the fields that it shows beyond the picture, and that the page names."""
    found = DRAWN.search(text_of(f"algorithms/{name}.md"))
    assert found is not None
    picture, command, more = found.groups()
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    call = [sys.executable, "-m", "trinco", *shlex.split(command)]
    done = subprocess.run(call, capture_output=True, encoding="utf-8", timeout=60, check=True, env=environment)
    shown, drawn = done.stdout.partition("\n\n")[2].splitlines(), picture.splitlines()
    for field in re.findall(r"`(\w+)`", more):
        assert re.search(rf"\b{field}[.=]", done.stdout), field
        assert not re.search(rf"\b{field}[.=]", picture), field
    if "row for each message" in found.group(0):
        assert {line.split()[0] for line in drawn} == {line.split()[0] for line in shown}
    else:
        assert without(more, shown) == without(more, drawn)


@pytest.mark.parametrize("page", [*PAGES, *ALGORITHMS], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_every_public_name_is_on_the_page_about_python() -> None:
    page = text_of("python.md")
    assert not [name for name in {*trinco.__all__} - {"__version__"} if not re.search(rf"\b{name}[`(]", page)]


def test_the_state_counts_on_the_pages_are_in_the_evidence() -> None:
    searched = [proof for room in ("foundation", "classics") for proof in proofs(room).values() if "states" in proof]
    proven = {f"{proof['states']:,}" for proof in searched}
    for page in PAGES:
        holding = r"explored  ([\d,]+) states.*\nverdict   no violation"
        claimed = set(re.findall(holding, page.read_text(encoding="utf-8")))
        assert claimed <= proven, (page.name, claimed - proven)


def test_who_has_evidence_has_advice_and_who_has_advice_is_in_the_catalogue() -> None:
    titles = [
        title.split() for room in ("foundation", "classics", "forks", "robust-k", "bakery") for title in proofs(room)
    ]
    proven = {name for name in NAMES if any(name in words for words in titles)}
    assert len(proven) > 10
    assert proven <= ADVICE.keys() <= set(NAMES)


def test_which_algorithm_names_every_one_that_there_is_advice_about() -> None:
    named = set(re.findall(r"algorithms/([a-z0-9-]+)\.md", text_of("which-algorithm.md")))
    assert named == ADVICE.keys()


@pytest.mark.parametrize("name", sorted(ADVICE))
def test_a_page_has_advice_a_picture_claims_and_evidence(name: str) -> None:
    shown = text_of(f"algorithms/{name}.md")
    assert ADVICE[name] in shown
    assert "## What is claimed" in shown
    assert "No evidence yet" not in shown
    assert find(name).claims.timed or re.search(r"ENTERS|takes p\d for the leader", shown)


@pytest.mark.parametrize("name", [name for name in sorted(ADVICE) if find(name).claims.elects])
def test_an_election_claims_nothing_about_entries(name: str) -> None:
    claims = text_of(f"algorithms/{name}.md").partition("## What is claimed")[2].partition("\n## ")[0]
    assert "messages per election" in claims
    assert "entry" not in claims
    assert "fairness" not in claims


@pytest.mark.parametrize(
    ("portuguese", "english"),
    [
        ("exclusão mútua", "mutual exclusion"),
        ("secção crítica", "critical section"),
        ("coordenador", "coordinator"),
        ("testemunho", "token"),
        ("voto", "vote"),
        ("difusão totalmente ordenada", "totally ordered multicast"),
        ("carimbo temporal", "timestamp"),
        ("relógio lógico", "logical clock"),
        ("equitativo", "fair"),
        ("vivacidade", "liveness"),
        ("segurança", "safety"),
        ("eleição", "election"),
        ("mandão", "bully"),
        ("anel", "ring"),
        ("fila de espera", "queue"),
        ("recurso partilhado", "resource"),
    ],
)
def test_the_glossary_has_the_words_of_the_slides(portuguese: str, english: str) -> None:
    rows = [row.split("|")[1:3] for row in text_of("glossary.md").splitlines() if row.startswith("|")]
    assert any(english in ours and portuguese in theirs for ours, theirs in rows)
