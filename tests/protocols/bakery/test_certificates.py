"""What proves something, and what does not: quorums, justifications, certificates of tickets, grants and removals."""

import msgspec
import pytest

from tests.protocols.bakery.desk import (
    LOCK,
    desk,
    get_reply,
    justification,
    suspicion,
    ticket_certificate,
    vote,
)
from trinco.core.errors import UsageError
from trinco.core.signed import Signed
from trinco.protocols.bakery.certificates import Ticket, trimmed
from trinco.protocols.bakery.quorums import quorum
from trinco.protocols.bakery.system import Bakery

CTX = desk(0)
JUDGE = Bakery().judge(7)


@pytest.mark.parametrize("f", [0, 1, 2, 3])
def test_two_quorums_share_a_server_that_does_not_lie(f) -> None:
    for n in range(3 * f + 1, 3 * f + 8):
        q = quorum(n, f)
        assert 2 * q - n >= f + 1
        assert n - f >= q, "without the liars there is still a quorum"
    assert quorum(3 * f + 1, f) == 2 * f + 1, "as printed"


def test_five_servers_need_quorums_of_four() -> None:
    """F1: of five, two sets of 2f+1 = 3 may share nobody but a liar."""
    assert quorum(5, 1) == 4


def test_too_few_servers_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 4"):
        quorum(3, 1)
    with pytest.raises(UsageError):
        Bakery(f=2, servers=6)


def test_a_ticket_is_one_above_the_highest_of_a_quorum() -> None:
    assert JUDGE.ticket_by(CTX, justification(0), 0, 1) == 1
    assert JUDGE.ticket_by(CTX, justification(0, numbers=(4, 7, 4)), 0, 1) == 8


@pytest.mark.parametrize(
    "replies",
    [
        pytest.param((), id="none"),
        pytest.param(justification(0)[:2], id="too few"),
        pytest.param((*justification(0)[:2], get_reply(4, 0)), id="one server twice"),
        pytest.param((*justification(0)[:2], get_reply(1, 0)), id="signed by a client"),
        pytest.param(justification(1), id="somebody else's"),
        pytest.param(justification(0, sid=2), id="of another turn"),
        pytest.param((*justification(0), get_reply(6, 0)), id="more than a quorum"),
        pytest.param((*justification(0)[:2], get_reply(5, 0, number=10**12, certificate=())), id="not certified"),
        pytest.param((*justification(0)[:2], get_reply(5, 0, number=-1)), id="negative"),
        pytest.param((*justification(0)[:2], None), id="not even a reply"),
    ],
)
def test_anything_less_justifies_nothing(replies) -> None:
    assert JUDGE.ticket_by(CTX, replies, 0, 1) is None


def test_f_plus_1_signatures_certify_a_ticket_and_f_do_not() -> None:
    """F11: so a liar alone cannot make tickets huge."""
    assert JUDGE.certifies(CTX, ticket_certificate(9), 9)
    assert not JUDGE.certifies(CTX, ticket_certificate(9, signers=(3,)), 9)
    assert not JUDGE.certifies(CTX, ticket_certificate(9, signers=(3, 3)), 9)
    assert not JUDGE.certifies(CTX, ticket_certificate(9, signers=(0, 1)), 9)
    assert not JUDGE.certifies(CTX, ticket_certificate(8), 9)
    assert not JUDGE.certifies(CTX, (Signed(3, Ticket("other", 9)), Signed(4, Ticket("other", 9))), 9)
    assert JUDGE.certifies(CTX, (), 0), "0 is what there was before any ticket"


def test_q_suspicions_remove_a_turn_and_fewer_do_not() -> None:
    assert JUDGE.removes(CTX, tuple(suspicion(server, 0) for server in (3, 4, 6)), 0, 1)
    assert not JUDGE.removes(CTX, tuple(suspicion(server, 0) for server in (3, 4)), 0, 1)
    assert not JUDGE.removes(CTX, tuple(suspicion(server, 0, sid=2) for server in (3, 4, 6)), 0, 1)


def test_a_resource_reads_the_fencing_token_from_q_votes_for_one_ticket() -> None:
    """F14: a client that justified two tickets has no certificate for either."""
    votes = [vote(server, 2, sid=5, number=9, heartbeat=server) for server in (3, 4, 6)]
    assert JUDGE.token_of(CTX, votes) == (9, 2)
    assert JUDGE.token_of(CTX, votes[:2]) is None
    assert JUDGE.token_of(CTX, [*votes[:2], vote(4, 2, sid=5, number=9, heartbeat=1)]) is None, "one server twice"
    assert JUDGE.token_of(CTX, [*votes[:2], vote(6, 2, sid=5, number=10)]) is None
    assert JUDGE.token_of(CTX, [*votes[:2], vote(1, 2, sid=5, number=9)]) is None
    assert JUDGE.lock == LOCK


def test_a_justification_is_passed_on_with_the_certificate_of_its_highest_ticket_only() -> None:
    whole = justification(0, numbers=(4, 7, 0))
    passed_on = trimmed(whole)
    assert [len(reply.certificate) for reply in passed_on] == [0, 2, 0]
    assert JUDGE.ticket_by(CTX, passed_on, 0, 1) == JUDGE.ticket_by(CTX, whole, 0, 1) == 8


def test_the_highest_ticket_of_a_justification_must_be_certified() -> None:
    high, low = justification(0, numbers=(7, 4, 0))[:2]
    bare = msgspec.structs.replace(high, certificate=())
    assert JUDGE.ticket_by(CTX, (bare, low, get_reply(5, 0)), 0, 1) is None
