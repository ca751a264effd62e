"""The Redis store where things go wrong: servers that forget, refuse, lie, or are none."""

import math
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stores.binaries import redis_binary
from tests.stores.redis_caller import ADDRESS, LIMIT_S, Caller, Servers, close_callers, mine, vendor
from tests.stores.redis_fakes import FakeServer, Speaker, TlsFront
from tests.stores.servers import RedisServer
from trinco.core.errors import Denial, StoreForbidden, StoreUnavailable
from trinco.leases.accesses import Apply, Read
from trinco.leases.operation import NEXT, Answer, Commit, Extend, Grade, Operation, Release, Request
from trinco.stores.redis import RedisStore
from trinco.stores.redis_epoch import Standing, recovery
from trinco.stores.resp import UNSENT_LIMIT, Wire, pack
from trinco.stores.store import Failed, StaysOut

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _callers_are_closed() -> Iterator[None]:
    yield
    close_callers()


# A server that forgets


@pytest.mark.parametrize(
    ("epoch", "fresh", "uptime", "stays_out"),
    [
        (b"this 60000000", False, 0, 0),
        (b"this 60000000", True, 0, 0),
        (b"this 2000000", False, 3, 58),
        (b"this 2000000", True, 3, 58),
        (b"this 2000000", False, 61, 0),
        (b"this", False, 0, 60),
        (None, True, 0, 0),
        (None, False, 0, 60),
        (None, False, 3, 58),
        (None, False, 60, 1),
        (None, False, 61, 0),
        (b"other 60000000", False, 3, 60),
        (b"other 60000000", True, 3, 60),
        (b"other 60000000", False, 4000, 60),
    ],
)
def test_how_long_a_server_stays_out(epoch: bytes | None, fresh: bool, uptime: int, stays_out: float) -> None:
    """Its uptime may be a second shorter than it says."""
    out = recovery(60, fresh, Standing(b"this", uptime, epoch), now=1000.0)
    assert (0 if out is None else out.until - 1000) == stays_out


@pytest.mark.parametrize(
    ("life", "epoch", "seen", "stays_out"),
    [
        (b"this", b"other 60000000", b"this 470000000", 30),
        (b"this", b"other 60000000", b"this 440000000", 0),
        (b"this", b"other 60000000", b"other 440000000", 60),
        (b"this", b"other 60000000", b"this 500000001", 60),
        (b"this", b"other 60000000", b"this", 60),
        (b"this", b"other 60000000", b"", 60),
        (b"this", b"this 2000000", b"this 470000000", 30),
        (b"this:a", b"other 60000000", b"this:a 470000000", 30),
        (b"this:a", b"this 60000000", None, 60),
        (b"this:b", b"this:a 60000000", b"this:a 440000000", 60),
        (b"this:a", b"this:a 2000000", None, 60),
        (b"this:a", b"this:a 2000000", b"this:a 470000000", 30),
        (b"this:a", b"this:a 60000000", None, 0),
        (b"this", b"this:a 60000000", None, 0),
        (b"this:a", None, None, 60),
        (b"this:a", None, b"this:a 470000000", 30),
        (b"this", None, b"this 470000000", 0),
    ],
)
def test_who_sees_a_server_counts_from_when_it_was_first_seen(
    life: bytes, epoch: bytes | None, seen: bytes | None, stays_out: float
) -> None:
    """It is up for long, and its clock says 500. Behind the colon: what it took over when it was promoted."""
    out = recovery(60, fresh=False, standing=Standing(life, 4000, epoch, seen, time=500.0), now=1000.0)
    assert (0 if out is None else out.until - 1000) == stays_out


def test_clients_that_live_for_a_moment_get_in_when_those_before_them_have_waited(redis_servers: Servers) -> None:
    server = redis_servers("--appendonly", "yes", "--appendfsync", "always", options="fresh=1&t_max=2s")
    held(server)
    server.restart()
    start = time.monotonic()

    def is_let_in() -> bool:
        caller = Caller(server.url)
        answer = caller.ask("y", Request(mine(2), 2))
        caller.link.close()
        return not isinstance(answer, StaysOut)

    assert not is_let_in()
    wait_until(is_let_in)
    assert time.monotonic() - start >= 2
    longer = Caller(server.url.replace("t_max=2s", "t_max=60s"))
    assert isinstance(longer.ask("y", Request(mine(3), 2)), StaysOut), "it has not stayed out for so long"


