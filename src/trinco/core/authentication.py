"""How a runtime signs and verifies for a node: one interface, symbols in the lab and keys on a network.

``sign(body)`` makes a statement that anybody can verify, and show to others. ``vouch(body, readers)`` makes one for
those readers only: a vector of MACs, one for each, much cheaper, and each reader can tell whether it is genuine *for
itself*. A liar can make a vector that some of its readers believe and others do not, so a vector that is invalid proves
nothing against whoever shows it, and what has to convince a third party is signed.

``Symbolic`` statements have no bytes: nobody can forge them by the rule of ``core.signed``. ``Keyed`` ones are bytes
that a key has made. Both are read through ``verify``, which takes anything and never raises.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from trinco.core.errors import ContractBroken, KeysMissing
from trinco.core.signed import Signed


class Authenticator:
    """What ``ctx.sign``, ``ctx.vouch`` and ``ctx.verify`` do, for one node."""

    __slots__ = ()

    def sign(self, body: Any) -> Signed:
        raise NotImplementedError

    def vouch(self, body: Any, readers: Iterable[int]) -> Signed:
        raise NotImplementedError

    def verify(self, signed: Any) -> bool:
        raise NotImplementedError


class Symbolic(Authenticator):
    """Of the simulator and the checker. Whatever carries a signature is genuine, to those it was made for."""

    __slots__ = ("me",)

    def __init__(self, me: int) -> None:
        self.me = me

    def sign(self, body: Any) -> Signed:
        return Signed(self.me, body)

    def vouch(self, body: Any, readers: Iterable[int]) -> Signed:
        return Signed(self.me, body, tuple(sorted(readers)))

    def verify(self, signed: Any) -> bool:
        return isinstance(signed, Signed) and (not signed.readers or self.me in signed.readers)


class SigningKey(Protocol):
    def sign(self, message: bytes, /) -> bytes: ...


class VerifyingKey(Protocol):
    def verify(self, message: bytes, signature: bytes, /) -> bool: ...


class SharedKey(SigningKey, VerifyingKey, Protocol):
    """What two nodes share: each can make what the other verifies."""


REMEMBERED = 4096
"""Signatures that were found genuine. The same ones come back inside certificates, and verifying is what costs."""


class Keyed(Authenticator):
    """Of nodes on a network: ``own`` signs, ``public`` are the keys of all who sign, by node, and ``shared`` those with
    everybody one vouches for or is vouched for by, oneself included. See ``trinco.leases.keys`` for such keys."""

    __slots__ = ("_genuine", "_own", "_public", "_shared", "me")

    def __init__(
        self,
        me: int,
        own: SigningKey,
        public: Mapping[int, VerifyingKey],
        shared: Mapping[int, SharedKey] | None = None,
    ) -> None:
        self.me = me
        self._own = own
        self._public = public
        self._shared = shared or {}
        self._genuine: dict[tuple[bytes, bytes], None] = {}

    def sign(self, body: Any) -> Signed:
        statement = _statement(self.me, None, body)
        proof = self._own.sign(statement)
        self._remember(statement, proof)
        return Signed(self.me, body, (), (proof,))

    def vouch(self, body: Any, readers: Iterable[int]) -> Signed:
        to = tuple(sorted(readers))
        return Signed(self.me, body, to, tuple(self._mac(reader, body) for reader in to))

    def _mac(self, reader: int, body: Any) -> bytes:
        if reader not in self._shared:
            raise KeysMissing(f"p{self.me} shares no key with p{reader}, and so cannot vouch for anything to it")
        return self._shared[reader].sign(_statement(self.me, reader, body))

    def verify(self, signed: Any) -> bool:
        if not isinstance(signed, Signed) or not _is_well_formed(signed):
            return False
        try:
            return self._is_mine(signed) if signed.readers else self._is_signature(signed)
        except _CANNOT_BE_SIGNED:
            return False

    def _is_signature(self, signed: Signed) -> bool:
        statement, (proof,) = _statement(signed.signer, None, signed.body), signed.proofs
        if (statement, proof) in self._genuine:
            return True
        key = self._public.get(signed.signer)
        genuine = key is not None and key.verify(statement, proof)
        if genuine:
            self._remember(statement, proof)
        return genuine

    def _is_mine(self, signed: Signed) -> bool:
        """MACs cost no more than looking them up."""
        key = self._shared.get(signed.signer)
        if key is None or self.me not in signed.readers:
            return False
        proof = signed.proofs[signed.readers.index(self.me)]
        return key.verify(_statement(signed.signer, self.me, signed.body), proof)

    def _remember(self, statement: bytes, proof: bytes) -> None:
        if len(self._genuine) == REMEMBERED:
            del self._genuine[next(iter(self._genuine))]
        self._genuine[statement, proof] = None


_CANNOT_BE_SIGNED = (ContractBroken, msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


def _statement(signer: int, reader: int | None, body: Any) -> bytes:
    """The bytes that a proof is over. Signer and reader are in them: two nodes share one key, and what one has told
    the other must not look like the reverse. The body's tag comes before its fields, so that no body can be taken for
    another kind's."""
    if not isinstance(body, msgspec.Struct) or body.__struct_config__.tag is None:
        raise ContractBroken(f"{body!r:.80} has no tag: a signature under it could be used for something else")
    return _encode(("trinco", signer, reader)) + _encode(body)


def _is_well_formed(signed: Signed) -> bool:
    """As many proofs as there should be, and bytes."""
    if type(signed.signer) is not int or type(signed.readers) is not tuple or type(signed.proofs) is not tuple:
        return False
    proofs_needed = len(signed.readers) or 1
    return len(signed.proofs) == proofs_needed and all(type(proof) is bytes for proof in signed.proofs)
