"""The reader of Redis's language, against the vendor's own and against servers that want to hurt."""

import time
import tracemalloc
from typing import Any

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.stores.resp import ProtocolBroken, Push, Reader, ReplyError

LEAVES = st.one_of(
    st.integers(-(2**62), 2**62).map(lambda number: b":%d\r\n" % number),
    st.binary(max_size=40).map(lambda text: b"$%d\r\n%s\r\n" % (len(text), text)),
    st.sampled_from([b"+OK\r\n", b"_\r\n", b"$-1\r\n", b"*-1\r\n", b"*0\r\n", b"%0\r\n", b"$0\r\n\r\n"]),
)


def aggregates(parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.lists(parts, min_size=1, max_size=5).map(lambda each: b"*%d\r\n" % len(each) + b"".join(each))


REPLIES = st.lists(st.recursive(LEAVES, aggregates, max_leaves=12), min_size=1, max_size=6)


def vendors(data: bytes) -> list[Any]:
    reader = hiredis.Reader(notEnoughData=Ellipsis)
    reader.feed(data)
    return list(iter(reader.gets, Ellipsis))


def flat(value: Any) -> Any:
    """The vendor makes dictionaries of maps."""
    return [] if value == {} else [flat(each) for each in value] if isinstance(value, list) else value


@given(REPLIES, st.data())
def test_it_reads_what_the_vendors_reader_reads_however_it_is_cut(replies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(replies)
    reader, read, position = Reader(), [], 0
    while position < len(stream):
        size = data.draw(st.integers(1, len(stream)))
        read += reader.feed(stream[position : position + size])
        position += size
    assert read == flat(vendors(stream))


def test_errors_pushes_maps_and_the_other_kinds() -> None:
    some = b"-WRONGPASS no\r\n>2\r\n$1\r\na\r\n:1\r\n"
    more = b"%1\r\n+k\r\n+v\r\n#t\r\n,1.5\r\n(12345678901234567890\r\n=6\r\ntxt:hi\r\n"
    error, push, *others = Reader().feed(some + more)
    assert error == ReplyError("WRONGPASS no")
    assert error.code == "WRONGPASS"
    assert (type(push), push) == (Push, [b"a", 1])
    assert others == [[b"k", b"v"], True, 1.5, 12345678901234567890, b"hi"]


@pytest.mark.parametrize(
    "stream",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"$5\r\nabcdefghij",
        b"$x\r\n",
        b":12a\r\n",
        b"*?\r\n",
        b"*1\r\n" * 9,
        b":" + b"9" * 5000 + b"\r\n",
        b"+" + b"x" * 70_000,
        b"+" + b"x" * 70_000 + b"\r\n",
        b"#maybe\r\n",
        b"$2000000\r\n",
        b"\r\n",
    ],
)
def test_what_is_no_reply_is_refused(stream: bytes) -> None:
    with pytest.raises(ProtocolBroken):
        Reader().feed(stream)


@pytest.mark.parametrize("header", [b">400000000\r\n", b"*4000000000\r\n", b"%400000000\r\n", b"~400000000\r\n" * 8])
def test_a_promise_of_much_costs_nothing(header: bytes) -> None:
    tracemalloc.start()
    start = time.monotonic()
    assert Reader().feed(header) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    assert time.monotonic() - start < 1


def test_a_reply_of_many_small_parts_ends_at_the_limit_too() -> None:
    reader = Reader(limit=10_000)
    reader.feed(b"*1000000\r\n")
    for _ in range(24):
        assert reader.feed(b":1\r\n" * 100) == []
    with pytest.raises(ProtocolBroken, match="longer than"):
        reader.feed(b":1\r\n" * 100)


def test_many_small_replies_are_no_large_one() -> None:
    reader = Reader(limit=10_000)
    assert sum(len(reader.feed(b"+OK\r\n" * 1000 + b"+O")) + len(reader.feed(b"K\r\n")) for _ in range(20)) == 20 * 1001