def test_a_primary_that_was_a_replica_for_a_while_is_another(redis_servers: Servers) -> None:
    server = redis_servers(options="t_max=1s&fresh=1")
    held(server)
    with vendor(server) as connection:
        connection.execute_command("REPLICAOF", "127.0.0.1", "1")
        connection.execute_command("REPLICAOF", "NO", "ONE")
    caller = Caller(server.url)
    assert isinstance(caller.ask("x", Request(mine(2), 1)), StaysOut)
    assert granted_at_last(caller).grade is Grade.COMMITTED
    assert not isinstance(Caller(server.url).ask("y", Request(mine(3), 1)), StaysOut), "its life is known"


def test_a_link_that_slept_while_its_server_was_a_replica_gives_nothing_out(redis_servers: Servers) -> None:
    """No connection is dropped by that, and what the server had is replaced by what the other one has."""
    server, other = redis_servers(options="t_max=60s&fresh=1"), redis_servers()
    held(server)
    idle = Caller(server.url)
    with vendor(server) as connection:
        connection.execute_command("REPLICAOF", "127.0.0.1", other.port)
        wait_until(lambda: connection.info("replication")["master_link_status"] == "up")
        connection.execute_command("REPLICAOF", "NO", "ONE")
        assert connection.get("trinco:{x}") is None, "the lease is forgotten"
    with pytest.raises(StoreUnavailable, match="may have forgotten who holds what"):
        idle.ask("x", Request(mine(2), 30))
    assert isinstance(Caller(server.url.replace("&fresh=1", "")).ask("x", Request(mine(3), 30)), StaysOut)


@pytest.mark.parametrize("operation", [Request(mine(), 30, NEXT), Extend(mine(), 30, 1), Commit(mine(), 1 << 51, b"e")])
def test_what_is_asked_of_another_life_is_not_given(redis_server: RedisServer, operation: Operation) -> None:
    caller = Caller(redis_server.url)
    assert caller.ask("x", Request(mine(), 30)).grade is Grade.COMMITTED
    with vendor(redis_server) as connection:
        known = connection.get("trinco:epoch")
        connection.set("trinco:epoch", b"1" + known)
        with pytest.raises(StoreUnavailable, match="may have forgotten who holds what"):
            caller.ask("x", operation)
        connection.set("trinco:epoch", known)


def test_another_client_may_write_a_longer_t_max_behind_the_life(redis_server: RedisServer) -> None:
    caller = Caller(redis_server.url)
    assert caller.ask("x", Request(mine(), 30)).grade is Grade.COMMITTED
    with vendor(redis_server) as connection:
        life = connection.get("trinco:epoch").partition(b" ")[0]
        connection.set("trinco:epoch", life + b" 3600000000")
    assert caller.ask("x", Extend(mine(), 30, 1)).grade is Grade.COMMITTED


def test_a_server_that_came_back_empty_stays_out_and_says_so_until_it_may_grant(redis_servers: Servers) -> None:
    server = redis_servers()
    holder = Caller(server.url)
    token = holder.ask("x", Request(mine(1), 30, token=NEXT)).token
    holder.link.close()
    server.options = "t_max=2s"
    server.restart_empty()
    caller = Caller(server.url)
    refusal = caller.ask("x", Request(mine(2), 2, token=NEXT))
    assert isinstance(refusal, StaysOut)
    assert f"127.0.0.1:{server.port}" in refusal.reason
    assert "may have forgotten who holds what; it stays out for " in refusal.reason
    assert "?fresh=1" in refusal.reason
    assert 0 < refusal.seconds <= 3
    assert isinstance(caller.ask("x", Read()), StaysOut)
    assert granted_at_last(caller).token > token
    caller.link.close()
    other = Caller(server.url)
    assert other.ask("y", Request(mine(2), 2)).grade is Grade.COMMITTED, "the run id is known"
    longer = Caller(server.url.replace("t_max=2s", "t_max=60s"))
    assert isinstance(longer.ask("y", Request(mine(3), 2)), StaysOut), "it has not stayed out for so long"


