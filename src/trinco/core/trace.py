"""A trace: what happened, one event a line, the same from the simulator, the checker and real nodes.

The first line is a header, every other line an event (see ``core.event``) as a JSON object, in an order that respects
causality. While a run goes on it is only *recorded*, as cheaply as possible; vector clocks and changed fields are
worked out afterwards, from causes and snapshots. The hash is over the lines, so it is the same wherever they are made.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from trinco.core.errors import DamagedData
from trinco.core.event import Event, Kind
from trinco.core.ids import members
from trinco.core.instant import Instant
from trinco.core.snapshot import field_names, parts_of_value, set_fields
from trinco.core.value import Value

FORMAT = "trinco-trace-1"
MOST_NODES = 1_000_000
LONGEST_LINE = 2**26
"""Bytes, ten times what so many nodes need: some files have no lines, and no end either."""
_UNSEEN = object()


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a reader must know before the first event. ``roles`` has the class of each node."""

    format: str
    protocol: str
    n: int
    k: int = 1
    roles: tuple[str, ...] = ()
    runtime: str = "simulator"
    seed: int | None = None
    finished: bool = True
    """False where the run was cut off: whoever still waits then proves nothing."""
    within_claims: bool = True
    """False where faults beyond the protocol's claims were let loose."""
    letters: dict[str, float] = {}
    """What the letters in the claims' formulas stand for, other than n and k."""
    byzantine: tuple[int, ...] = ()
    """Who lies: what those believe proves nothing."""
    settings: tuple[str, ...] = ()
    """What was set about the protocol, as ``--set`` takes it."""
    violation: str | None = None
    """What the checker found that this run shows, its kind first: ``deadlock: p0 waits and nothing can move``. That
    nothing can ever move is not to be seen in one run."""
    events: int | None = None
    """In a file, how many lines follow: one that lost some at its end would look whole."""


class Record(NamedTuple):
    """An event as it is recorded. ``cause`` is the position of another record; ``fields`` is all of the node's state
    after the step, or None for what is not a step."""

    at: float
    node: int
    kind: Kind
    peer: int | None = None
    message: Any = None
    cause: int | None = None
    note: str | None = None
    token: Any = None
    fields: tuple[Any, ...] | None = None


class VectorClocks:
    """Works out vector clocks from records and their causes.

    What a message carries is kept from its send to its last receive. The sends of one step differ only in their
    sender's own count, so they share one vector: a broadcast to a thousand keeps one, and not a thousand.
    """

    def __init__(self, width: int, receives: Mapping[int | None, int]) -> None:
        """``receives``: how often what a record sent is received, twice if it was duplicated, never if it was lost."""
        self._receives = dict(receives)
        self._clocks = [[0] * width for _ in range(width)]
        self._shared: list[tuple[int, ...] | None] = [None] * width
        """Per node: its vector as of its last receive, once a send has needed it."""
        self._sent: dict[int, tuple[tuple[int, ...], int]] = {}
        """Per send under way: the shared vector and the sender's own count."""

    def tick(self, number: int, node: int, kind: Kind, cause: int | None) -> tuple[int, ...]:
        """The clock of the next record."""
        clock = self._clocks[node]
        if kind is Kind.RECEIVE and cause in self._sent:
            vector, count = self._sent[cause]
            self._receives[cause] -= 1
            if not self._receives[cause]:
                del self._sent[cause]
            sender = vector.index(-1)
            self._clocks[node] = clock = list(map(max, clock, vector))
            clock[sender] = max(clock[sender], count)
            self._shared[node] = None
        clock[node] += 1
        if kind in (Kind.SEND, Kind.CRASH) and number in self._receives:
            self._sent[number] = self._vector(node), clock[node]
        return tuple(clock)

    def _vector(self, node: int) -> tuple[int, ...]:
        """Shared by all sends since the last receive; -1 stands where each of them has its own count."""
        shared = self._shared[node]
        if shared is None:
            clock = list(self._clocks[node])
            clock[node] = -1
            shared = self._shared[node] = tuple(clock)
        return shared


class Recording:
    """Records in the making. Runtimes append straight to ``records``; the simulator appends plain tuples, in the order
    of :class:`Record`, which is what keeps tracing cheap."""

    def __init__(self, header: Header, kinds: Sequence[type]) -> None:
        self.header = header
        self.records: list[tuple[Any, ...]] = []
        self._names = [field_names(kind) for kind in kinds]
        self._sets = [set_fields(kind) for kind in kinds]

    def events(self) -> Iterator[Event]:
        """The events with their vector clocks and the fields that changed."""
        receives = Counter(cause for _, _, kind, _, _, cause, *_ in self.records if kind is Kind.RECEIVE)
        return self._told(VectorClocks(self.header.n, receives))

    def events_without_clocks(self) -> Iterator[Event]:
        """The same, much quicker for many nodes, where nobody looks at the clocks."""
        return self._told(None)

    def _told(self, clocks: "VectorClocks | None") -> Iterator[Event]:
        counts = [0] * self.header.n
        positions: list[tuple[int, int]] = []
        last: list[tuple[Any, ...]] = [()] * self.header.n
        for number, record in enumerate(self.records):
            at, node, kind, peer, message, cause, note, token, fields = record
            counts[node] += 1
            positions.append((node, counts[node]))
            clock = clocks.tick(number, node, kind, cause) if clocks else ()
            changed: dict[str, Any] = {}
            if fields is not None:
                changed, last[node] = self._changed(node, last[node], fields), fields
            whence = None if cause is None else positions[cause]
            yield Event(at, node, kind, peer, message, note, token, whence, clock, changed)

    def _changed(self, node: int, before: tuple[Any, ...], after: tuple[Any, ...]) -> dict[str, Any]:
        names, sets = self._names[node], self._sets[node]
        before = before or (_UNSEEN,) * len(after)
        return {
            name: list(members(new)) if name in sets else new
            for name, old, new in zip(names, before, after, strict=True)
            if old != new
        }

    def finish(self, finished: bool) -> None:
        """Say in the header whether the run was let end by itself."""
        self.header = msgspec.structs.replace(self.header, finished=finished)

    def lines(self) -> Iterator[bytes]:
        """What a file has. Its header says how many follow, so that a file that was cut off is known for one."""
        return lines(msgspec.structs.replace(self.header, events=len(self.records)), self.events())

    def hash(self) -> str:
        """SHA-256 over the lines."""
        digest = hashlib.sha256()
        for line in self.lines():
            digest.update(line)
        return digest.hexdigest()

    def write(self, path: Path) -> None:
        with path.open("wb") as file:
            file.writelines(self.lines())


