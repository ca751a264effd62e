"""The timers of many, in the order in which they are due."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.locks.agenda import LEFTOVERS, NEVER, Agenda, Timers


class Somebody:
    """With timers; it notes when it was looked after, and lets those go off that are due."""

    def __init__(self, owner: str, agenda: Agenda) -> None:
        self.owner = owner
        self.timers = Timers(agenda, self)  # type: ignore[arg-type]
        self.fired: list[float] = []

    def fire(self, now: float) -> None:
        for name in [name for name, due in self.timers.items() if due <= now]:
            self.fired.append(self.timers.pop(name))


def some(*owners: str) -> "tuple[Agenda, dict[str, Somebody]]":
    active: dict[str, Somebody] = {}
    agenda = Agenda(active)  # type: ignore[arg-type]
    active.update((owner, Somebody(owner, agenda)) for owner in owners)
    return agenda, active


ACTS = st.tuples(
    st.sampled_from(["ana", "bruno", "carla"]),
    st.sampled_from(["set", "set", "cancel", "clear", "leave", "come", "fire"]),
    st.sampled_from(["poll", "access", "owed"]),
    st.integers(0, 9),
)


@given(acts=st.lists(ACTS, max_size=40))
def test_it_is_as_if_all_timers_were_looked_through(acts: "list[tuple[str, str, str, int]]") -> None:
    agenda, active = some("ana", "bruno", "carla")
    everybody = dict(active)
    for owner, act, timer, number in acts:
        who = everybody[owner]
        if act == "set":
            who.timers[timer] = float(number)
        elif act == "cancel":
            who.timers.pop(timer, None)
        elif act == "clear":
            who.timers.clear()
        elif act == "leave":
            active.pop(owner, None)
        elif act == "come":
            active[owner] = who
            agenda.note_all(who)  # type: ignore[arg-type]
        else:
            agenda.fire(float(number))
            assert all(due > number for each in active.values() for due in each.timers.values())
        due = [due for each in active.values() for due in each.timers.values()]
        assert agenda.next_due() == min(due, default=NEVER)


def test_who_is_interrupted_while_looking_after_others_forgets_nobody() -> None:
    agenda, active = some("ana", "bruno", "carla")
    for number, each in enumerate(active.values()):
        each.timers["poll"] = float(number)

    def interrupted(now: float) -> None:
        raise KeyboardInterrupt

    setattr(active["bruno"], "fire", interrupted)  # noqa: B010 (a method of this one only)
    with pytest.raises(KeyboardInterrupt):
        agenda.fire(5.0)
    assert agenda.next_due() == 1.0
    delattr(active["bruno"], "fire")
    agenda.fire(5.0)
    assert [each.fired for each in active.values()] == [[0.0], [1.0], [2.0]]


def test_timers_that_are_set_again_and_again_leave_nothing_behind() -> None:
    agenda, active = some("ana")
    for number in range(10_000):
        active["ana"].timers["poll"] = float(number)
    assert len(agenda._entries) < 2 * LEFTOVERS
    assert agenda.next_due() == 9_999.0
