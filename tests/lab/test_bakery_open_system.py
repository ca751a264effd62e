"""10,000 clients and 100,000 turns are in ``make prove``; here are a few hundred."""

import dataclasses

from trinco.lab.bakery_open_system import OpenSystem, Tables
from trinco.protocols.bakery.system import Bakery


def test_what_servers_keep_is_of_those_who_were_there_lately() -> None:
    """One arrives every two seconds, stays for a minute, and is forgotten four minutes later."""
    few, many = OpenSystem(180).do(), OpenSystem(360).do()
    assert (few.violation, many.violation) == (None, None)
    assert (few.entries, many.entries) == (541, 1081)
    assert few.left.clients == many.left.clients == 90
    assert (few.left.turns, few.left.suspicions) == (many.left.turns, many.left.suspicions) == (0, 0)


def test_where_nothing_is_forgotten_there_is_no_end_of_it() -> None:
    forever = dataclasses.replace(OpenSystem(300), system=Bakery(cap=float("inf")))
    assert forever.do().left == Tables(turns=0, clients=300, suspicions=0)


def test_a_turn_costs_what_those_cost_who_are_there_not_those_who_ever_were() -> None:
    """24 messages whenever nobody else is there; what two or four at a time cost does not depend on how many there
    have been."""
    assert [round(OpenSystem(clients).do().messages_per_entry, 1) for clients in (60, 180)] == [24.0, 24.0]
    for together in (2, 4):
        few, many = (OpenSystem(clients, together=together).do().messages_per_entry for clients in (60, 180))
        assert 30 < few < 45
        assert abs(few - many) < 1