def granted_at_last(caller: Caller) -> Answer:
    limit = time.monotonic() + LIMIT_S
    while isinstance(answer := caller.ask("x", Request(mine(2), 2, token=NEXT)), StaysOut):
        assert time.monotonic() < limit
        time.sleep(min(answer.seconds, 0.2))
    assert isinstance(answer, Answer)
    return answer


def test_nobody_is_let_in_by_another_client_that_waits_for_the_same_server(redis_servers: Servers) -> None:
    server = redis_servers(options="")
    for _ in range(2):
        caller = Caller(server.url)
        assert isinstance(caller.ask("x", Request(mine(), 30)), StaysOut)


def test_a_server_that_has_never_held_a_lock_may_be_said_to_be_fresh(redis_servers: Servers) -> None:
    server = redis_servers(options="fresh=1")
    server.restart_empty()
    caller = Caller(server.url)
    assert caller.ask("x", Request(mine(), 30)).grade is Grade.COMMITTED


def test_a_server_that_remembers_another_life_is_not_fresh_whatever_is_said(redis_servers: Servers) -> None:
    server = redis_servers("--appendonly", "yes", options="fresh=1")
    caller = Caller(server.url)
    caller.ask("x", Request(mine(), 30))
    caller.link.close()
    with vendor(server) as connection:
        connection.config_set("appendfsync", "no")
    server.process.terminate() if server.process else None
    server.restart()
    caller = Caller(server.url)
    refusal = caller.ask("x", Request(mine(), 30))
    assert isinstance(refusal, StaysOut)
    assert "fresh" not in refusal.reason


ALWAYS = ("--appendonly", "yes", "--appendfsync", "always")


def held(server: RedisServer) -> None:
    caller = Caller(server.url)
    assert caller.ask("x", Request(mine(), 30, token=NEXT)).grade is Grade.COMMITTED
    caller.link.close()


def test_a_server_that_begins_to_write_before_it_answers_may_have_forgotten(redis_servers: Servers) -> None:
    server = redis_servers()
    held(server)
    server.arguments, server.options = ALWAYS, ""
    server.restart()
    assert isinstance(Caller(server.url).ask("x", Request(mine(2), 30)), StaysOut)


def test_a_server_that_writes_before_it_answers_and_lost_its_folder_has_forgotten(redis_servers: Servers) -> None:
    server = redis_servers(*ALWAYS)
    held(server)
    server.options = ""
    server.restart_empty()
    assert isinstance(Caller(server.url).ask("x", Request(mine(2), 30)), StaysOut)


def test_a_server_that_writes_before_it_answers_may_have_been_given_a_backup(redis_servers: Servers) -> None:
    server = redis_servers(*ALWAYS)
    Caller(server.url).ask("y", Request(mine(), 30))
    backup = server.folder.with_suffix(".backup")
    shutil.copytree(server.folder, backup)
    held(server)
    server.kill()
    shutil.rmtree(server.folder)
    backup.rename(server.folder)
    server.start(server.port)
    assert isinstance(Caller(server.url).ask("x", Request(mine(2), 30)), StaysOut)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_promoted_replica_that_writes_before_it_answers_may_lack_the_newest(
    redis_servers: Servers, is_restarted: bool
) -> None:
    primary = redis_servers(*ALWAYS)
    Caller(primary.url).ask("y", Request(mine(), 30))
    replica = redis_servers(*ALWAYS, "--replicaof", "127.0.0.1", str(primary.port), options="")
    with vendor(replica) as connection:
        wait_until(lambda: connection.exists("trinco:epoch") == 1)
        connection.execute_command("REPLICAOF", "127.0.0.1", "1")
        held(primary)
        connection.execute_command("REPLICAOF", "NO", "ONE")
    if is_restarted:
        replica.arguments = ALWAYS
        replica.restart()
    assert isinstance(Caller(replica.url).ask("x", Request(mine(2), 30)), StaysOut)


def wait_until(is_so: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.01)


# A server that refuses


