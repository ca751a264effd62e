"""Between the locks and ``redis.lua``: operations as the script's arguments, its replies as answers, and what a Redis
server complains of in words that help.

An answer that is not exactly what the script gives is nothing: it becomes ``Failed``, never a yes.
"""

import ssl
from hashlib import sha1
from math import ceil
from pkgutil import get_data

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
from trinco.stores import descriptors
from trinco.stores.redis_epoch import EPOCH
from trinco.stores.resp import ReplyError, pack, pack_word
from trinco.stores.store import EXHAUSTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.stores.resp import Command, Word

MICRO = 1_000_000
LONGEST_S = 1e9
"""Longer durations are cut here, so that every sum with the clock stays exact."""

SCRIPT = get_data("trinco.stores", "redis.lua") or b""
SCRIPT_NAME = sha1(SCRIPT, usedforsecurity=False).hexdigest()

SENTINEL = "this is a Sentinel, which keeps no data: give the address of the primary that it watches"
ADVICE = {
    "NOAUTH": "it wants a password: redis://:PASSWORD@host, or redis://USER:PASSWORD@host",
    "WRONGPASS": "the user or the password is wrong",
    "NOPERM": "this user may not do what locks need; allow it +select +evalsha +eval +script +get +set +scan +time "
    "+info +publish +subscribe +@hash +@sortedset ~trinco:* &trinco:*",
    "READONLY": "this is a replica, which cannot grant anything: give the address of the primary",
    "OOM": "its memory is full, so nothing was done: free some, or raise maxmemory",
    "LOADING": "it is still loading its data: ask again in a moment",
    "BUSY": "somebody's script keeps it busy: wait, or end that script with SCRIPT KILL",
    "MISCONF": "it cannot save its data and refuses writes, so nothing was done: look at its disk and its log",
    "NOREPLICAS": "it has fewer replicas than its min-replicas-to-write, so nothing was done",
    "MASTERDOWN": "this is a replica that has lost its primary: give the address of the primary",
    "MOVED": "it is one node of a cluster, and this lock belongs to another: a store is one server, so name one that "
    "is in no cluster, or several as a quorum",
    "CLUSTERDOWN": "its cluster is down",
    "DAMAGED": "what it keeps for this lock is damaged or not ours, so nothing is granted: look at the key, and delete "
    "it if nobody holds the lock",
    "EXHAUSTED": EXHAUSTED,
    "FORGOTTEN": "its data was removed or replaced while we were connected, so it may have forgotten who holds what",
    "DENIED": "it is in protected mode, which lets in nobody but its own host: give it a password (requirepass)",
}
PHRASES = {
    "max number of clients": "it has as many clients as it takes: raise its maxclients, or use fewer clients",
    "DB index is out of range": "it has fewer databases than that: correct the number behind the / in the URL",
    "unknown command `SELECT`": SENTINEL,
    "unknown command 'SELECT'": SENTINEL,
}
"""What servers say behind the code ERR, which says nothing."""


DENIALS = ("NOAUTH", "WRONGPASS", "NOPERM", "DENIED")
OF_A_SCRIPT = ("ACL failure in script", "user executing the script can't")
"""What Redis 7 and 6 say where a script, which runs in our name, may not do something."""


def complaint(error: ReplyError) -> str:
    """What a server's error means, with its own words where they add something. What went wrong inside the script has
    its code behind the place: ``@user_script: 237: -OOM command not allowed``."""
    text = "".join(each if each.isprintable() else " " for each in error.text[:300])
    words = (word.lstrip("-") for word in text.split(" ")[:8])
    code = "NOPERM" if is_denied_to_script(error) else next((word for word in words if word in ADVICE), None)
    known = (advice for phrase, advice in PHRASES.items() if phrase in text)
    advice = next(known, None) if code is None else ADVICE[code]
    return f"it says: {text}" if advice is None else f"{advice} ({text[:120]})"


