"""What travels to PostgreSQL and back: the statements of a link, and what they return.

Everything goes in libpq's binary format: it needs no quoting, and a zero byte in a name is refused rather than cut off.
"""

import struct
from functools import lru_cache
from math import ceil

from psycopg.pq import DiagnosticField

from trinco.leases.accesses import Versioned
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item, Waiter
from trinco.leases.operation import (
    NEXT,
    TOKEN_LIMIT,
    Answer,
    Commit,
    Extend,
    Grade,
    Handed,
    Operation,
    Release,
    Request,
    Yield,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from psycopg.pq.abc import PGresult

    Parameters: TypeAlias = list[Any]  # bytes and None
    Row: TypeAlias = list[Any]  # bytes and None

_number_in_binary = struct.Struct("!q")
pack: "Any" = _number_in_binary.pack
unpack: "Any" = _number_in_binary.unpack
NOT_ALLOWED = "42501"
COUNT = -1
"""As a token: let the store count."""
SIGN_OF_LIFE = int.from_bytes(b"trin")
"""The advisory lock that each connection keeps is this and the number of the process that serves it."""
EPOCH = 946_684_800_000_000
"""PostgreSQL counts its microseconds from 2000, everybody else from 1970."""
GRADES: "dict[Any, Grade]" = {grade.value.encode(): grade for grade in Grade if grade is not Grade.FAILED}
BOOLEANS: "dict[Any, bool]" = {b"\1": True, b"\0": False, None: False}
NONSENSE = (struct.error, AttributeError, TypeError, ValueError, LookupError, OverflowError)
"""What comes of reading what no statement of ours says."""
READ_COLUMNS = 15
COMMITTED = Grade.COMMITTED
RELEASED = Answer(Grade.DONE)
HANDED = b"\1"
"""What a notification that hands over begins with: no owner's name does."""

# The statements

FUNCTIONS = {"request": 9, "commit_token": 5, "extend": 4, "yield": 6, "release": 3}
"""By name, how many arguments they take."""
READ = """
    SELECT clock.store_time, item.xmin::text::bigint, coalesce(item.token, {schema}.microseconds(clock.store_time)),
           item.evidence, item.until, item.owner, item.attempt, item.ticket, item.held_token, item.entry,
           each.owner, each.attempt, each.until, each.ticket, each.entry
      FROM (SELECT clock_timestamp() AS store_time) AS clock
      LEFT JOIN {schema}.lease AS item ON item.name = $1
      LEFT JOIN LATERAL (
          SELECT item.first_owner AS owner, item.first_attempt AS attempt, item.first_until AS until,
                 item.first_ticket AS ticket, item.first_entry AS entry
           WHERE item.first_owner IS NOT NULL
           UNION ALL
          SELECT owner, attempt, until, ticket, entry FROM unnest(item.waiters)
      ) AS each ON true
     ORDER BY each.ticket, each.owner
"""
TAKE = """
    UPDATE {schema}.lease
       SET owner = $2, attempt = $3, until = clock_timestamp() + $4, entry = $5, ticket = NULL, {tokens}
     WHERE name = $1 AND until IS NULL AND first_owner IS NULL {belief}
    RETURNING held_token {wait_for_disk}
"""
"""What ``request`` does without a ticket where nobody holds or waits, in half the time. No row: ask ``request``."""
COUNTED = "greatest(token + 1, {schema}.microseconds(statement_timestamp()))"
"""The next token: see ``Limits.floor``. By the clock of the statement, which reads the same twice."""
GUESS = "guess"
TOKENS = {
    NEXT: ("token = {counted}, held_token = {counted}, evidence = $5", ""),
    None: ("held_token = NULL", ""),
    GUESS: (
        "token = {guess}, held_token = {guess}, evidence = $5",
        "AND {guess} > token AND {guess} <= {schema}.microseconds(clock_timestamp()) + 3600000000",
    ),
}
"""By the token that is asked for: what a grant does to it, and when it is believed."""
TAKES: "dict[Any, bytes]" = {
    NEXT: b"trinco_take_counted",
    None: b"trinco_take_unfenced",
    GUESS: b"trinco_take_guessed",
}
ASKS, READS = b"trinco_request", b"trinco_read"
GIVES_BACK, HANDS_TO_LAST = b"trinco_give_back", b"trinco_hand_to_last"
HANDS_OVER, RELEASES = b"trinco_hand_over", b"trinco_release"
HANDED_BY = {GIVES_BACK: HANDS_TO_LAST, HANDS_TO_LAST: HANDS_OVER}
"""What to try next to give a lock back with."""
HANDING = (HANDS_TO_LAST, HANDS_OVER)
WAIT_FOR_DISK = """
    , CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END
"""
"""For a session that may not wait for the disk by itself; one that is known to does without."""
GIVE_BACK = """
    UPDATE {schema}.lease SET until = NULL
     WHERE name = $1 AND owner = $2 AND attempt = $3 AND until > clock_timestamp() AND first_owner IS NULL
       AND set_config('synchronous_commit', 'off', true) IS NOT NULL
"""
"""What ``release`` does where I hold and nobody waits. It tells only how many rows it has changed, in less time than it
takes to give one. None: try ``HAND_OVER``, at first for the only one in line."""
HAND_OVER = """
    UPDATE {schema}.lease
       SET owner = first_owner, attempt = first_attempt, ticket = first_ticket, until = clock_timestamp() + first_ttl,
           entry = first_entry, {tokens},
           handed_serial = first_serial, handed_wait = first_until, handed_channel = first_channel,
           {next_in_line}
     WHERE name = $1 AND owner = $2 AND attempt = $3 AND until > clock_timestamp()
       AND first_channel IS NOT NULL AND first_until > clock_timestamp()
       AND {belief}
       AND {line}
       AND (first_backend = pg_backend_pid() OR NOT pg_try_advisory_xact_lock_shared({sign_of_life}, first_backend))
    RETURNING pg_notify(
        handed_channel,
        concat(E'\\x01', attempt, ' ', handed_serial, ' ', (date_part('epoch', until - handed_wait) * 1000000)::bigint,
               ' committed ', coalesce(held_token::text, '-'), E' -\\n', owner)
    ) {wait_for_disk}
"""
"""What ``release`` does where I hold and the first in line waits to be handed it. No row: ask ``release``. A long line
is compressed in its row, and would have to be unpacked here for every word about the next in it."""
WAITER = ("ticket", "owner", "attempt", "until", "entry", "backend", "serial", "ttl", "token", "channel")
NEXT_IN_LINE = ", ".join(f"first_{word} = (waiters[1]).{word}" for word in WAITER)
LINES = {
    HANDS_TO_LAST: {
        "tokens": "evidence = first_entry, token = {counted}, held_token = {counted}",
        "belief": "first_token < 0",
        "next_in_line": ", ".join(f"first_{word} = NULL" for word in WAITER),
        "line": "waiters IS NULL",
    },
    HANDS_OVER: {
        "tokens": """evidence = CASE WHEN first_token IS NULL THEN evidence ELSE first_entry END,
            token = CASE WHEN first_token < 0 THEN {counted} ELSE coalesce(first_token, token) END,
            held_token = CASE WHEN first_token < 0 THEN {counted} ELSE first_token END""",
        "belief": """(first_token < 0 OR first_token IS NULL
            OR first_token > token AND first_token <= {schema}.microseconds(clock_timestamp()) + 3600000000)""",
        "next_in_line": f"{NEXT_IN_LINE}, waiters = nullif(waiters[2:], '{{{{}}}}')",
        "line": "(waiters IS NULL OR pg_column_size(waiters) < 2000)",
    },
}
"""Most often one alone waits, and has the store count: then there is neither a next in line nor a guess to judge."""


def queries(schema: str, *, is_durable: bool = False) -> dict[bytes, bytes]:
    """The statements of a link, by the names under which they are prepared. ``schema``: quoted. ``is_durable``: whether
    the session is known to wait for the disk at every commit."""
    wait_for_disk = "" if is_durable else WAIT_FOR_DISK
    texts = {
        "trinco_read": READ.format(schema=schema),
        "trinco_give_back": GIVE_BACK.format(schema=schema),
    }
    for name, count in FUNCTIONS.items():
        places = ", ".join(f"${place}" for place in range(1, count + 1))
        texts[f"trinco_{name}"] = f"SELECT * FROM {schema}.{name}({places})"
    known = {"schema": schema, "wait_for_disk": wait_for_disk, "sign_of_life": SIGN_OF_LIFE}
    counted = COUNTED.format(schema=schema)
    handing = {
        name: HAND_OVER.format(
            **known, **{part: text.format(schema=schema, counted=counted) for part, text in line.items()}
        ).encode()
        for name, line in LINES.items()
    }
    grants = {TAKES[kind]: _take(kind, schema, wait_for_disk) for kind in TOKENS}
    return {name.encode(): query.encode() for name, query in texts.items()} | handing | grants


def _take(kind: str | None, schema: str, wait_for_disk: str) -> bytes:
    counted = COUNTED.format(schema=schema)
    tokens, belief = (each.format(schema=schema, guess="$6::bigint", counted=counted) for each in TOKENS[kind])
    return TAKE.format(schema=schema, tokens=tokens, belief=belief, wait_for_disk=wait_for_disk).encode()


class Errand:
    """What stands in a link's queue: a prepared statement with its parameters, or a bare command without. If the
    statement gives no row, ``otherwise`` is what it was to do, and has to be done in another way."""

    __slots__ = ("otherwise", "parameters", "statement")

    def __init__(
        self, statement: bytes, parameters: "Parameters | None" = None, otherwise: Operation | None = None
    ) -> None:
        self.statement = statement
        self.parameters = parameters
        self.otherwise = otherwise


def quick_errand(resource: bytes, operation: Operation, t_max: float, release: bytes) -> Errand:
    """By the statement that will do in most cases, if there is one. ``release``: the one for a release."""
    claim = operation.claim
    parameters: Parameters = [resource, claim.owner.encode(), pack(claim.attempt)]
    if isinstance(operation, Release):
        return Errand(release, parameters, None if release is RELEASES else operation)
    if not isinstance(operation, Request) or operation.ticket is not None:
        return full_errand(parameters, operation, t_max)
    parameters += interval(operation.ttl if operation.ttl < t_max else t_max), operation.entry
    take = TAKES.get(operation.token)
    if take is None:
        take = TAKES[GUESS]
        parameters.append(_guess(operation.token))
    return Errand(take, parameters, operation)


def next_errand(errand: Errand, t_max: float) -> Errand:
    """Where a statement gave no row."""
    assert errand.otherwise is not None
    assert errand.parameters is not None
    if errand.statement in HANDED_BY:
        return Errand(HANDED_BY[errand.statement], errand.parameters, errand.otherwise)
    return full_errand(errand.parameters[:3], errand.otherwise, t_max)


def full_errand(parameters: "Parameters", operation: Operation, t_max: float) -> Errand:
    """By the function for it. ``parameters``: those that all of them have, the resource and the claim."""
    if isinstance(operation, Request):
        times = interval(min(operation.ttl, t_max)), interval(operation.wait)
        asked = _number(operation.ticket), _guess(operation.token), operation.entry, _number(operation.serial)
        return Errand(ASKS, [*parameters, *times, *asked])
    if isinstance(operation, Extend):
        return Errand(b"trinco_extend", [*parameters, interval(min(operation.ttl, t_max))])
    if isinstance(operation, Commit):
        return Errand(b"trinco_commit_token", [*parameters, _number(operation.token), operation.entry])
    if isinstance(operation, Yield):
        waiting = interval(operation.wait), _number(operation.ticket), operation.entry
        return Errand(b"trinco_yield", [*parameters, *waiting])
    return Errand(RELEASES, parameters)


def microseconds(duration: float) -> int:
    """Rounded up: a store keeps a lease for at least as long as its holder believes."""
    return ceil(duration * 1e6)


@lru_cache
def interval(duration: float) -> bytes:
    """Microseconds, days and months."""
    return bytes(pack(microseconds(duration))) + bytes(8)


@lru_cache
def _seconds_in(interval: bytes) -> float:
    return float(unpack(interval[:8])[0]) / 1e6


def _number(value: int | None) -> bytes | None:
    return None if value is None else pack(value)


def _guess(token: "Any") -> bytes | None:
    """A guess below zero is as good as zero: too small."""
    if token is NEXT:
        return _number(COUNT)
    return _number(token if token is None else max(token, 0))


# What they return


def grant_in(result: "PGresult", errand: Errand) -> Answer:
    """What ``TAKE`` gives. The term is the one that was asked for."""
    parameters: Any = errand.parameters
    token = _token(result.get_value(0, 0))
    if token is None and errand.statement is not TAKES[None]:
        raise ValueError
    return Answer(COMMITTED, token, _seconds_in(parameters[3]))


def answer_in(result: "PGresult") -> tuple[Answer, int]:
    """What a function gives, and the server's clock. Raises one of ``NONSENSE``, as the others do, where it is what
    none of ours says."""
    grade, token, until, smaller, evidence, ticket, now = row_in(result)
    (store_time,) = unpack(now)
    remaining = 0 if until is None else _remaining(until, now)
    return Answer(GRADES[grade], _token(token), remaining, BOOLEANS[smaller], evidence, ticket), store_time + EPOCH


GRANTS = frozenset(TAKES.values())


def row_in(result: "PGresult") -> "Row":
    """The only row of a result, or its first."""
    return [result.get_value(0, column) for column in range(result.nfields)]


def _token(data: bytes | None) -> int | None:
    if data is None:
        return None
    (token,) = unpack(data)
    if not 0 <= token < TOKEN_LIMIT:
        raise ValueError
    return token  # type: ignore[no-any-return]


def _integer(data: bytes | None) -> "Any":
    return None if data is None else unpack(data)[0]


def _remaining(until: "Any", now: "Any") -> float:
    return float(unpack(until)[0] - unpack(now)[0]) / 1e6


def handed_in(notification: bytes) -> Handed | None:
    """What a notification hands over. None: no function of ours says this."""
    try:
        head, _, owner = notification[1:].partition(b"\n")
        attempt, serial, beyond, grade, token, evidence = head.split(b" ")
        proof = None if evidence == b"-" else bytes.fromhex(evidence.decode())
        said = Answer(GRADES[grade], None if token == b"-" else int(token), evidence=proof)
        return Handed(Claim(owner.decode(), int(attempt)), int(serial), int(beyond) / 1e6, said)
    except (ValueError, LookupError, OverflowError):
        return None


def item_in(rows: "list[Row]") -> Versioned | None:
    """What ``READ`` gives: the item, once for each of its waiters. Times are counted from the server's clock. None: it
    never gives this."""
    try:
        if any(len(row) != READ_COLUMNS for row in rows):
            return None
        now, version, token, evidence, until = rows[0][:5]
        holder = None if until is None else _holder(now, until, *rows[0][5:10])
        waiters = tuple(_waiter(now, *row[10:]) for row in rows if row[10] is not None)
        largest = _token(token)
        if largest is None:
            return None
        item = Item(largest, holder, waiters, evidence).counted_from(0)
        return Versioned(item, _integer(version) or 0)
    except NONSENSE:
        return None


def _holder(
    now: "Any", until: "Any", owner: "Any", attempt: "Any", ticket: "Any", token: "Any", entry: bytes | None
) -> Holder:
    claim = Claim(owner.decode(), unpack(attempt)[0])
    return Holder(claim, _remaining(until, now), _integer(ticket), _token(token), entry)


def _waiter(now: "Any", owner: "Any", attempt: "Any", until: "Any", ticket: "Any", entry: bytes | None) -> Waiter:
    claim = Claim(owner.decode(), unpack(attempt)[0])
    return Waiter(claim, _remaining(until, now), unpack(ticket)[0], entry)


def error_of(result: "PGresult") -> tuple[str, str]:
    """PostgreSQL's code for what went wrong, and its words."""
    state = result.error_field(DiagnosticField.SQLSTATE) or b""
    message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    return state.decode(errors="replace"), message.decode(errors="replace")


def one_line(error: object) -> str:
    """Of an error of the server's what happened, and not where in our functions."""
    diagnosis = getattr(error, "diag", None)
    return " ".join(str(getattr(diagnosis, "message_primary", None) or error).split())
