"""Timelines: one column a process, one row a step, arrows for messages."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from trinco.check.run import check
from trinco.core.event import Event, Kind
from trinco.core.ids import Ids
from trinco.core.message import Message
from trinco.core.signed import Signed
from trinco.core.trace import Recording, read
from trinco.lab.exhibits.catalogue import find
from trinco.protocols.catalogue import find as protocol
from trinco.sim.faults import Crash
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted
from trinco.view.timeline import ASCII, LONGEST, draw

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


def bakery_run(**settings: str) -> Recording:
    """One server, or four of which one may lie; timers that nobody has to wait for."""
    entry = protocol("bakery").set(
        *(f"{name}={value}" for name, value in settings.items()), "choosing=20", "silence=40"
    )
    clients = 2
    n = clients + int(entry.letters(9)["s"])
    script = Scripted(((0, 1.0, 2.0), (1, 1.5, 1.0)))
    scenario = Scenario(protocol=entry.name, build=entry.build, claims=entry.claims, n=n, workload=script)
    recording = run(scenario).recording
    assert recording is not None
    return recording


def test_of_a_part_only_what_changed_in_it_is_told() -> None:
    rows = list(draw(bakery_run(f="0").events(), 3, steps=False))
    told = next(row for row in rows if "SET 1 #1" in row and "▶" in row)
    assert "tickets.highest=1 " in told
    assert "tickets.judge" not in told
    assert "class" not in "".join(rows)


class Slip(msgspec.Struct, frozen=True):
    client: int
    signed: Signed
    state: Kind = Kind.START
    notes: tuple[int, ...] = ()


def test_what_is_signed_says_by_whom_and_what_is_as_usual_is_left_out() -> None:
    slips = (Slip(0, Signed(4, 7)), Slip(1, Signed(5, 8), Kind.GRANT, (3,)))
    events = [Event(1.0, 0, Kind.TIMER, note="late", state={"slips": slips})]
    told = "slips=[Slip(client=0, signed=7 by p4),Slip(client=1, signed=8 by p5, state=grant, notes=[3])]"
    assert list(draw(events, 1))[1] == f"1          ● late    {told}"


def test_a_set_of_ids_in_a_part_is_shown_as_its_members() -> None:
    @dataclass(slots=True)
    class Ballot:
        voters: Ids
        round: int

    before, after = ((Ballot, voters, 1) for voters in (0b000, 0b101))
    events = [
        Event(0.0, 0, Kind.START, state={"ballot": before}),
        Event(1.0, 0, Kind.TIMER, note="late", state={"ballot": after}),
    ]
    assert list(draw(events, 1))[1:] == ["1          ● late    ballot.voters=[0,2]"]


def test_gathered_an_access_is_one_row_there_and_one_back() -> None:
    """The paper's figure 2."""
    recording = bakery_run(f="1", hold="100")
    rows = list(draw(recording.events(), 6, steps=False, gathered=True))
    for words in ("─GET #1─", "─SET 1 #1─", "─EXIT #1─"):
        there = [row for row in rows if words in row]
        assert [row.count("▶●") for row in there] == [4] * len(there)
    back = [row for row in rows if "●◀─0 is the highest, #1─" in row]
    assert [row.count("┤") for row in back] == [4, 4]
    assert sum("ENTERS" in row for row in rows) == 2
    assert 2 * len(rows) < len(list(draw(recording.events(), 6, steps=False)))


def test_gathered_those_who_do_the_same_are_named_together_and_others_apart() -> None:
    ask, events = Question(), [Event(0.0, node, Kind.START, state={"seen": 0}) for node in range(4)]
    for node, seen in ((1, 5), (2, 5), (3, 6)):
        events.append(Event(1.0, node, Kind.RECEIVE, 0, ask, state={"seen": seen}))
    events += [Event(2.0, 0, Kind.RECEIVE, node, Answer(), state={"answers": node}) for node in (1, 2, 3)]
    assert list(draw(events, 4, gathered=True))[1:] == [
        "1          ├─question─▶●──────────▶●──────────▶●             p1 p2: seen=5 · p3: seen=6",
        "2          ●◀─answer───┤───────────┤───────────┤             answers=1 · answers=2 · answers=3",
    ]


def test_gathered_nothing_overtakes_what_its_own_node_has_done() -> None:
    """p1 has heard from p2 before it hears from p0; p2's second word cannot join its first."""
    first, second = Question(), Answer()
    events = [
        Event(1.0, 1, Kind.RECEIVE, 2, first),
        Event(1.0, 1, Kind.RECEIVE, 0, second),
        Event(1.0, 1, Kind.RECEIVE, 3, first),
        Event(2.0, 0, Kind.RECEIVE, 3, first),
    ]
    drawn = [row.split() for row in draw(events, 4, gathered=True)]
    assert [row[0] for row in drawn[1:]] == ["1", "1", "1", "2"]


def test_a_message_from_a_file_is_cut_short_rather_than_make_columns_too_wide(tmp_path: Path) -> None:
    """In the file it has no words of its own, only all that is in it."""
    recording = bakery_run(f="1", hold="100")
    recording.write(tmp_path / "trace.ndjson")
    _, events = read(tmp_path / "trace.ndjson")
    heading, *rows = draw(events, 6, steps=False)
    assert heading.index("p1") - heading.index("p0") <= LONGEST + 4
    assert any("─get(sid=1, " in row and "...──" in row for row in rows)


class Question(Message, tag="question"):
    pass


class Answer(Message, tag="answer"):
    pass