def test_a_password_is_given_or_asked_for(redis_servers: Servers) -> None:
    server = redis_servers("--requirepass", "secret")
    caller = Caller(server.url.replace("redis://", "redis://:secret@"))
    assert caller.ask("x", Request(mine(), 30)).grade is Grade.COMMITTED
    caller.link.close()
    with pytest.raises(StoreUnavailable, match="it wants a password: redis://:PASSWORD@host"):
        RedisStore(server.url).connect(ADDRESS)
    with pytest.raises(StoreUnavailable, match="password is wrong") as caught:
        RedisStore(server.url.replace("redis://", "redis://:guess@")).connect(ADDRESS)
    assert "guess" not in str(caught.value)


@pytest.mark.parametrize("permission", ["-evalsha", "-set", "-get"])
def test_a_permission_that_is_missing_in_use_is_a_denial(redis_servers: Servers, permission: str) -> None:
    server = redis_servers()
    caller = Caller(server.url)
    caller.ask("x", Request(mine(), 30))
    with vendor(server) as connection:
        connection.execute_command("ACL", "SETUSER", "default", permission)
    refusal = caller.ask("x", Request(mine(), 30))
    assert isinstance(refusal, Failed)
    assert isinstance(refusal.reason, Denial), refusal.reason


def test_a_replica_grants_nothing(redis_servers: Servers) -> None:
    server = redis_servers()
    caller = Caller(server.url)
    with vendor(server) as connection:
        connection.execute_command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreUnavailable, match="give the address of the primary"):
        reason(caller)
    with pytest.raises(StoreUnavailable, match="give the address of the primary"):
        Caller(server.url)


def test_a_replica_that_is_promoted_is_looked_at_anew(redis_servers: Servers) -> None:
    """It may lack the newest leases. A link that was made before, however long ago, knows nothing of that."""
    server = redis_servers(options="t_max=1")
    store = RedisStore(server.url.replace("t_max=1", "t_max=9"))
    with vendor(server) as connection:
        caller = Caller(server.url)
        connection.execute_command("REPLICAOF", "127.0.0.1", "1")
        time.sleep(1.1)  # by now it would be admitted
        with pytest.raises(StoreUnavailable, match="primary"):
            reason(caller)
        connection.execute_command("REPLICAOF", "NO", "ONE")
        link = store.connect("a" * 20)
        assert isinstance(link.send("x", Apply(Request(mine(), 1))), StaysOut)
        link.close()


def test_a_token_is_not_given_out_again_by_a_server_that_lost_its_last_writes(redis_servers: Servers) -> None:
    server = redis_servers()
    caller = Caller(server.url)
    with vendor(server) as connection:
        caller.ask("x", Request(mine(), 30, token=NEXT))
        older = connection.get("trinco:{x}")
        caller.ask("x", Release(mine()))
        given = [caller.ask("x", Request(mine(2, attempt), 30, token=NEXT)).token for attempt in (1, 2, 3)]
        assert older is not None
        connection.set("trinco:{x}", older)
    caller.ask("x", Release(mine()))
    assert caller.ask("x", Request(mine(3), 30, token=NEXT)).token > max(given)


def test_a_server_without_memory_grants_nothing(redis_servers: Servers) -> None:
    server = redis_servers()
    caller = Caller(server.url)
    with vendor(server) as connection:
        connection.config_set("maxmemory", "1mb")
        connection.config_set("maxmemory", "1")
    assert "its memory is full" in reason(caller)
    with vendor(server) as connection:
        connection.config_set("maxmemory", "0")
    assert caller.ask("x", Release(mine())).grade is Grade.GONE


def reason(caller: Caller) -> str:
    reply = caller.ask("x", Request(mine(), 30))
    assert isinstance(reply, Failed)
    assert "\n" not in reply.reason
    return reply.reason


