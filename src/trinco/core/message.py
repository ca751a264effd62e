"""What travels between nodes: frozen structs, told apart by a tag, and the codec that puts them on a wire."""

from typing import Annotated, Any, Generic, TypeAlias, TypeVar, Union, dataclass_transform, get_origin

import msgspec

from trinco.core.errors import DamagedData


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Message(msgspec.Struct, frozen=True, tag=str.lower, forbid_unknown_fields=True):
    """The base of every message: ``class Request(Message, tag="request"): timestamp: int``.

    Frozen, so that a message in flight is a value: two runtimes may keep it, hash it and send it again. Not a
    ``NamedTuple``: two of those with different classes and the same fields would be equal, and the checker interns
    by equality.
    """


Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number that a message may hold where less than nothing, or more than goes over a wire, makes no sense."""


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

_UNSOUND = (msgspec.MsgspecError, AttributeError, OverflowError, RecursionError, TypeError, ValueError)


class Codec(Generic[M]):
    """Bytes for the messages of one protocol, and back. Anything else is refused, never guessed at."""

    def __init__(self, *kinds: type[M], most_bytes: int | None = None) -> None:
        """``most_bytes``: what is longer is refused unread."""
        self.most_bytes = most_bytes
        self._kinds = tuple(get_origin(kind) or kind for kind in kinds)
        union: Any = Union[kinds]  # noqa: UP007 (built at run time)
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode
        self._decode = msgspec.msgpack.Decoder(union).decode
        self._write = msgspec.json.Encoder().encode
        self._read = msgspec.json.Decoder(union).decode
        self._names = ", ".join(kind.__name__ for kind in self._kinds)

    def encode(self, message: M) -> bytes:
        return self._encode(message)

    def decode(self, data: bytes) -> M:
        if self.most_bytes is not None and len(data) > self.most_bytes:
            raise DamagedData(f"{len(data)} bytes are more than any of {self._names} has: {self.most_bytes} at most")
        try:
            message: M = self._decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DamagedData(f"these {len(data)} bytes are none of {self._names}: {error}") from error
        return message

    def admit(self, message: Any) -> M | None:
        """The door of a handler: the message, if it is one of ours and its fields hold what their annotations say, all
        the way down; None otherwise. On a wire nothing else can come. Where nodes hand each other objects a liar can
        put anything anywhere, so what is let in is a copy, read from what was written."""
        if not isinstance(message, self._kinds):
            return None
        try:
            return self._copied(message)
        except _UNSOUND:
            return None

    def _copied(self, message: M) -> M:
        try:
            copy: M = self._decode(self._encode(message))
        except OverflowError:  # a set of more than 64 ids, perhaps: JSON has larger numbers
            copy = self._read(self._write(message))
        return copy
