"""A lock from the command line under every Python of this machine that we support; deprecations are errors."""

import subprocess
from pathlib import Path

import pytest

from tests import pythons

FOUND = pythons.found()


@pytest.mark.parametrize("version", sorted(FOUND))
def test_a_command_runs_under_a_lock(version: str, tmp_path: Path) -> None:
    call = [FOUND[version], "-W", "error", "-m", "trinco", "run", "-u", f"sqlite:///{tmp_path}/locks.db", "nightly"]
    environment = pythons.environment(version, XDG_STATE_HOME=str(tmp_path))
    done = subprocess.run([*call, "--", "echo", "hello"], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")
