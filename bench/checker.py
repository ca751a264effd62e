"""The checker against Spin: Ricart-Agrawala, n=3, the same model (``ricart_agrawala.pml``), the same states.

    python bench/checker.py [--json]

Needs Debian's package ``spin`` and a C compiler for the comparison, and says so where they are missing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import measure
from trinco.check.memory import resident_bytes
from trinco.check.search import Search, Verdict
from trinco.check.standard import model_of
from trinco.protocols.catalogue import find

STATES = {2: 25_674, 3: 122_015, 4: 375_205}
"""By entries per process: what both must find."""
ROUNDS = 7
SEARCHES = 5
PROMELA = Path(__file__).with_name("ricart_agrawala.pml")


def ours(entries: int) -> tuple[int, float]:
    """The search, tables and all; taking it down again is not counted."""
    search = Search(model_of(find("ricart-agrawala"), n=3, rounds=entries))
    began = time.process_time()
    verdict = search.run()
    seconds = time.process_time() - began
    assert verdict is Verdict.HOLDS
    assert search.progress.states == STATES[entries]
    return search.progress.states, seconds


def compile_spin(folder: Path, entries: int) -> Path:
    """Safety only, no partial-order reduction: it must visit the states we visit."""
    subprocess.run(["spin", "-a", f"-DROUNDS={entries}", str(PROMELA)], cwd=folder, check=True, capture_output=True)
    flags = ["-O2", "-w", "-DSAFETY", "-DNOREDUCE"]
    subprocess.run(["cc", *flags, "-o", f"pan{entries}", "pan.c"], cwd=folder, check=True, capture_output=True)
    return folder / f"pan{entries}"


def spin(program: Path, entries: int) -> tuple[int, float]:
    """As Spin runs when it is told nothing but to search deep enough, several times in a row: one is soon over."""
    before = os.times()
    for _ in range(SEARCHES):
        done = subprocess.run([str(program), "-E", "-m100000"], cwd=program.parent, check=True, capture_output=True)
        assert f"{STATES[entries]} states, stored" in done.stdout.decode()
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return SEARCHES * STATES[entries], used


def bytes_per_state(entries: int) -> float:
    """Of a search in a process of its own, tables and all, over what the process holds before."""
    code = f"import sys; sys.path.insert(0, {str(PROMELA.parent)!r}); import checker; checker.print_bytes({entries})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


def print_bytes(entries: int) -> None:
    search = Search(model_of(find("ricart-agrawala"), n=3, rounds=entries))
    before = resident_bytes()
    search.run()
    print((resident_bytes() - before) / search.progress.states)


def main() -> None:
    measure.pin()
    figures: dict[str, Any] = {}
    subjects: dict[str, Any] = {f"ours {entries}": lambda entries=entries: ours(entries) for entries in STATES}
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("spin") and shutil.which("cc"):
            for entries in STATES:
                program = compile_spin(Path(folder), entries)
                subjects[f"spin {entries}"] = lambda program=program, entries=entries: spin(program, entries)
        else:
            figures["Spin"] = "not here: install Debian's package spin, and a C compiler"
        best = measure.rates(subjects, ROUNDS)
    for entries, states in STATES.items():
        figures[f"Trinco, {entries} entries ({states:,} states), states/s"] = best[f"ours {entries}"]
        if f"spin {entries}" in best:
            figures[f"Spin, {entries} entries, states/s"] = best[f"spin {entries}"]
            figures[f"Trinco / Spin, {entries} entries"] = best[f"ours {entries}"] / best[f"spin {entries}"]
    figures["bytes a state, 4 entries"] = bytes_per_state(4)
    targets = {f"Trinco / Spin, {entries} entries": (">=", 0.4) for entries in STATES}
    measure.report("checker", figures, targets | {"bytes a state, 4 entries": ("<=", 400.0)})


if __name__ == "__main__":
    main()