def test_a_server_that_throws_keys_away_is_not_used(redis_servers: Servers) -> None:
    server = redis_servers("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
    with pytest.raises(StoreUnavailable, match="maxmemory-policy"):
        RedisStore(server.url).connect(ADDRESS)


class Sentinel(RedisServer):
    """One that watches nobody. It keeps what it learns in its configuration."""

    def _spawn(self) -> None:
        configuration = self.folder / "sentinel.conf"
        configuration.write_text(f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n")
        with (self.folder / "log").open("ab") as log:
            command = [redis_binary(), str(configuration), "--sentinel"]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


@pytest.mark.parametrize("database", [0, 1])
def test_a_sentinel_is_no_store(database: int) -> None:
    with Sentinel() as sentinel, pytest.raises(StoreUnavailable, match=r"a Sentinel, .* the address of the primary"):
        RedisStore(f"redis://127.0.0.1:{sentinel.port}/{database}").connect(ADDRESS)


def test_a_server_that_is_full_says_so_before_it_hangs_up(redis_servers: Servers) -> None:
    server = redis_servers()
    with vendor(server).client() as its_only_client:
        its_only_client.config_set("maxclients", 1)
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="as many clients as it takes: raise its maxclients"):
                RedisStore(server.url).connect(ADDRESS)


def test_a_database_that_the_server_does_not_have_is_corrected_in_the_url(redis_server: RedisServer) -> None:
    with pytest.raises(StoreUnavailable, match="correct the number behind the /"):
        RedisStore(f"redis://127.0.0.1:{redis_server.port}/99").connect(ADDRESS)


def test_a_server_that_lets_in_nobody_but_its_own_host_is_a_denial() -> None:
    words = b"-DENIED Redis is running in protected mode because protected mode is enabled\r\n"
    with FakeServer({b"HELLO": words}) as fake, pytest.raises(StoreForbidden, match=r"protected mode, .* a password"):
        RedisStore(fake.url).connect(ADDRESS)


def test_a_cluster_that_is_down_says_so(redis_servers: Servers) -> None:
    with pytest.raises(StoreUnavailable, match="its cluster is down"):
        RedisStore(redis_servers("--cluster-enabled", "yes").url).connect(ADDRESS)


def double(value: float) -> bytes:
    return b"\xcb" + struct.pack(">d", value)


def text(value: str) -> bytes:
    return bytes([0xD9, len(value)]) + value.encode()


NOTHING = b"\xc0"
NOBODY = 6 * NOTHING
SOMEBODY = text("o") + b"\x01" + double(1) + 3 * NOTHING
ME = text(mine().owner) + b"\x01" + double(2.0**52) + 3 * NOTHING


def item_with(
    holder: bytes, number: bytes = b"\x03", token: bytes = b"\x05", evidence: bytes = NOTHING, waiting: bytes = b"\x00"
) -> bytes:
    return number + token + evidence + holder + waiting


@pytest.mark.parametrize("holder", [NOBODY, SOMEBODY, ME])
def test_the_sound_items_of_the_next_test_are_sound(redis_server: RedisServer, holder: bytes) -> None:
    with vendor(redis_server) as connection:
        connection.set("trinco:{sound}", item_with(holder))
    caller = Caller(redis_server.url)
    assert caller.ask("sound", Request(mine(), 30, token=NEXT)).grade is Grade.COMMITTED
    assert caller.ask("sound", Release(mine())).grade is Grade.DONE


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"hello",
        b"\x81",
        b"\x80",
        item_with(SOMEBODY.replace(double(1), double(math.nan))),
        item_with(SOMEBODY.replace(double(1), double(-math.inf))),
        item_with(SOMEBODY.replace(double(1), NOTHING)),
        item_with(ME.replace(double(2.0**52), double(2.0**53))),
        item_with(ME.replace(double(2.0**52), text("9"))),
    ]
    + [
        damaged
        for holder in (NOBODY, SOMEBODY, ME)
        for damaged in (
            item_with(holder)[:-1],
            item_with(holder) + b"\x01",
            item_with(holder, token=double(2.0**53)),
            item_with(holder, token=double(-1)),
            item_with(holder, token=text("9")),
            item_with(holder, evidence=b"\x01"),
            item_with(holder, waiting=b"\x90"),
            item_with(holder, waiting=double(-1)),
            item_with(holder, waiting=b"\xc3"),
            item_with(holder, number=b"\x02"),
            item_with(holder, number=b"\x04"),
        )
    ],
)
def test_a_damaged_item_grants_nothing_and_stays_as_it_is(redis_server: RedisServer, damage: bytes) -> None:
    caller = Caller(redis_server.url)
    with vendor(redis_server) as connection:
        connection.set("trinco:{damaged}", damage)
        for operation in (Request(mine(), 30, token=NEXT), Extend(mine(), 30, 1), Release(mine()), Read()):
            refusal = caller.ask("damaged", operation)
            assert isinstance(refusal, Failed)
            assert "is damaged or not ours" in refusal.reason
        assert connection.get("trinco:{damaged}") == damage


