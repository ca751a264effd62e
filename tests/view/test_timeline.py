"""Timelines: one column a process, one row a step, arrows for messages."""

from trinco.check.run import check
from trinco.lab.exhibits.catalogue import find
from trinco.protocols.catalogue import find as protocol
from trinco.sim.faults import Crash
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted
from trinco.view.timeline import ASCII, draw

TWO_TOKENS = """\
step       p0        p1
           ● start   │           sends token to p1
           │         ● start     sends token to p0
1          │         ● acquire
2          ├──token─▶●           ENTERS
3          ● acquire ║
4          ●◀─token──┤           ENTERS
"""

TWO_TOKENS_ASCII = """\
step       p0        p1
           * start   |           sends token to p1
           |         * start     sends token to p0
1          |         * acquire
2          +--token->*           ENTERS
3          * acquire #
4          *<-token--+           ENTERS
"""


def picture(name: str, **options: object) -> str:
    found = check(find(name).model()).counterexample
    assert found is not None
    lines = draw(found.recording.events(), found.recording.header.n, **options)  # type: ignore[arg-type]
    return "".join(f"{line}\n" for line in lines)


def test_a_counterexample_is_drawn_step_by_step() -> None:
    assert picture("token-ring/two-tokens") == TWO_TOKENS


def test_plain_letters_draw_the_same_picture() -> None:
    assert picture("token-ring/two-tokens", pen=ASCII) == TWO_TOKENS_ASCII


def test_what_a_step_changed_stands_beside_it_with_sets_as_lists() -> None:
    rows = picture("slides/S-1").splitlines()
    assert rows[2].endswith("holder=1 · sends grant to p1")


def test_a_simulated_run_shows_times_crashes_and_what_was_lost_with_them() -> None:
    entry = protocol("ricart-agrawala")
    scenario = Scenario(
        protocol=entry.name,
        build=entry.build,
        claims=entry.claims,
        n=3,
        workload=Scripted(((0, 0.5, 1.0),)),
        faults=(Crash(1, 1.0),),
        beyond_claims=True,
    )
    recording = run(scenario).recording
    assert recording is not None
    rows = list(draw(recording.events(), 3, steps=False))
    assert rows == [
        "time       p0            p1            p2",
        "0.5        ● acquire     │             │               "
        "clock=1 timestamp=1 awaited=2 · sends request(1) to p1 p2",
        "1          ┆             ● crashes     │",
        "1.5        ┆             ● is dead     │               request(1) from p0: the receiver has crashed",
        "1.5        ├─request(1)───────────────▶●               clock=1 · sends ok to p0",
        "2.5        ●◀────ok────────────────────┤               awaited=1",
    ]


def test_a_run_for_ever_says_where_it_begins_to_repeat() -> None:
    found = check(find("slides/S-5").model()).counterexample
    assert found is not None
    rows = list(draw(found.recording.events(), 2, repeats_from=3))
    assert rows[3].strip() == "from here the same steps again and again, for ever:"
