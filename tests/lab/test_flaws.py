"""Every flaw that was found in the papers is an exhibit, or a remark with the test that shows it."""

import re
import runpy
from pathlib import Path

import pytest

from trinco.lab.exhibits.catalogue import EXHIBITS

TESTS = Path(__file__).resolve().parent.parent
REMARKS = runpy.run_path(str(TESTS.parent / "docs" / "remarks.py"))["REMARKS"]
SHOWN = {exhibit.name for exhibit in EXHIBITS}

FOUND = {
    *(f"slides/S-{number}" for number in range(1, 11)),
    *(f"forks/F{number}" for number in range(1, 13)),
    *(f"robust-k/F{number}" for number in range(1, 18)),
    *(f"robust-k/P{number}" for number in range(2, 8)),
    "robust-k/G1",
    *(f"bakery/F{number}" for number in range(1, 28)),
    *(f"lease/E{number}" for number in range(28)),
}
"""By the numbers of the specification. There robust-k's P1 is its F7, and G2 is ``robust-k/eventually-perfect``."""


def test_every_flaw_is_an_exhibit_or_a_remark_and_no_remark_is_about_anything_else() -> None:
    assert REMARKS.keys() == FOUND - SHOWN


@pytest.mark.parametrize("name", [name for name in REMARKS if REMARKS[name].test])
def test_what_shows_a_remark_is_there(name: str) -> None:
    file, _, function = REMARKS[name].test.partition("::")
    assert re.search(rf"def {function}\(", (TESTS / file).read_text(encoding="utf-8"))