@pytest.mark.parametrize("key", ["line", "waiters"])
@pytest.mark.parametrize("damage", [b"", b"hello", b"\x01\x02", None], ids=repr)
def test_a_damaged_line_grants_nothing(redis_servers: Servers, key: str, damage: bytes | None) -> None:
    server = redis_servers()
    caller, name = Caller(server.url), f"trinco:{{x}}:{key}"
    caller.ask("x", Request(mine(1), 30))
    caller.ask("x", Request(mine(2), 30, ticket=1, wait=60))
    with vendor(server) as connection:
        before = connection.get("trinco:{x}")
        if damage is None or key == "line":
            connection.set(name, damage or b"")
        else:
            connection.hset(name, mine(2).owner, damage)
        for operation in (Request(mine(2), 30, ticket=1, wait=60), Release(mine(1)), Read()):
            refusal = caller.ask("x", operation)
            assert isinstance(refusal, Failed)
            assert "is damaged or not ours, so nothing is granted: look at the key" in refusal.reason
            assert f"DAMAGED {name}" in refusal.reason
        assert connection.get("trinco:{x}") == before


def test_a_key_of_another_type_grants_nothing(redis_server: RedisServer) -> None:
    caller = Caller(redis_server.url)
    with vendor(redis_server) as connection:
        connection.delete("trinco:{list}")
        connection.lpush("trinco:{list}", "x")
    assert isinstance(caller.ask("list", Request(mine(), 30)), Failed)


# A server that lies, or is none


def blob(content: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(content), content)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00" * 100_000,
        b"$100000000\r\n" + b"x" * 2 * MIB,
        b"%1\r\n" + b"%1\r\n+x\r\n" * 100,
        b"+OK\r\n" * 10,
        b"+" + b"x" * MIB,
        b"-ERR unknown command `HELLO`\r\n",
    ],
)
def test_who_does_not_greet_as_redis_does_is_not_used(reply: bytes) -> None:
    with FakeServer({b"HELLO": reply}) as fake, pytest.raises(StoreUnavailable, match=r"redis://127\.0\.0\.1"):
        RedisStore(fake.url).connect(ADDRESS, timeout=2)


@pytest.mark.parametrize("command", [b"HELLO", b"INFO"])
@pytest.mark.parametrize("reply", [b"", b"$100\r\nhalf of it", b">400000000\r\n"])
def test_who_never_finishes_its_greeting_is_given_up_in_time(command: bytes, reply: bytes) -> None:
    with FakeServer({command: reply}) as fake:
        start = time.monotonic()
        with pytest.raises(StoreUnavailable, match="it does not answer"):
            RedisStore(fake.url).connect(ADDRESS, timeout=0.2)
        assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    "info", [b"", b"run_id:x\r\n", b"run_id:x\r\nuptime_in_seconds:-1", b"run_id:x\r\nuptime_in_seconds:" + b"9" * 5000]
)
def test_a_server_without_a_run_id_and_an_uptime_is_not_used(info: bytes) -> None:
    with FakeServer({b"INFO": blob(info)}) as fake, pytest.raises(StoreUnavailable, match="run id"):
        RedisStore(fake.url).connect(ADDRESS)


def test_nonsense_about_its_keys_is_no_trouble() -> None:
    with FakeServer({b"SCAN": b"*2\r\n+0\r\n*1\r\n:1\r\n"}) as fake:
        link = Caller(fake.url).link
        with pytest.raises(StoreUnavailable, match="makes no sense"):
            link.names()


def test_an_error_is_one_line_whatever_it_says() -> None:
    with FakeServer({b"EVALSHA": b"!11\r\nERR a\nb\x1b[2J\r\n"}) as fake:
        said = Caller(fake.url).ask("x", Request(mine(), 30))
        assert said == Failed(f"{fake.url}: it says: ERR a b [2J")


def test_two_reads_at_once_may_both_be_large(redis_server: RedisServer) -> None:
    caller = Caller(redis_server.url)
    caller.ask("large", Request(mine(1), 30))
    for number in range(2, 302):
        caller.ask("large", Request(mine(number), 30, ticket=number, wait=60, entry=b"x" * 4096))
    caller.send("large", Read())
    caller.send("large", Read())
    assert [len(caller.reply().item.waiters) for _ in range(2)] == [300, 300]


