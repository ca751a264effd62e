"""The docs are true: what they show is what the commands print, and what they claim is in the evidence."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            if "import" in block:
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_state_counts_on_the_pages_are_in_the_evidence() -> None:
    proofs = json.loads((ROOT / "docs" / "evidence" / "foundation.json").read_text(encoding="utf-8"))["proofs"]
    proven = {f"{proof['states']:,}" for proof in proofs.values() if "states" in proof}
    for page in PAGES:
        holding = r"explored  ([\d,]+) states.*\nverdict   no violation"
        claimed = set(re.findall(holding, page.read_text(encoding="utf-8")))
        assert claimed <= proven, (page.name, claimed - proven)