def _encodable(value: Any) -> Any:
    """For what JSON has no word for."""
    if isinstance(value, Instant):
        return value.at
    if isinstance(value, type):
        return value.__name__
    names = parts_of_value(value.__class__)
    if getattr(value, "is_secret", False):
        return repr(value)
    if isinstance(value, Value):
        return {"is": value.__class__.__name__} | {name: getattr(value, name) for name in names}
    if names:
        return {name: getattr(value, name) for name in names}
    raise NotImplementedError(f"a trace cannot hold {value!r}")


_encode = msgspec.json.Encoder(enc_hook=_encodable, order="deterministic").encode


def lines(header: Header, events: Iterable[Event]) -> Iterator[bytes]:
    yield _encode(header) + b"\n"
    for event in events:
        yield _line(event) + b"\n"


def _line(event: Event) -> bytes:
    try:
        return _encode(event)
    except TypeError:  # a set whose members have no order of their own
        plain = msgspec.structs.replace(event, message=_in_order(event.message), state=_in_order(event.state))
        return _encode(plain)


def _in_order(value: Any) -> Any:
    """The same value with every set as a list, ordered by how its members are written."""
    if isinstance(value, frozenset | set):
        return sorted(map(_in_order, value), key=_encode)
    if isinstance(value, tuple | list):
        return [_in_order(each) for each in value]
    if isinstance(value, dict):
        return {name: _in_order(each) for name, each in value.items()}
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        fields = {name: _in_order(getattr(value, name)) for name in value.__struct_fields__}
        return fields if tag is None else {"type": tag, **fields}
    return value


def read(path: Path) -> tuple[Header, list[Event]]:
    """A trace from a file. Whatever is wrong with it is told with the number of the line."""
    try:
        with path.open("rb") as file:
            return _read(path, file)
    except OSError as error:
        raise DamagedData(f"{path}: cannot be read: {error.strerror}") from error


def _read(path: Path, file: BinaryIO) -> tuple[Header, list[Event]]:
    lines = iter(lambda: file.readline(LONGEST_LINE), b"")
    header = _header(path, next(lines, b""))
    decode = msgspec.json.Decoder(Event).decode
    events: list[Event] = []
    counts = [0] * header.n
    for number, line in enumerate(lines, start=2):
        if len(line) == LONGEST_LINE:
            raise DamagedData(f"{path}: line {number} has no end: no line of a trace is so long")
        if not line.endswith(b"\n"):
            raise DamagedData(f"{path}: line {number} is cut off; was the writer stopped half-way?")
        try:
            event = decode(line)
            _check(event, counts)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, DamagedData) as error:
            raise DamagedData(f"{path}: line {number} is damaged: {error}") from error
        events.append(event)
    if header.events not in (None, len(events)):
        raise DamagedData(f"{path}: it should have {header.events:,} events and has {len(events):,}; was it cut off?")
    return msgspec.structs.replace(header, events=None), events


def _header(path: Path, line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedData(f"{path}: line 1 is not the header of a trace: {error}") from error
    if header.format != FORMAT:
        raise DamagedData(f"{path}: line 1 says format '{header.format}'; this version reads '{FORMAT}'")
    if not 1 <= header.n <= MOST_NODES:
        raise DamagedData(f"{path}: line 1 says there are {header.n} nodes; a trace has 1 to {MOST_NODES:,}")
    return header


def _check(event: Event, counts: list[int]) -> None:
    """Every event must be the next one of its node, and its cause must have come before it."""
    if not 0 <= event.node < len(counts):
        raise DamagedData(f"there is no node {event.node}")
    counts[event.node] += 1
    if len(event.clock) != len(counts) or event.clock[event.node] != counts[event.node]:
        raise DamagedData(
            f"it should be event {counts[event.node]} of p{event.node}: lines are missing or out of order"
        )
    if event.peer is not None and not 0 <= event.peer < len(counts):
        raise DamagedData(f"there is no node {event.peer}, its peer")
    if isinstance(event.token, dict) and isinstance(event.token.get("slot"), dict | list):
        raise DamagedData("its token is of a unit that has no name")
    if isinstance(event.message, dict) and not isinstance(event.message.get("type"), str):
        raise DamagedData("its message does not say of what type it is")
    if event.cause is not None:
        node, count = event.cause
        happened = 0 <= node < len(counts) and 0 < count <= counts[node]
        if not happened or (node, count) == (event.node, counts[event.node]):
            raise DamagedData(f"its cause, event {count} of p{node}, has not happened yet")
