"""What travels to PostgreSQL and back: the calls of the functions in ``postgres.sql``, and what they return.

Everything goes in libpq's binary format: it needs no quoting, and a zero byte in a name is refused rather than cut off.
"""

from functools import partial
from math import ceil

from psycopg.pq import DiagnosticField

from trinco.leases.accesses import Versioned
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item, Waiter
from trinco.leases.operation import NEXT, Answer, Commit, Extend, Grade, Operation, Request, Yield

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from psycopg.pq.abc import PGresult

    Parameters: TypeAlias = list[bytes | None]

COUNT = -1
"""As a token: let the store count."""
GRADES: "dict[Any, Grade]" = {grade.value.encode(): grade for grade in Grade}
FUNCTIONS = {"request": 8, "commit_token": 5, "extend": 4, "yield": 6, "release": 3}
"""By name, how many arguments they take."""
READ = """
    SELECT clock.store_time, item.xmin::text::bigint, item.token, item.evidence,
           item.owner, item.attempt, item.until, item.ticket, item.held_token, item.entry,
           each.owner, each.attempt, each.until, each.ticket, each.entry
      FROM (SELECT {schema}.microseconds(clock_timestamp()) AS store_time) AS clock
      LEFT JOIN {schema}.lease AS item ON item.name = $1
      LEFT JOIN LATERAL unnest(item.waiters) AS each ON true
     ORDER BY each.ticket, each.owner
"""
NOW = "(date_part('epoch', clock_timestamp()) * 1000000)::bigint"
QUICK_REQUEST = f"""
    UPDATE {{schema}}.lease
       SET owner = $2, attempt = $3, until = {NOW} + $4::bigint, ticket = NULL, entry = $6,
           held_token = CASE WHEN $5::bigint < 0 THEN token + 1 ELSE $5 END,
           token = CASE WHEN $5 < 0 THEN token + 1 ELSE coalesce($5, token) END,
           evidence = CASE WHEN $5::bigint IS NULL THEN evidence ELSE $6 END
     WHERE name = $1 AND (owner IS NULL OR until <= {NOW}) AND cardinality(waiters) = 0
       AND ($5::bigint IS NULL OR $5 < 0 OR $5 > token AND $5 <= {NOW} + 3600000000)
    RETURNING held_token, $4::bigint, until - $4, CASE WHEN current_setting('synchronous_commit') = 'off'
                                               THEN set_config('synchronous_commit', 'on', true) END
"""
"""What ``request`` does without a ticket where nobody holds or waits, and the token, if there is one, can be committed:
three quarters of the time. No row: ask ``request``."""
QUICK_RELEASE = f"""
    UPDATE {{schema}}.lease
       SET owner = NULL, attempt = NULL, until = NULL, ticket = NULL, held_token = NULL, entry = NULL
     WHERE name = $1 AND owner = $2 AND attempt = $3 AND until > {NOW} AND cardinality(waiters) = 0
    RETURNING set_config('synchronous_commit', 'off', true)
"""
"""What ``release`` does where I hold and nobody waits. No row: ask ``release``."""


def queries(schema: str) -> dict[bytes, bytes]:
    """The statements of a link, by the names under which they are prepared. ``schema``: quoted."""
    texts = {"trinco_read": READ, "trinco_quick_request": QUICK_REQUEST, "trinco_quick_release": QUICK_RELEASE}
    texts = {name: query.replace("{schema}", schema) for name, query in texts.items()}
    for name, count in FUNCTIONS.items():
        places = ", ".join(f"${place}" for place in range(1, count + 1))
        texts[f"trinco_{name}"] = f"SELECT * FROM {schema}.{name}({places})"
    return {name.encode(): query.encode() for name, query in texts.items()}


class Errand:
    """What stands in a link's queue: a prepared statement with its parameters, or a bare command without. If the
    statement gives no row, what ``otherwise`` makes is to be done instead."""

    __slots__ = ("otherwise", "parameters", "statement")

    def __init__(
        self,
        statement: bytes,
        parameters: "Parameters | None" = None,
        otherwise: "Callable[[], Errand] | None" = None,
    ) -> None:
        self.statement = statement
        self.parameters = parameters
        self.otherwise = otherwise