@pytest.mark.parametrize(
    "reply",
    [
        b"+OK\r\n",
        b":1\r\n",
        b"_\r\n",
        b"#t\r\n",
        b"*0\r\n",
        b"+committed 1 1 1 0 - -\r\n",
        blob(b"committed"),
        blob(b"committed 1 1"),
        blob(b"committed 1 1 1"),
        blob(b"committed 1 1 1 30000000 0"),
        blob(b"committed 1 1 1 30000000 0 - -"),
        blob(b"committed 1 1 1 30000000 0 4 -\n"),
        blob(b"committed 1 1 1 30000000 0 -1 1\n"),
        blob(b"committed 1 1 1 30000000 2 - -\n"),
        blob(b"committed 1 1 1 30000000 0 - -\nmore"),
        blob(b"committed 1 1 one 30000000"),
        blob(b"committed 1 1 1 nan"),
        blob(b"committed 1 - 1 30000000"),
        blob(b"committed - 1 1 30000000"),
        blob(b"failed 1 1 1 30000000"),
        blob(b"committed 1 1 1 " + b"9" * 4000),
        blob(b"committed 1 1 " + b"9" * 5000 + b" 30000000"),
        b"*11\r\n+item\r\n:1\r\n:1\r\n_\r\n:1\r\n+o\r\n_\r\n:1\r\n:1\r\n:1\r\n_\r\n",
        b"*11\r\n+item\r\n:1\r\n:1\r\n_\r\n:1\r\n*0\r\n:1\r\n:1\r\n:1\r\n:1\r\n_\r\n",
    ],
)
def test_an_answer_that_makes_no_sense_is_no_yes(reply: bytes) -> None:
    with FakeServer({b"EVALSHA": reply}) as fake:
        caller = Caller(fake.url)
        said = caller.ask("x", Request(mine(), 30))
        assert isinstance(said, Failed)
        assert isinstance(caller.ask("x", Read()), Failed)


def test_the_sound_answer_of_the_last_test_is_sound() -> None:
    grant = Answer(Grade.COMMITTED, 2, 30.0)
    sound = {
        b"committed 1 1 2 30000000": grant,
        b"committed 1 1 2 30000000 0 1 -\ne": grant.but(evidence=b"e"),
        b"done 1 1": Answer(Grade.DONE),
    }
    for reply, said in sound.items():
        with FakeServer({b"EVALSHA": blob(reply)}) as fake:
            assert Caller(fake.url).ask("x", Request(mine(), 30)) == said
            close_callers()


def test_a_list_of_names_without_end_is_not_read_for_ever() -> None:
    names = b"".join(b"$%d\r\ntrinco:{%b%07d}\r\n" % (216, b"n" * 200, number) for number in range(4000))
    with FakeServer({b"SCAN": b"*2\r\n$1\r\n7\r\n*4000\r\n" + names}) as fake:
        start = time.monotonic()
        with pytest.raises(StoreUnavailable, match="more names than"):
            Caller(fake.url).link.names()
        assert time.monotonic() - start < LIMIT_S


def test_half_an_answer_is_waited_for_without_blocking() -> None:
    with FakeServer({b"EVALSHA": b"$1000\r\ncommitted 1 "}) as fake:
        caller = Caller(fake.url)
        caller.send("x", Request(mine(), 30))
        start = time.monotonic()
        for _ in range(100):
            assert caller.link.receive() == []
        assert time.monotonic() - start < 1


@pytest.mark.parametrize("reply", [b"$100000000\r\n" + b"x" * 100 * MIB, b"*100000000\r\n" + b":1\r\n" * 10 * MIB])
def test_an_answer_of_100_megabytes_is_not_read(reply: bytes) -> None:
    with FakeServer({b"EVALSHA": reply}) as fake:
        caller = Caller(fake.url)
        caller.send("x", Request(mine(), 30))
        with pytest.raises(StoreUnavailable, match="longer than 1 MiB"):
            caller.reply()


def test_an_answer_that_nobody_asked_for_ends_the_link() -> None:
    with FakeServer({b"EVALSHA": b"+OK\r\n+OK\r\n"}) as fake:
        caller = Caller(fake.url)
        caller.send("x", Request(mine(), 30))
        with pytest.raises(StoreUnavailable, match="what nobody asked"):
            caller.reply()


