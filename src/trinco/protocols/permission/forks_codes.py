"""The two bits of Campos & Carvalho 1988: what a client and an arbiter of forks can say to each other.

The paper has three kinds of messages each way, leaves one of the four codes unused, and yet counts a fork and a request
that are sent together as one message. The unused codes are that message.

Two bits are all there is on the wire. Which arbiter is meant, and whether it or the client speaks, need not be said:
two nodes share exactly one arbiter, and one of them runs it (see ``quorums.padding``).
"""

from enum import IntEnum
from typing import TypeVar

from trinco.core.errors import DamagedData
from trinco.core.message import Codec, Message


class ClientSays(IntEnum):
    REQUEST = 0
    DIRTY_FORK = 1
    CLEAN_FORK = 2
    """Of one who has not eaten: so it is a request too."""
    DIRTY_FORK_AND_REQUEST = 3


class ArbiterSays(IntEnum):
    REQUEST = 0
    STRONG_REQUEST = 1
    FORK = 2
    FORK_AND_REQUEST = 3


class ToArbiter(Message, tag="to-arbiter"):
    code: ClientSays

    def in_words(self) -> str:
        return _in_words(self.code)

    def apart(self) -> "tuple[ToArbiter, ...]":
        """What it takes where no message may ride on another."""
        if self.code is ClientSays.DIRTY_FORK_AND_REQUEST:
            return ToArbiter(ClientSays.DIRTY_FORK), ToArbiter(ClientSays.REQUEST)
        return (self,)


class ToClient(Message, tag="to-client"):
    code: ArbiterSays

    def in_words(self) -> str:
        return _in_words(self.code)

    def apart(self) -> "tuple[ToClient, ...]":
        if self.code is ArbiterSays.FORK_AND_REQUEST:
            return ToClient(ArbiterSays.FORK), ToClient(ArbiterSays.REQUEST)
        return (self,)


def _in_words(code: IntEnum) -> str:
    return code.name.lower().replace("_", " ")


M = TypeVar("M", ToArbiter, ToClient)


class TwoBits(Codec[M]):
    """For one direction. A byte is the least that a wire takes: six of its bits are always 0."""

    def __init__(self, kind: type[M]) -> None:
        Codec.__init__(self, kind)
        self._messages: dict[bytes, M] = {bytes([code]): kind(code) for code in _CODES[kind]}  # type: ignore[arg-type]

    def encode(self, message: M) -> bytes:
        return bytes([message.code])

    def decode(self, data: bytes) -> M:
        if data not in self._messages:
            raise DamagedData(f"these {len(data)} bytes are none of the codes 0 to 3")
        return self._messages[data]


_CODES: dict[type, type[IntEnum]] = {ToArbiter: ClientSays, ToClient: ArbiterSays}