NO_TLS = ("handshake operation timed out", "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "reset by peer")


def is_denial(error: ReplyError) -> bool:
    """Whether it says that we may not."""
    return error.text.partition(" ")[0] in DENIALS or is_denied_to_script(error)


def connect_advice(error: Exception, *, tls: bool) -> str:
    """What to do where there is no connection. ``tls``: whether one was asked for. A server that does not speak it
    hears no command in our greeting and says nothing, or hears one and complains in words that are no TLS."""
    if descriptors.are_used_up(1):  # who looks a name up is told something else
        return descriptors.ADVICE
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not trusted here: name the file of its authority with ssl_ca_certs=FILE"
    if tls and isinstance(error, FileNotFoundError | PermissionError):
        return "a file that its URL names (ssl_ca_certs, ssl_certfile, ssl_keyfile) cannot be read"
    if isinstance(error, ssl.SSLEOFError) or (tls and any(sign in str(error) for sign in NO_TLS)):
        return "the server does not seem to speak TLS: if it does not, write redis://"
    if isinstance(error, ssl.SSLError):
        return "compare the ssl_... options of the URL with what the server wants"
    return "is the server running, and is the address right?"


def is_denied_to_script(error: ReplyError) -> bool:
    return any(words in error.text for words in OF_A_SCRIPT)


# Operations


def micros(duration: float) -> int:
    """Never less than was asked: the client believes in all of it."""
    return ceil(min(duration, LONGEST_S) * MICRO)


def _number(value: int | str | None) -> "Word":
    if isinstance(value, int) and not 0 <= value < TOKEN_LIMIT:
        raise ValueError(f"{value} is not a number that every store can keep exactly")
    return "" if value is None else value


def _entry(entry: "Any") -> "Command":
    return () if entry is None else (entry,)


def _request(request: Request, t_max: int) -> "Command":
    claim, ttl = request.claim, min(micros(request.ttl), t_max)
    token = request.token if request.token is NEXT else _number(request.token)
    if request.ticket is None:
        words: Command = "request", claim.owner, claim.attempt, ttl, token
    else:
        ticket, wait, serial = _number(request.ticket), micros(request.wait), _number(request.serial)
        words = "queue", claim.owner, claim.attempt, ttl, token, ticket, wait, serial
    return words if request.entry is None else (*words, request.entry)


def _extend(extend: Extend, t_max: int) -> "Command":
    return "extend", extend.claim.owner, extend.claim.attempt, min(micros(extend.ttl), t_max)


def _commit(commit: Commit, t_max: int) -> "Command":
    return "commit", commit.claim.owner, commit.claim.attempt, _number(commit.token), *_entry(commit.entry)


def _yield(operation: Yield, t_max: int) -> "Command":
    claim, ticket, wait = operation.claim, _number(operation.ticket), micros(operation.wait)
    return "yield", claim.owner, claim.attempt, ticket, wait, *_entry(operation.entry)


def _release(release: Release, t_max: int) -> "Command":
    return "release", release.claim.owner, release.claim.attempt


_WORDS: "dict[type[Operation], Any]" = {
    Request: _request,
    Extend: _extend,
    Commit: _commit,
    Yield: _yield,
    Release: _release,
}


def arguments(operation: Operation, t_max: int) -> "Command":
    """What the script is called with; ``t_max`` in microseconds. Raises ``ValueError`` for what it could not keep."""
    words: Command = _WORDS[type(operation)](operation, t_max)
    return words


PLACE_OF_LIFE = 5
LIFE = b"\0life\0"
"""Stands for the server's life (redis_epoch), which is not the same on every link."""


def call(resource: str, words: "Command") -> "Command":
    return "EVALSHA", SCRIPT_NAME, 2, f"trinco:{{{resource}}}", EPOCH, LIFE, *words


def with_life(command: "Command", life: bytes) -> "Command":
    return *command[:PLACE_OF_LIFE], life, *command[PLACE_OF_LIFE + 1 :]


class Packed:
    """The call that was packed last, as words and as bytes: all servers of a quorum are sent the same, but for their
    lives."""

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest: tuple[object, str, int, Command, bytes, bytes] = (None, "", 0, (), b"", b"")

    def call(self, resource: str, operation: Operation, t_max: int, life: bytes) -> "tuple[Command, bytes]":
        """The words are still without the life. Raises ``ValueError`` for what the script could not keep."""
        packed, place, limit, command, before, behind = self._latest  # in one step: other threads pack too
        if packed is not operation or place != resource or limit != t_max:
            command = call(resource, arguments(operation, t_max))
            before, _, behind = pack(command).partition(pack_word(LIFE))
            self._latest = operation, resource, t_max, command, before, behind
        return command, before + life + behind


# Replies

GRADES = {grade.value.encode(): grade for grade in Grade if grade is not Grade.FAILED}
ENDS = {grade.value.encode(): Answer(grade) for grade in (Grade.DONE, Grade.GONE)}
SMALLER = {b"0": False, b"1": True}


def _is_number(value: object) -> bool:
    return type(value) is int


def _is_bytes_or_nothing(value: object) -> bool:
    return value is None or type(value) is bytes


def answer(reply: "Any") -> tuple[Answer, int] | None:
    """And the server's time in microseconds. None: the script never says this."""
    try:
        words = reply.split(b" ", 7)
        grade, now = words[0], int(words[1]) * MICRO + int(words[2])
        if len(words) == 3:
            return ENDS[grade], now
        token, remaining = None if words[3] == b"-" else int(words[3]), int(words[4]) / MICRO
        if len(words) == 5:
            return Answer(GRADES[grade], token, remaining), now
        return _long_answer(GRADES[grade], token, remaining, *words[5:]), now
    except (AttributeError, TypeError, ValueError, LookupError, OverflowError):
        return None


def _long_answer(
    grade: Grade, token: int | None, remaining: float, smaller: bytes, evidence: bytes, ticket_and_entries: bytes
) -> Answer:
    ticket, end_of_line, entries = ticket_and_entries.partition(b"\n")
    middle = 0 if evidence == b"-" else int(evidence)
    end = middle if ticket == b"-" else middle + int(ticket)
    if not end_of_line or not 0 <= middle <= end == len(entries):
        raise ValueError
    proof = None if evidence == b"-" else entries[:middle]
    return Answer(grade, token, remaining, SMALLER[smaller], proof, None if ticket == b"-" else entries[middle:])


HANDED = b"\0"
"""What a hint that hands over begins with: no owner's name does."""


def handed(payload: bytes) -> Handed | None:
    """What a hint hands over. None: the script never says this."""
    try:
        head, _, rest = payload[1:].partition(b"\n")
        attempt, serial, beyond, grade, token, length, proof = head.split(b" ")
        owner, evidence = rest[: int(length)].decode(), rest[int(length) :] if proof == b"+" else None
        said = Answer(GRADES[grade], None if token == b"-" else int(token), evidence=evidence)
        return Handed(Claim(owner, int(attempt)), int(serial), int(beyond) / MICRO, said)
    except (ValueError, LookupError, OverflowError):
        return None


def item(reply: "Any") -> tuple[Versioned, int] | None:
    """Its times are seconds from the answer on. None: the script never says this."""
    if type(reply) is not list or len(reply) < 5 or reply[0] != b"item":
        return None
    now, token, evidence, holders = reply[1:5]
    if not (_is_number(now) and _is_number(token) and _is_bytes_or_nothing(evidence) and holders in (0, 1)):
        return None
    start = 5 + 6 * holders
    if len(reply) < start or (len(reply) - start) % 5:
        return None
    try:
        holder = _holder(reply[5:start], now) if holders else None
        waiters = tuple(_waiter(reply[at : at + 5], now) for at in range(start, len(reply), 5))
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None
    return Versioned(Item(token, holder, waiters, evidence), version=0), now


def _holder(fields: "list[Any]", now: int) -> Holder:
    owner, attempt, ends, ticket, token, entry = fields
    numbers = [attempt, ends, *(each for each in (ticket, token) if each is not None)]
    _check(numbers, entry)
    return Holder(Claim(owner.decode(), attempt), _remaining(ends, now), ticket, token, entry)


def _waiter(fields: "list[Any]", now: int) -> Waiter:
    owner, attempt, ends, ticket, entry = fields
    _check([attempt, ends, ticket], entry)
    return Waiter(Claim(owner.decode(), attempt), _remaining(ends, now), ticket, entry)


def _check(numbers: "list[Any]", entry: "Any") -> None:
    if not all(_is_number(each) for each in numbers) or not _is_bytes_or_nothing(entry):
        raise TypeError


def _remaining(ends: int, now: int) -> float:
    return max(ends - now, 0) / MICRO