# The wire


def test_tls_works_and_wants_a_certificate_that_is_trusted(redis_server: RedisServer, tmp_path: Path) -> None:
    with TlsFront(redis_server.port, tmp_path) as front:
        caller = Caller(f"{front.url}?fresh=1&ssl_ca_certs={front.certificate}")
        entry = b"x" * 4096
        assert caller.ask("tls", Request(mine(), 50, entry=entry)).grade is Grade.COMMITTED
        for handle in range(2, 42):
            caller.send("tls", Request(mine(handle), 30, ticket=handle, wait=60, entry=entry))
        assert {caller.reply().grade for _ in range(40)} == {Grade.REFUSED}
        assert len(caller.item("tls").waiters) == 40
        caller.link.expect_hints(mine(2).owner)
        caller.ask("tls", Release(mine()))
        assert caller.hint() == mine(2).owner
        caller.link.close()
        with pytest.raises(StoreUnavailable, match="certificate"):
            RedisStore(front.url).connect(ADDRESS)


@pytest.mark.parametrize("words", [b"", b"-ERR unknown command\r\n"])
def test_of_a_server_without_tls_it_is_said_so(words: bytes) -> None:
    """It hears no command in a greeting of TLS, or half of one, and says nothing; or it complains."""
    with (
        Speaker(words) as plain,
        pytest.raises(StoreUnavailable, match=r"does not seem to speak TLS: .* write redis://"),
    ):
        RedisStore(f"rediss://127.0.0.1:{plain.port}").connect(ADDRESS, timeout=0.5)


def test_a_real_server_without_tls_says_nothing_to_it(redis_server: RedisServer) -> None:
    with pytest.raises(StoreUnavailable, match=r"does not seem to speak TLS: .* write redis://"):
        RedisStore(f"rediss://127.0.0.1:{redis_server.port}").connect(ADDRESS, timeout=0.5)


def test_who_greets_tls_without_it_is_told_how_it_is_written(redis_server: RedisServer, tmp_path: Path) -> None:
    with TlsFront(redis_server.port, tmp_path) as front, pytest.raises(StoreUnavailable, match="write rediss://"):
        RedisStore(f"redis://127.0.0.1:{front.port}").connect(ADDRESS)


def test_a_certificate_that_is_not_trusted_or_not_there_is_what_is_complained_of(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    with TlsFront(redis_server.port, tmp_path) as front:
        with pytest.raises(StoreUnavailable, match=r"not trusted here: .* ssl_ca_certs=FILE"):
            RedisStore(front.url).connect(ADDRESS)
        with pytest.raises(StoreUnavailable, match=r"\(ssl_ca_certs, .*\) cannot be read"):
            RedisStore(f"{front.url}?ssl_ca_certs={tmp_path}/nothing.pem").connect(ADDRESS)
        with pytest.raises(StoreUnavailable, match=r"compare the ssl_\.\.\. options"):
            RedisStore(f"{front.url}?ssl_ca_certs={tmp_path}/key.pem").connect(ADDRESS)


def test_what_the_kernel_does_not_take_at_once_arrives_all_the_same() -> None:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    wire, received = Wire("redis://x", ours), bytearray()
    for _ in range(10):
        wire.write(pack(("SET", "x", b"y" * 50_000)))
    theirs.setblocking(False)
    limit = time.monotonic() + LIMIT_S
    while len(received) < 10 * 50_029 and time.monotonic() < limit:
        received += theirs.recv(1 << 16)
        wire.flush()
    assert received == (b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$50000\r\n" + b"y" * 50_000 + b"\r\n") * 10
    wire.close()
    theirs.close()


def test_who_takes_nothing_is_given_up() -> None:
    ours, theirs = socket.socketpair()
    wire = Wire("redis://x", ours)
    commands = iter([("SET", "x", b"y" * 65536)] * (4 * UNSENT_LIMIT // 65536))

    def write_all() -> None:
        for command in commands:
            wire.write(pack(command))

    with pytest.raises(StoreUnavailable, match="does not take what it is sent"):
        write_all()
    wire.close()
    theirs.close()
