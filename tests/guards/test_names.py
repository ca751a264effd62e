"""The guards' front door, and the error that they share."""

import pickle
import subprocess
import sys

import pytest

from trinco import guards
from trinco.guards import StaleToken


def test_every_name_is_there_and_an_unknown_one_says_what_is() -> None:
    assert all(getattr(guards, name).__name__ == name for name in guards.__all__)
    with pytest.raises(AttributeError, match=r"it has .*SQLGuard"):
        guards.Nothing  # noqa: B018


def test_a_guard_loads_only_what_it_needs() -> None:
    code = "import sys; from trinco.guards import FileGuard; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "trinco.guards.files" in loaded
    assert not {"trinco.guards.http", "trinco.guards.sql", "anyio", "sqlite3"} & set(loaded)


def test_a_refusal_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(StaleToken("nightly", 5, 6)))
    assert (error.resource, error.token, error.highest) == ("nightly", 5, 6)
    assert "has seen 6" in str(error)
    assert "a larger one" in str(StaleToken("nightly", 5, None))
