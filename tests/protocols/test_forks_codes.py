"""Two bits: "a não utilização de timestamps permite reduzir a dois bits o tamanho das mensagens trocadas"."""

from collections import defaultdict

import pytest

from trinco.core.errors import DamagedData
from trinco.core.event import Event, Kind
from trinco.core.message import describe
from trinco.protocols.permission.campos_carvalho import Forks
from trinco.protocols.permission.forks_codes import ArbiterSays, ClientSays, ToArbiter, ToClient, TwoBits
from trinco.sim.laws import Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Closed

CODECS = {ToArbiter: TwoBits(ToArbiter), ToClient: TwoBits(ToClient)}
both_ways = pytest.mark.parametrize(("kind", "codes"), [(ToArbiter, ClientSays), (ToClient, ArbiterSays)])


def sent(n: int, think: float = 0.0, **settings: bool) -> list[Event]:
    """What goes over the network in a run with wide delays."""
    build = Forks(**settings)
    scenario = Scenario(
        protocol="campos-carvalho",
        build=build,
        claims=build.claims,
        n=n,
        workload=Closed(6 * n, think=Exponential(think)),
        links=Links(Uniform(0.01, 20.0)),
    )
    recording = run(scenario).recording
    assert recording is not None
    events = recording.events_without_clocks()
    return [event for event in events if event.kind is Kind.SEND and event.peer != event.node]


@both_ways
def test_there_are_four_codes_each_way_and_each_comes_back_as_it_was(kind: type, codes: type) -> None:
    codec = CODECS[kind]
    data = [codec.encode(kind(code)) for code in codes]
    assert data == [b"\x00", b"\x01", b"\x02", b"\x03"]
    assert [codec.decode(each) for each in data] == [kind(code) for code in codes]


@both_ways
@pytest.mark.parametrize("data", [b"", b"\x04", b"\xff", b"\x00\x00"])
def test_what_is_not_two_bits_is_refused(kind: type, codes: type, data: bytes) -> None:
    with pytest.raises(DamagedData, match="none of the codes 0 to 3"):
        CODECS[kind].decode(data)


def test_two_bits_say_all_of_every_message_and_all_four_codes_are_used_each_way() -> None:
    used = defaultdict(set)
    for think in (0.0, 30.0):
        for event in sent(13, think):
            data = CODECS[type(event.message)].encode(event.message)
            assert len(data) == 1
            assert data[0] < 4
            assert CODECS[type(event.message)].decode(data) == event.message
            used[type(event.message)].add(data[0])
    assert used == {ToArbiter: {0, 1, 2, 3}, ToClient: {0, 1, 2, 3}}


def test_without_piggy_backing_the_spare_code_stays_spare_as_in_the_print() -> None:
    codes = {(type(event.message), event.message.code) for event in sent(13, 30.0, piggy_back=False)}
    assert (ToArbiter, ClientSays.DIRTY_FORK_AND_REQUEST) not in codes
    assert (ToClient, ArbiterSays.FORK_AND_REQUEST) not in codes
    assert len(codes) == 6


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 13, 20, 32, 40, 57, 60])
def test_between_two_nodes_one_is_always_the_client_so_the_direction_need_not_be_said(n: int) -> None:
    """Also where nodes run arbiters of fictitious ones."""
    kinds = defaultdict(set)
    for event in sent(n):
        kinds[event.node, event.peer].add(type(event.message))
    for (source, to), spoken in kinds.items():
        assert len(spoken) == 1
        assert spoken.isdisjoint(kinds.get((to, source), ()))


def test_a_trace_says_in_words_what_the_code_means() -> None:
    assert describe(ToArbiter(ClientSays.DIRTY_FORK_AND_REQUEST)) == "dirty fork and request"
    assert describe(ToClient(ArbiterSays.STRONG_REQUEST)) == "strong request"