def errand_for(resource: bytes, operation: Operation, t_max: float, quick_release: bool) -> Errand:
    claim = operation.claim
    parameters: Parameters = [resource, claim.owner.encode(), _number(claim.attempt)]
    if isinstance(operation, Request):
        full = partial(_request, parameters, operation, t_max)
        return full() if operation.ticket is not None else _quick_request(parameters, operation, t_max, full)
    if isinstance(operation, Extend):
        return Errand(b"trinco_extend", [*parameters, _duration(min(operation.ttl, t_max))])
    if isinstance(operation, Commit):
        return Errand(b"trinco_commit_token", [*parameters, _number(operation.token), operation.entry])
    if isinstance(operation, Yield):
        waiting = (_duration(operation.wait), _number(operation.ticket), operation.entry)
        return Errand(b"trinco_yield", [*parameters, *waiting])
    full = partial(Errand, b"trinco_release", parameters)
    return Errand(b"trinco_quick_release", parameters, full) if quick_release else full()


def _request(claimed: "Parameters", request: Request, t_max: float) -> Errand:
    ttl, wait = _duration(min(request.ttl, t_max)), _duration(request.wait)
    asked = (ttl, wait, _number(request.ticket), _guess(request.token), request.entry)
    return Errand(b"trinco_request", [*claimed, *asked])


def _quick_request(claimed: "Parameters", request: Request, t_max: float, full: "Callable[[], Errand]") -> Errand:
    asked = (_duration(min(request.ttl, t_max)), _guess(request.token), request.entry)
    return Errand(b"trinco_quick_request", [*claimed, *asked], full)


def microseconds(duration: float) -> int:
    """Rounded up: a store keeps a lease for at least as long as its holder believes."""
    return ceil(duration * 1e6)


def _duration(duration: float) -> bytes:
    return microseconds(duration).to_bytes(8, "big", signed=True)


def _number(value: int | None) -> bytes | None:
    return None if value is None else value.to_bytes(8, "big", signed=True)


def _guess(token: "Any") -> bytes | None:
    """A guess below zero is as good as zero: too small."""
    if token is NEXT:
        return _number(COUNT)
    return _number(token if token is None else max(token, 0))


def _integer(data: bytes | None) -> "Any":
    return None if data is None else int.from_bytes(data, "big", signed=True)


def answer_in(result: "PGresult") -> tuple[Answer, int]:
    """The answer, and the server's clock."""
    value = result.get_value
    answer = Answer(
        GRADES[value(0, 0)],
        _integer(value(0, 1)),
        _integer(value(0, 2)) / 1e6,
        value(0, 3) == b"\1",
        value(0, 4),
        value(0, 5),
    )
    return answer, _integer(value(0, 6))


def quick_grant_in(result: "PGresult") -> tuple[Answer, int]:
    value = result.get_value
    return Answer(Grade.COMMITTED, _integer(value(0, 0)), _integer(value(0, 1)) / 1e6), _integer(value(0, 2))


def item_in(result: "PGresult") -> Versioned:
    """What ``READ`` gives: the item, once for each of its waiters. Times are counted from the server's clock."""
    rows = [[result.get_value(row, column) for column in range(15)] for row in range(result.ntuples)]
    now, version, token, evidence, owner, attempt, until, ticket, held_token, entry = rows[0][:10]
    holder = None
    if owner is not None:
        claim = Claim(owner.decode(), _integer(attempt))
        holder = Holder(claim, _remaining(until, now), _integer(ticket), _integer(held_token), entry)
    waiters = tuple(_waiter(now, *row[10:]) for row in rows if row[10] is not None)
    item = Item(_integer(now if token is None else token), holder, waiters, evidence)
    return Versioned(item.counted_from(0), _integer(version) or 0)


def _waiter(now: "Any", owner: "Any", attempt: "Any", until: "Any", ticket: "Any", entry: bytes | None) -> Waiter:
    return Waiter(Claim(owner.decode(), _integer(attempt)), _remaining(until, now), _integer(ticket), entry)


def _remaining(until: "Any", now: "Any") -> float:
    return float(_integer(until) - _integer(now)) / 1e6


def error_of(result: "PGresult") -> tuple[str, str]:
    """PostgreSQL's code for what went wrong, and its words."""
    state = result.error_field(DiagnosticField.SQLSTATE) or b""
    message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    return state.decode(), message.decode(errors="replace")


def one_line(error: object) -> str:
    return " ".join(str(error).split())
