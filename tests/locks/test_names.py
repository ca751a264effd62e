"""What a lock is called: its characters, whatever object says them."""

from enum import Enum
from typing import Any

import pytest

import trinco
from tests.locks.services import one_store, take
from tests.stores.servers import RedisServer
from trinco.locks.names import require_client, require_name, require_prefix
from trinco.locks.options import require_metadata
from trinco.stores.memory import MemoryStore


class Named(str, Enum):  # noqa: UP042 (a StrEnum is written as its text; this one is not)
    GPU = "gpu"


class Masked(str):
    """Text that says something else whenever it is asked."""

    __slots__ = ()

    def __str__(self) -> str:
        return "mask"

    def __format__(self, specification: str) -> str:
        return "mask"

    def __len__(self) -> int:
        return 1


GPUS = [Named.GPU, Masked("gpu")]


@pytest.mark.parametrize("require", [require_name, require_client, require_prefix, require_metadata])
@pytest.mark.parametrize("given", GPUS, ids=["enum", "own methods"])
def test_of_any_kind_of_text_only_the_characters_count(require: Any, given: str) -> None:
    plain = require(given)
    assert type(plain) is str
    assert plain == "gpu"


def test_plain_text_is_handed_on_as_it_is() -> None:
    name = "gpu"
    assert require_name(name) is name


@pytest.mark.parametrize("name", [Masked("x" * 201), Masked("")], ids=["long", "empty"])
def test_a_name_is_as_long_as_its_characters(name: str) -> None:
    with pytest.raises(trinco.UsageError, match="name"):
        require_name(name)


@pytest.mark.parametrize("name", GPUS, ids=["enum", "own methods"])
def test_a_semaphore_named_by_an_enum_is_the_one_of_that_text(name: str) -> None:
    store = MemoryStore("one")
    with one_store(store) as ana, one_store(store) as bruno:
        take(ana.semaphore(name, 1))
        assert bruno.semaphore("gpu", 1).try_acquire() is None
        assert [info.name for info in bruno.list()] == ["gpu[0]"]


@pytest.mark.parametrize("word", GPUS, ids=["enum", "own methods"])
def test_who_holds_and_why_is_told_in_the_characters_given(word: str) -> None:
    with one_store(client=word) as ana:
        take(ana.lock("door", metadata=word))
        info = ana.inspect("door")
        assert info.metadata == "gpu"
        assert str(info.owner).startswith("gpu")


@pytest.mark.parametrize("name", GPUS, ids=["enum", "own methods"])
def test_a_lock_named_by_an_enum_is_the_one_of_that_text(name: str, redis_server: RedisServer) -> None:
    with trinco.connect(redis_server.url) as ana, trinco.connect(redis_server.url) as bruno:
        with take(ana.lock(name)):
            assert bruno.lock("gpu").try_acquire() is None
            assert bruno.inspect(name).held
        assert ana.lock(name).name == ana.semaphore(name, 2).name == "gpu"
        assert type(ana.lock(name).name) is type(ana.semaphore(name, 2).name) is str
        take(bruno.lock("gpu"))
        assert [info.held for info in ana.list(Masked("gp")) if info.name == "gpu"] == [True]
        assert ana.break_(name)
