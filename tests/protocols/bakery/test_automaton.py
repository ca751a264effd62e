"""Figure 3 and section 5.3 of the paper: what a server makes of what a client does."""

import pytest

from trinco.protocols.bakery.automaton import BYZ, E1, E2, TABLE, C, Move, R, after, edges


def test_at_rest_the_only_legitimate_message_is_a_get() -> None:
    """ "A única mensagem legítima que um cliente neste estado pode enviar ... é uma GET-TICKET"."""
    assert after(R, Move.GET) is E1
    assert [move for move in (Move.SET, Move.REPEAT, Move.EXIT, Move.LISTEN) if after(R, move) is not BYZ] == []


def test_a_turn_goes_from_rest_through_e1_and_e2_into_the_section_and_back() -> None:
    state = R
    for move, reached in ((Move.GET, E1), (Move.SET, E2), (Move.LISTEN, E2), (Move.GO, C), (Move.EXIT, R)):
        state = after(state, move)
        assert state is reached


@pytest.mark.parametrize("state", [E1, E2, C])
def test_a_client_may_leave_wherever_it_stands_and_be_removed(state) -> None:
    """F8: it was let in by quicker servers, and this one still sees it waiting."""
    assert after(state, Move.EXIT) is R
    assert after(state, Move.REMOVAL) is R


@pytest.mark.parametrize("state", [R, E1, E2, C])
def test_what_comes_late_changes_nothing_and_bans_nobody(state) -> None:
    assert after(state, Move.LATE) is state
    assert after(state, Move.OVER) is state


def test_byzantine_is_for_ever() -> None:
    """ "Qualquer outra ação ... leva o autômato permanentemente a este estado"."""
    assert {after(BYZ, move) for move in Move} == {BYZ}
    assert {after(state, Move.FAULT) for state in (R, E1, E2, C)} == {BYZ}


def test_a_second_ticket_or_a_second_turn_at_once_is_byzantine() -> None:
    assert after(E2, Move.SET) is after(C, Move.SET) is BYZ
    assert after(E1, Move.GET) is after(E2, Move.GET) is after(C, Move.GET) is BYZ


def test_the_figure_has_every_edge_of_the_table_that_leads_elsewhere() -> None:
    drawn = set(edges())
    assert {(state, move, reached) for (state, move), reached in TABLE.items() if state is not reached} <= drawn
    assert len(drawn) == 9 + 4
