"""What travels between nodes: frozen structs, told apart by a tag, and the codec that puts them on a wire."""

from typing import Any, Generic, TypeVar, Union, dataclass_transform

import msgspec

from trinco.core.errors import DamagedData


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Message(msgspec.Struct, frozen=True, tag=str.lower, forbid_unknown_fields=True):
    """The base of every message: ``class Request(Message, tag="request"): timestamp: int``.

    Frozen, so that a message in flight is a value: two runtimes may keep it, hash it and send it again. Not a
    ``NamedTuple``: two of those with different classes and the same fields would be equal, and the checker interns
    by equality.
    """


def tag_of(message: Message) -> str:
    """The name of a message's kind, as it stands in traces, tables and on the wire."""
    tag = type(message).__struct_config__.tag
    return str(tag)


def kind_of(message: Any) -> str:
    """The same, also for what a trace file holds of a message."""
    if isinstance(message, Message):
        return tag_of(message)
    return str(message["type"]) if isinstance(message, dict) and "type" in message else ""


def describe(message: Any) -> str:
    """``request(timestamp=4)``: for timelines and errors; takes messages and what a trace file holds of them. A message
    with more in it than a line can show says by itself what it is, ``in_words``."""
    if hasattr(message, "in_words"):
        return str(message.in_words())
    if isinstance(message, Message):
        message = msgspec.to_builtins(message, enc_hook=repr, order="deterministic")
    if not isinstance(message, dict):
        return str(message)
    fields = {name: value for name, value in message.items() if name != "type"}
    if len(fields) == 1:
        return f"{message['type']}({next(iter(fields.values()))})"
    inner = ", ".join(f"{name}={value}" for name, value in fields.items())
    return f"{message['type']}({inner})" if inner else str(message["type"])


M = TypeVar("M", bound=Message)


class Codec(Generic[M]):
    """Bytes for the messages of one protocol, and back. Anything else is refused, never guessed at."""

    def __init__(self, *kinds: type[M]) -> None:
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode
        self._decode = msgspec.msgpack.Decoder(Union[kinds]).decode  # noqa: UP007 (built at run time)
        self._names = ", ".join(kind.__name__ for kind in kinds)

    def encode(self, message: M) -> bytes:
        return self._encode(message)

    def decode(self, data: bytes) -> M:
        try:
            message: M = self._decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DamagedData(f"these {len(data)} bytes are none of {self._names}: {error}") from error
        return message
