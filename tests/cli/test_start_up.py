"""``trinco run`` starts fast: what it may load, and what it may cost."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

FORBIDDEN = {"typing", "dataclasses", "msgspec", "json", "subprocess", "logging", "asyncio", "contextlib", "shutil"}
FORBIDDEN |= {"importlib.metadata", "random", "threading", "pathlib", "socket", "hashlib", "inspect", "uuid", "secrets"}
FORBIDDEN |= {"tomllib", "locale", "traceback", "tempfile", "ctypes", "urllib.parse", "rich", "nacl", "anyio"}
FORBIDDEN |= {"datetime"}
AT_MOST = 4.0
"""Times the CPU time of ``python -c pass``, the command and the guardian included."""
FEWEST, MOST = 7, 30

LIST_MODULES = """
import os, sys
me, leave = os.getpid(), os._exit
def tell(code):
    if os.getpid() == me:
        print(*sys.modules, flush=True)
    leave(code)
os._exit = tell
from trinco.cli.main import main
main()
"""


def environment(folder: Path) -> dict[str, str]:
    """Compiled files are used and written, as they are where a program is installed."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return usual | {"TRINCO_URL": f"sqlite:///{folder}/locks.db"}


def loaded(folder: Path, *arguments: str) -> set[str]:
    call = [sys.executable, "-c", LIST_MODULES, *arguments]
    done = subprocess.run(call, env=environment(folder), capture_output=True, text=True, check=True, timeout=30)
    return set(done.stdout.split())


def test_the_path_of_run_loads_nothing_heavy(tmp_path: Path) -> None:
    usual = loaded_by_python(tmp_path)
    modules = loaded(tmp_path, "run", "x", "--", "true")
    assert {"trinco.locks.service", "trinco.stores.sqlite", "trinco.cli.guardian"} <= modules
    assert (modules - usual) & FORBIDDEN == set()


def test_the_path_of_run_loads_nothing_of_the_lab(tmp_path: Path) -> None:
    rooms = {name.split(".")[1] for name in loaded(tmp_path, "run", "x", "--", "true") if name.startswith("trinco.")}
    assert rooms <= {"cli", "core", "leases", "locks", "stores"}


def loaded_by_python(folder: Path) -> set[str]:
    call = [sys.executable, "-c", "import sys; print(*sys.modules)"]
    done = subprocess.run(call, env=environment(folder), capture_output=True, text=True, check=True, timeout=30)
    return set(done.stdout.split())


def cpu(call: list[str], folder: Path) -> float:
    """CPU seconds of a process and of all that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(call, env=environment(folder), check=True, timeout=30)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_run_costs_at_most_four_times_what_python_costs(tmp_path: Path) -> None:
    """Both are measured side by side, so that a busy machine is slow for both; it may take a while to calm down."""
    script = shutil.which("trinco", path=str(Path(sys.executable).parent))
    assert script is not None, "make setup installs the command"
    run = [script, "run", "x", "--", "true"]
    cpu(run, tmp_path)
    ratios: list[float] = []
    while len(ratios) < FEWEST or (median(ratios) > AT_MOST and len(ratios) < MOST):
        ratios.append(cpu(run, tmp_path) / cpu([sys.executable, "-c", "pass"], tmp_path))
    assert median(ratios) <= AT_MOST
