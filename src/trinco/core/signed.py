"""Symbolic signatures: unforgeable by a local rule.

``ctx.sign(body)`` makes a :class:`Signed` with the caller's own id; nothing else may. After each handler run the
runtime compares: every signature *of somebody else* in the node's new state or in the messages it sent must have been
in its old state or in the message it handled. So a liar can replay, withhold and pass on, but never invent, and what
it has learnt is an ordinary field of its class. What was vouched for to some readers (``core.authentication``) is
bound by the same rule: nobody can add a reader.
"""

import dataclasses
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Generic

import msgspec

from trinco.core.errors import ContractBroken
from trinco.core.ids import Ids
from trinco.core.snapshot import parts_of_value

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Content = TypeVar("Content", default=Any)
else:
    from typing import TypeVar

    Content = TypeVar("Content")


class Signed(msgspec.Struct, Generic[Content], frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A body and who vouches for it. Made by ``ctx.sign`` or ``ctx.vouch``, read through ``ctx.verify``. A message that
    says what must be signed, ``Signed[Ticket]``, is decoded with nothing else in that place."""

    signer: int
    body: Content
    readers: tuple[int, ...] = ()
    """To whom it was vouched for, smallest first: nobody else can verify it. Nobody: it is a signature, and all can."""
    proofs: tuple[bytes, ...] = ()
    """Of real keys: the signature; or a MAC for each reader."""


_ATOMS = frozenset({int, float, bool, str, bytes, type(None), type})


@cache
def _cannot_sign(kind: type) -> bool:
    """Whether values of this class have no room for a signature: atoms, and structs and dataclasses of atoms."""
    if kind in _ATOMS or kind is Ids:
        return True
    if dataclasses.is_dataclass(kind):
        return all(_is_atom(field.type) for field in dataclasses.fields(kind))
    return issubclass(kind, msgspec.Struct) and all(_is_atom(field.type) for field in msgspec.structs.fields(kind))


def _is_atom(annotation: Any) -> bool:
    """What is ``Annotated`` is what it would be without that."""
    return annotation in _ATOMS or getattr(annotation, "__origin__", None) in _ATOMS


def signatures_in(value: Any) -> frozenset[Signed]:
    """Every signature inside a value of the contract: messages, parts, tuples, sets, and signatures in signatures."""
    found: set[Signed] = set()
    unseen = [value]
    while unseen:
        each = unseen.pop()
        if not _cannot_sign(each.__class__):
            if isinstance(each, Signed):
                found.add(each)
            unseen.extend(_parts_of(each))
    return frozenset(found)


def _parts_of(value: Any) -> Iterable[Any]:
    if isinstance(value, (tuple, list, frozenset, set)):
        return value
    return [getattr(value, name) for name in parts_of_value(value.__class__)]


def forbid_forgery(me: int, known: Iterable[Any], made: Iterable[Any]) -> None:
    """Raise unless every foreign signature in ``made`` was already in ``known``."""
    foreign = frozenset(signed for signed in signatures_in(tuple(made)) if signed.signer != me)
    forged = foreign - signatures_in(tuple(known)) if foreign else foreign
    if forged:
        culprit = min(forged, key=repr)
        raise ContractBroken(f"p{me} forged {culprit}: it was never shown this signature of p{culprit.signer}")
