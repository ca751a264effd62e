"""The sessions on a page: every ``$ trinco ...`` in a console block, with what it prints below it.

Only what was measured by a clock may differ from one machine to the next.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

CONSOLE = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
SPEED = re.compile(r"in [\d.]+ s \([\d,]+ states/s\)")


def refreshed(page: str) -> str:
    """The page with every output as it is now; untouched where only speed differs. One folder for a whole page, so
    that a session can read what an earlier one wrote."""
    with tempfile.TemporaryDirectory() as folder:
        return CONSOLE.sub(lambda block: _block(block.group(0), Path(folder)), page)


def _block(block: str, folder: Path) -> str:
    sessions = re.split(r"^(?=\$ )", block, flags=re.MULTILINE)
    return "".join(_session(session, folder) if session.startswith("$ trinco ") else session for session in sessions)


def _session(session: str, folder: Path) -> str:
    command, _, shown = session.partition("\n")
    call = [sys.executable, "-m", "trinco", *shlex.split(command)[2:]]
    own = {name: value for name, value in os.environ.items() if not name.startswith("TRINCO_")}
    homes = {"XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder}  # nothing of the person's own is touched
    environment = {**own, **homes, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        call, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    printed = "".join(f"{line.rstrip()}\n" for line in (done.stdout + done.stderr).splitlines())
    alike = SPEED.sub("", printed) == SPEED.sub("", shown)
    return session if alike else f"{command}\n{printed}"
