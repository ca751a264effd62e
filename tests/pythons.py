"""The other Pythons of this machine, and what our code needs to run in them.

``python -m tests.pythons`` (part of ``make setup``) puts the one library that the simulator needs beside each of them,
under ``.pythons/``; tests then run the same scenario in all of them without touching the network.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13")
CODE = "import sys; print(*sys.version_info[:2], sep='.')"


def found() -> dict[str, str]:
    """A working interpreter for each version that is here: on the path, or kept by pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    pythons = {}
    for version in VERSIONS:
        places = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python")))]
        working = (place for place in places if place and _is(place, version))
        python = next(working, None)
        if python:
            pythons[version] = python
    return pythons


def _is(python: str, version: str) -> bool:
    try:
        told = subprocess.run([python, "-c", CODE], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return told.stdout.strip() == version


def library_of(version: str) -> Path:
    return ROOT / ".pythons" / version


def environment(version: str, **more: str) -> dict[str, str]:
    """So that this Python sees our sources and the library made for it, and nothing else of ours."""
    path = os.pathsep.join((str(ROOT / "src"), str(library_of(version))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONNOUSERSITE": "1", **more}


def pinned(name: str) -> str:
    """What constraints.txt says of a package."""
    constraints = (ROOT / "constraints.txt").read_text()
    match = re.search(rf"^{name}==\S+", constraints, re.MULTILINE)
    return match.group(0) if match else name


def main() -> None:
    for version in found():
        if not library_of(version).exists():
            wheel = ["--only-binary=:all:", "--python-version", version, "--target", str(library_of(version))]
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *wheel, pinned("msgspec")], check=True)


if __name__ == "__main__":
    main()
