"""What travels between a client and a store in the lab: accesses and replies, tagged with the claim they are for."""

from typing import Any

from trinco.core.message import Message
from trinco.leases import accesses
from trinco.leases.claim import Claim
from trinco.leases.operation import Answer, Handed
from trinco.leases.row import Row

INCARNATION = 1_000_000
"""Owners are numbers: a client's own, plus so much for each time it came back. Sessions, too: plus so much for each
access that was given up, since what is still under way must not get into what comes next."""


class Access(Message, tag="access"):
    claim: Claim
    access: Any
    quiet: bool = False
    """No reply is wanted."""
    epoch: int = 0

    def in_words(self) -> str:
        access = self.access
        what = access.operation if isinstance(access, accesses.Apply) else access
        return f"{_spaced(type(what).__name__)} #{self.claim.attempt}"


class Reply(Message, tag="reply"):
    claim: Claim
    reply: Any
    epoch: int = 0

    def in_words(self) -> str:
        return f"{_answer(self.reply)} #{self.claim.attempt}"


class Told(Message, tag="told"):
    """What a store says without being asked: ``Handed``, or the claim that it wakes."""

    said: Any

    def in_words(self) -> str:
        if isinstance(self.said, Handed):
            return f"handed over, {_answer(self.said.answer)} #{self.said.claim.attempt}"
        return f"wake up #{self.said.attempt}"


def _answer(reply: Any) -> str:
    match reply:
        case Answer(grade=grade, token=None):
            return str(grade.value)
        case Answer(grade=grade, token=token):
            return f"{grade.value} token {token}"
        case accesses.Listing(rows=rows):
            shown = (row.named for row in rows[:3] if isinstance(row, Row))
            owners = ", ".join(f"{named.kind.value} by p{named.claim.owner}" for named in shown)
            return f"{len(rows)} listed ({owners})" if rows else "nothing listed"
        case accesses.Versioned(item=item, version=version):
            holder = item.holder
            return f"version {version}, " + (f"held by p{holder.claim.owner}" if holder else "free")
        case accesses.Written(ok=ok):
            return "written" if ok else "not written"
        case _:
            return _spaced(type(reply).__name__)


def _spaced(name: str) -> str:
    """CompareAndSet -> compare and set"""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
