"""Planes for any number of nodes: every two clients keep one common arbiter, and every arbiter runs somewhere."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import pytest

from trinco.core.errors import UsageError
from trinco.core.ids import members
from trinco.protocols.quorums import arrangement
from trinco.protocols.quorums.padding import Arbiters, checks, padded, plane_quorums
from trinco.protocols.quorums.planes import plane

SIZES = range(2, 201)
arbiters_of = cache(padded)


def faults(arbiters: Arbiters) -> dict[str, str]:
    return {check.claim: check.fault for check in checks(arbiters) if check.fault is not None}


def test_every_two_clients_have_exactly_one_common_arbiter() -> None:
    """Pair by pair, for every number of nodes up to 200."""
    for n in SIZES:
        quorums = [frozenset(quorum) for quorum in arbiters_of(n).quorums]
        assert len(quorums) == n
        assert all(len(one & other) == 1 for one, other in combinations(quorums, 2)), n


def test_nobody_asks_more_than_m_plus_1_arbiters() -> None:
    for n in SIZES:
        arbiters = arbiters_of(n)
        assert max(map(len, arbiters.quorums)) <= arbiters.order + 1, n


def test_nobody_runs_more_than_two_arbiters() -> None:
    for n in SIZES:
        assert max(map(len, arbiters_of(n).run_by)) <= 2, n


def test_where_there_is_a_plane_everybody_runs_its_own_arbiter_and_no_other() -> None:
    for order in (1, 2, 3, 4, 5, 7, 8, 9, 11, 13):
        lines = plane(order)
        arbiters = arbiters_of(len(lines))
        assert arbiters.quorums == lines
        assert arbiters.run_by == tuple((node,) for node in range(len(lines)))


def test_an_arbiter_has_two_clients_or_more_and_runs_at_one_of_them() -> None:
    for n in SIZES:
        arbiters = arbiters_of(n)
        for arbiter, clients in enumerate(arbiters.clients):
            assert len(clients) != 1
            assert (arbiter in arbiters.hosts) == bool(clients)
            assert not clients or arbiters.hosts[arbiter] in clients


def test_a_real_arbiter_runs_at_itself() -> None:
    for n in SIZES:
        assert all(host == arbiter for arbiter, host in arbiters_of(n).hosts.items() if arbiter < n)


def test_a_message_between_two_nodes_need_not_say_which_arbiter_it_is_about() -> None:
    """It is about the one that the two share, and only one of the two runs that one."""
    for n in range(2, 61):
        arbiters = arbiters_of(n)
        for client, quorum in enumerate(arbiters.quorums):
            for arbiter in quorum:
                host = arbiters.hosts[arbiter]
                assert host == client or arbiters.common(client, host) == arbiter


def test_the_checks_find_nothing_wrong() -> None:
    for n in (1, *SIZES):
        assert faults(arbiters_of(n)) == {}, n


def test_one_node_asks_nobody() -> None:
    assert padded(1).quorums == ((),)
    assert padded(1).hosts == {}


def test_two_nodes_share_one_arbiter() -> None:
    assert padded(2).quorums == ((1,), (1,))
    assert padded(2).hosts == {1: 1}


def test_four_nodes_on_the_plane_of_seven() -> None:
    """Arbiter 4 is virtual; only client 0 asks arbiter 0, only client 2 asks 5, only client 3 asks 6."""
    arbiters = padded(4)
    assert arbiters.quorums == ((1, 3), (1, 2, 4), (2, 3), (3, 4))
    assert arbiters.clients == ((), (0, 1), (1, 2), (0, 2, 3), (1, 3), (), ())
    assert arbiters.hosts == {1: 1, 2: 2, 3: 3, 4: 1}
    assert arbiters.run_by == ((), (1, 4), (2,), (3,))


def test_to_leave_out_the_fictitious_points_would_be_unsafe() -> None:
    """Two clients may meet nowhere else."""
    arbiters = padded(10)
    real = tuple(tuple(each for each in quorum if each < 10) for quorum in arbiters.quorums)
    assert faults(replace(arbiters, quorums=real))["two clients have exactly one common arbiter"] == (
        "clients 1 and 7 share {}"
    )


def test_9507_nodes_need_no_virtual_arbiter_and_9506_need_one() -> None:
    exact, padded_by_one = padded(9_507), padded(9_506)
    assert max(exact.hosts) == 9_506
    assert max(map(len, exact.run_by)) == 1
    assert [arbiter for arbiter in padded_by_one.hosts if arbiter >= 9_506] == [9_506]


def test_no_nodes_are_refused() -> None:
    with pytest.raises(UsageError, match="at least one node, not 0"):
        padded(0)


# The checks

TEN = padded(10)


@pytest.mark.parametrize(
    ("arbiters", "claim", "told"),
    [
        (
            replace(TEN, quorums=((0, 1, 2, 3, 9), *TEN.quorums[1:])),
            "no client asks more than 4 arbiters",
            "client 0 asks {0, 1, 2, 3, 9}",
        ),
        (
            replace(padded(4), quorums=((0, 1, 3), *padded(4).quorums[1:])),
            "every arbiter has two clients or more, or is pruned",
            "arbiter 0 has the clients {0}",
        ),
        (
            replace(padded(4), hosts={**padded(4).hosts, 5: 2}),
            "every arbiter has two clients or more, or is pruned",
            "arbiter 5 has the clients {}",
        ),
        (
            replace(TEN, hosts={**TEN.hosts, 10: 0}),
            "a real arbiter runs at itself, a virtual one at a client of its own",
            "arbiter 10 of {1, 7, 9} runs at 0",
        ),
        (
            replace(TEN, hosts={**TEN.hosts, 3: 0}),
            "a real arbiter runs at itself, a virtual one at a client of its own",
            "arbiter 3 of {0, 2, 3, 7} runs at 0",
        ),
        (
            replace(TEN, hosts={arbiter: host for arbiter, host in TEN.hosts.items() if arbiter != 10}),
            "a real arbiter runs at itself, a virtual one at a client of its own",
            "arbiter 10 of {1, 7, 9} runs at None",
        ),
    ],
)
def test_a_check_that_fails_shows_where(arbiters: Arbiters, claim: str, told: str) -> None:
    assert faults(arbiters)[claim] == told


# Quorums of nodes


def test_as_quorums_of_nodes_every_two_still_meet_and_nobody_asks_more_than_m_plus_1() -> None:
    """A set of quorums is made only if all meet and each node is in its own."""
    for n in (1, *SIZES):
        quorums = plane_quorums(n)
        assert len(quorums) == n
        assert max(quorum.bit_count() for quorum in quorums) <= arbiters_of(n).order + 1


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 7, 8])
def test_where_there_is_a_plane_its_lines_are_the_quorums(order: int) -> None:
    lines = plane(order)
    assert tuple(tuple(members(quorum)) for quorum in arrangement("plane")(len(lines))) == lines


def test_two_arbiters_of_one_node_are_one_in_its_quorums() -> None:
    """Of four, client 1 asks 1, 2 and the virtual 4, which it runs itself."""
    assert [tuple(members(quorum)) for quorum in plane_quorums(4)] == [(0, 1, 3), (1, 2), (2, 3), (1, 3)]
