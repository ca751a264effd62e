"""The full counts for the projective forks: every n, the explored instances, as many nodes as a machine can take."""

from functools import partial

from tests.check.test_forks_states import CONCURRENT, PAIR, TRIANGLE, one_at_a_time
from tests.protocols.test_campos_carvalho import serve
from tests.prove_foundation import Figures, Proof
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.lab.forks_measures import Rush
from trinco.protocols.permission.campos_carvalho import Forks

EVERY_N = range(2, 61)
ENTRIES = 1_000
PAST_THE_MACHINE = 9_507
MOST_SECONDS, MOST_MEBIBYTES = 600, 8 * 1024


def explored(title: str, seats: dict) -> Figures:
    """Every rule a step of its own, entries without bound: safe, and free of deadlock and starvation."""
    nodes = one_at_a_time(Forks().seated(**seats))
    result = check(Model(nodes=nodes, inputs={"acquire": None}, reductions=False))
    assert result.verdict is Verdict.HOLDS, result.violation
    assert result.liveness
    return {
        "command": f"pytest tests/check/test_forks_states.py, {title}",
        "states": result.progress.states,
        "verdict": "safe, deadlock-free, starvation-free",
    }


def every_n(build: Forks) -> Figures:
    entries = 0
    for n in EVERY_N:
        result = serve(n, ENTRIES, build)
        assert result.violation is None, (n, result.violation)
        assert result.finished, n
        entries += result.metrics.entries
    settings = f"--set piggy_back={_word(build.piggy_back)} --set returns={_word(build.returns)}"
    return {
        "command": f"trinco sim campos-carvalho -n N --entries {ENTRIES} {settings}, wide delays",
        "every_n": f"{EVERY_N[0]} to {EVERY_N[-1]}",
        "entries": entries,
        "violations": 0,
    }


def rush(n: int) -> Figures:
    found = Rush(n).do()
    assert found.violation is None, found.violation
    assert found.entries == n
    assert found.seconds < MOST_SECONDS
    assert found.mebibytes < MOST_MEBIBYTES
    return {
        "command": "trinco reproduce forks",
        "rush": n,
        "messages_per_entry": round(found.per_entry, 2),
        "seconds": round(found.seconds, 1),
        "mebibytes": round(found.mebibytes),
    }


def _word(value: bool) -> str:
    return "yes" if value else "no"


def proofs() -> dict[str, Proof]:
    instances = {"a pair": PAIR, "three concurrent lines": CONCURRENT, "a triangle": TRIANGLE}
    found: dict[str, Proof] = {
        f"check campos-carvalho {title}": partial(explored, title, seats) for title, seats in instances.items()
    }
    for build in (Forks(), Forks(piggy_back=False), Forks(returns=True)):
        found[f"every n campos-carvalho {build}"] = partial(every_n, build)
    found["rush campos-carvalho"] = partial(rush, PAST_THE_MACHINE)
    return found
