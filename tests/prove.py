"""The full counts behind what the docs claim: ``make prove``. Takes minutes and writes ``docs/evidence/*.json``.

python -m tests.prove            all of them
python -m tests.prove classics   those of one room

Each proof is a name, the command that repeats it, and figures. A proof that fails stops everything with its reason.
"""

import json
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tests import prove_bakery, prove_classics, prove_forks, prove_foundation, prove_leases, prove_locks, prove_robust_k
from tests.prove_foundation import Proof

EVIDENCE = Path(__file__).resolve().parent.parent / "docs" / "evidence"


def main() -> None:
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    rooms = {
        "foundation": prove_foundation.proofs,
        "bakery": prove_bakery.proofs,
        "classics": prove_classics.proofs,
        "forks": prove_forks.proofs,
        "leases": prove_leases.proofs,
        "locks": prove_locks.proofs,
        "robust-k": prove_robust_k.proofs,
    }
    for room in sys.argv[1:] or rooms:
        prove(room, rooms[room]())


def prove(room: str, wanted: dict[str, Proof]) -> None:
    figures = {}
    for name, proof in wanted.items():
        began = time.perf_counter()
        sys.stderr.write(f"{name} ... ")
        sys.stderr.flush()
        figures[name] = proof()
        sys.stderr.write(f"{time.perf_counter() - began:.1f} s\n")
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    evidence = {"date": date, "command": "make prove", "python": platform.python_version(), "proofs": figures}
    (EVIDENCE / f"{room}.json").write_text(json.dumps(evidence, indent=2) + "\n", encoding="utf-8")
    print(f"{len(figures)} proofs hold; written to docs/evidence/{room}.json")


if __name__ == "__main__":
    main()
