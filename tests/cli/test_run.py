"""``trinco run`` as scripts and people use it: real processes, real signals, real stores."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.cli.running import (
    LIMIT,
    LOST,
    SAY_PID,
    STUBBORN,
    TRINCO,
    Run,
    eventually,
    gone,
    guardian_of,
    is_running,
    number_in,
    processes_with,
)
from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer, free_port
from trinco.cli.child import Child
from trinco.cli.descendants import Descendants
from trinco.locks.service import connect


class TestTheCommand:
    def test_its_exit_code_is_ours(self, trinco_run: Any) -> None:
        assert trinco_run("x", "--", "sh", "-c", "exit 3").end() == (3, "", "")

    def test_a_signal_that_ended_it_shows_in_the_code(self, trinco_run: Any) -> None:
        assert trinco_run("x", "--", "sh", "-c", "kill -KILL $$").code() == 128 + signal.SIGKILL

    def test_stdin_and_stdout_pass_through(self, trinco_run: Any) -> None:
        run = trinco_run("x", "--", "cat", stdin=subprocess.PIPE)
        assert run.process.communicate("a line\n", timeout=LIMIT)[0] == "a line\n"

    def test_who_does_not_wait_is_not_said_to_wait_for_a_store_that_is_down(
        self, trinco_run: Any, tmp_path: Path, redis_servers: Callable[..., RedisServer]
    ) -> None:
        urls = [f"redis://127.0.0.1:{free_port()}", *(redis_servers().url for _ in range(3))]
        quorum = "quorum:?f=1&auth=none&" + "&".join(f"store={url}" for url in urls)
        ended = trinco_run("-n", "-u", quorum, "x", "--", "true").end()
        assert ended == (0, "", "")

    def test_it_is_told_its_name_token_and_end(self, trinco_run: Any, url: str) -> None:
        before = time.time()
        _, out, _ = trinco_run("x", "--", "sh", "-c", "echo $TRINCO_NAME $TRINCO_TOKEN $TRINCO_EXPIRES").end()
        name, token, expires = out.split()
        assert name == "x"
        assert before + 25 < float(expires) < time.time() + 30
        with connect(url) as locks, locks.lock("x").hold(timeout=5) as lease:
            assert lease.token is not None
            assert lease.token > int(token)

    def test_its_arguments_are_taken_as_they_are(self, trinco_run: Any) -> None:
        assert trinco_run("x", "--", "printf", "%s|", "-n", "--", "$HOME", "a b").end()[1] == "-n|--|$HOME|a b|"

    @pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
    def test_closed_streams_do_no_harm(self, tmp_path: Path, closed: str) -> None:
        call = f"exec {' '.join(TRINCO)} run -v x -- sh -c 'exit 6' {closed}"
        environment = {**os.environ, "TRINCO_URL": f"sqlite:///{tmp_path}/locks.db"}
        done = subprocess.run(["sh", "-c", call], env=environment, capture_output=True, timeout=LIMIT, check=False)
        assert done.returncode == 6
        assert b"Traceback" not in done.stderr

    def test_a_broken_pipe_ends_it_as_usual(self, trinco_run: Any) -> None:
        assert trinco_run("x", "--", "sh", "-c", "yes | head -n 1").end()[:2] == (0, "y\n")

    def test_a_script_without_a_first_line_is_a_shell_s(self, trinco_run: Callable[..., Run], tmp_path: Path) -> None:
        (tmp_path / "script").write_text("echo plain $1\n")
        (tmp_path / "script").chmod(0o755)
        assert trinco_run("x", "--", "./script", "words").end()[:2] == (0, "plain words\n")

    def test_an_interpreter_that_is_missing_is_told_apart(self, trinco_run: Callable[..., Run], tmp_path: Path) -> None:
        (tmp_path / "script").write_text("#!/no/such/shell\n")
        (tmp_path / "script").chmod(0o755)
        code, _, said = trinco_run("x", "--", "./script").end()
        assert code == 126
        assert "interpreter" in said

    def test_signals_that_are_blocked_around_us_are_blocked_for_the_command_and_harm_nobody(
        self, trinco_run: Callable[..., Run]
    ) -> None:
        def block() -> None:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})

        show = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
        code, out, _ = trinco_run("x", "--", sys.executable, "-c", show, preexec_fn=block).end()
        assert code == 0
        assert "SIGCHLD" in out

    def test_a_command_of_this_folder_without_the_dot_was_not_found(
        self, trinco_run: Callable[..., Run], tmp_path: Path
    ) -> None:
        (tmp_path / "our-backup").write_text("#!/bin/sh\n")
        (tmp_path / "our-backup").chmod(0o755)
        code, _, said = trinco_run("x", "--", "our-backup").end()
        assert code == 127
        assert "./our-backup" in said

    @pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/etc/passwd", 126), ("/", 126)])
    def test_one_that_cannot_be_started_leaves_the_lock_free(self, trinco_run: Any, command: str, code: int) -> None:
        ended, _, said = trinco_run("x", "--", command).end()
        assert ended == code
        assert said.startswith(f"trinco: '{command}' ")
        assert said.count("\n") == 1
        assert trinco_run("-n", "x", "--", "true").code() == 0

    def test_the_lock_is_free_afterwards(self, trinco_run: Any) -> None:
        assert [trinco_run("-n", "x", "--", "true").code() for _ in range(2)] == [0, 0]

    def test_an_election_is_the_same(self, trinco_run: Any) -> None:
        code, out, said = trinco_run("-v", "boss", "--", "sh", "-c", "echo $TRINCO_TOKEN; exit 4", verb="elect").end()
        assert code == 4
        assert int(out) > 0
        assert "the election 'boss' is won" in said

    def test_a_command_that_ignores_sighup_before_us_stays_deaf(self, trinco_run: Any) -> None:
        """nohup: what was ignored when we were started is ignored by the command, and not forwarded."""
        command = ["sh", "-c", f"{SAY_PID} grep SigIgn /proc/$$/status; kill -HUP $PPID; echo still here"]
        code, out, _ = trinco_run("x", "--", *command, preexec_fn=ignore_hangups).end()
        assert code == 0
        assert out.endswith("still here\n")
        assert int(out.split()[1], 16) & 1 << (signal.SIGHUP - 1)
        assert not int(out.split()[1], 16) & 1 << (signal.SIGPIPE - 1)


def ignore_hangups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


class TestUsage:
    @pytest.mark.parametrize("arguments", [("x",), ("x", "ls"), ("x", "--"), ()])
    def test_without_a_command_it_shows_how(self, trinco_run: Any, arguments: tuple[str, ...]) -> None:
        code, _, said = trinco_run(*arguments).end()
        assert code == 64
        assert "trinco run NAME -- ./backup.sh" in said
        assert said.count("\n") == 1

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (("-n", "-w", "1", "x"), 64, "not allowed with"),
            (("--ttl", "soon", "x"), 64, "'soon' is no duration"),
            (("--tll", "3", "x"), 64, "there is no option '--tll', did you mean '--ttl'?"),
            (("--on-lost", "trem", "x"), 64, "did you mean 'term'?"),
            (("--ttl", "2h", "x"), 64, "a ttl is"),
            (("-E", "300", "x"), 64, "an exit code is 0 to 255"),
            (("-k", "0", "x"), 64, "at least 1"),
            (("--wait=-3", "x"), 64, "at least 0"),
            (("-w", "-1s", "x"), 64, "--wait is at least 0 seconds, not -1"),
            (("--max-hold", "0", "x"), 64, "--max-hold is above 0 seconds, not 0"),
            (("-k", "2", "n" * 199), 64, "at most 197 characters; this one has 199"),
            (("a\nb",), 64, "printable"),
            (("-u", "sqlight:///x.db", "x"), 78, "did you mean sqlite:"),
            (("-n",), 64, "there is no NAME"),
            (("-u", "memory:", "x"), 78, "memory:"),
            (("-u", "@nowhere", "x"), 78, "@nowhere"),
            (("-c", "missing.toml", "x"), 78, "missing.toml"),
            (("-u", "redis://127.0.0.1:1/0", "x"), 69, "127.0.0.1:1"),
        ],
    )
    def test_what_cannot_be_is_said_in_one_line(
        self, trinco_run: Any, arguments: tuple[str, ...], code: int, words: str
    ) -> None:
        ended, out, said = trinco_run(*arguments, "--", "echo", "ran").end()
        assert (ended, out) == (code, "")
        assert words in said
        assert said.count("\n") == 1

    def test_a_name_that_begins_with_a_dash_comes_behind_two(self, trinco_run: Any) -> None:
        script = 'echo "$TRINCO_NAME" "$@"'
        for arguments in (("-n", "--", "-x"), ("--", "-x")):
            run = trinco_run(*arguments, "--", "sh", "-c", script, "sh", "--", "-y")
            assert run.end() == (0, "-x -- -y\n", "")

    @pytest.mark.parametrize(("flag", "lines"), [("-q", 0), ("-v", 1), ("--ttl=30s", 1)])
    def test_a_quorum_of_one_fate_is_told_once_or_not_at_all(
        self, trinco_run: Any, tmp_path: Path, flag: str, lines: int
    ) -> None:
        quorum = "quorum:?f=1&auth=none" + "".join(f"&store=dir://{tmp_path}/{each}" for each in "abcd")
        code, _, said = trinco_run(flag, "-u", quorum, "x", "--", "true").end()
        assert code == 0
        assert said.count("several stores of this quorum are on") == lines

    def test_help_names_what_is_out_of_reach(self, trinco_run: Any) -> None:
        code, out, _ = trinco_run("--help").end()
        assert code == 0
        assert "out of reach" in out
        assert "--kill-after" in out


class TestWaiting:
    def test_without_waiting_it_names_the_holder(self, trinco_run: Any, url: str) -> None:
        with connect(url, client="ana@laptop") as locks, locks.lock("x").hold() as lease:
            code, _, said = trinco_run("-n", "x", "--", "true").end()
        assert code == 75
        assert "the lock 'x' is held by ana@laptop for " in said
        assert f"token {lease.token}" in said
        assert "left unless" in said
        assert said.count("\n") == 1

    def test_the_code_for_it_can_be_chosen_and_the_line_left_out(self, trinco_run: Any, url: str) -> None:
        with connect(url) as locks, locks.lock("x").hold():
            assert trinco_run("-n", "-q", "-E", "0", "x", "--", "false").end() == (0, "", "")

    def test_it_waits_no_longer_than_told(self, trinco_run: Any, url: str) -> None:
        with connect(url) as locks, locks.lock("x").hold():
            started = time.monotonic()
            code, _, said = trinco_run("-w", "300ms", "x", "--", "true").end()
        assert code == 75
        assert 0.3 <= time.monotonic() - started < 5
        assert "within 300 ms" in said

    @pytest.mark.parametrize("is_known", [False, True])
    def test_it_waits_no_longer_for_a_store_that_says_nothing(self, trinco_run: Any, is_known: bool) -> None:
        """Whether it never answered, or was silenced while we waited."""
        with RedisServer() as server, connect(server.url) as locks, locks.lock("x", auto_renew=False).hold():
            if not is_known:
                server.pause()
            started = time.monotonic()
            run = trinco_run("-w", "1s", "-E", "0", "-u", server.url, "x", "--", "true")
            if is_known:
                eventually(lambda: locks.inspect("x").waiters, "it waits")
                server.pause()
            code, _, said = run.end()
            took = time.monotonic() - started
            server.resume()
        assert code == 69
        assert took < 4
        assert "whether the lock 'x' is in use cannot be told" in said
        assert "does not answer" in said

    def test_nor_does_it_of_one_that_can_be_looked_at_meanwhile(self, trinco_run: Any, postgres_template: Path) -> None:
        server = PostgresServer(postgres_template)
        try:
            server.start()
            code, _, said = trinco_run("-w", "300ms", "-q", "-u", server.url, "x", "--", "true").end()
        finally:
            server.stop()
        assert code == 69
        assert "whether the lock 'x' is in use cannot be told" in said
        assert "it gives none out" in said

    def test_of_a_store_that_stays_out_it_does_not_say_that_the_lock_is_in_use(self, trinco_run: Any) -> None:
        with RedisServer(options="") as server:
            code, _, said = trinco_run("-w", "300ms", "-q", "-u", server.url, "x", "--", "true").end()
        assert code == 69
        assert "whether the lock 'x' is in use cannot be told" in said
        assert "it stays out" in said

    def test_it_runs_when_its_turn_comes(self, trinco_run: Any, url: str) -> None:
        with connect(url, client="ana@laptop") as locks:
            with locks.lock("x").hold():
                run = trinco_run("-v", "x", "--", "echo", "ran")
                eventually(lambda: locks.inspect("x").waiters, "it waits")
                assert "is held by ana@laptop" in run.process.stderr.readline()
            code, out, said = run.end()
        assert (code, out) == (0, "ran\n")
        assert "is ours" in said

    def test_it_names_who_is_before_us(self, trinco_run: Any, url: str) -> None:
        with connect(url) as locks, locks.lock("x").hold():
            first = trinco_run("x", "--", "true")
            eventually(lambda: locks.inspect("x").waiters, "the first waits")
            second = trinco_run("-v", "x", "--", "true")
            assert f":{first.process.pid}\n" in second.process.stderr.readline().partition("; before us: ")[2]
            for run in (second, first):
                run.signal(signal.SIGINT)
                assert run.code() == 130

    def test_ctrl_c_while_waiting_leaves_the_queue(self, trinco_run: Any, url: str) -> None:
        with connect(url) as locks, locks.lock("x").hold():
            for number in (signal.SIGINT, signal.SIGTERM):
                run = trinco_run("x", "--", "echo", "ran")
                eventually(lambda: locks.inspect("x").waiters, "it waits")
                run.signal(number)
                code, out, said = run.end()
                assert (code, out) == (128 + number, "")
                assert "Traceback" not in said
                assert locks.inspect("x").waiters == ()

    def test_units_are_counted(self, trinco_run: Any) -> None:
        holders = [trinco_run("-k", "2", "gpu", "--", "sh", "-c", "echo $TRINCO_SLOT; cat", stdin=-1) for _ in "ab"]
        slots = {run.process.stdout.readline() for run in holders}
        assert slots == {"0\n", "1\n"}
        code, _, said = trinco_run("-n", "-k", "2", "gpu", "--", "true").end()
        assert code == 75
        assert said.count("token") == 2
        for run in holders:
            run.process.stdin.close()
            run.process.wait(LIMIT)
        assert trinco_run("-n", "-k", "2", "gpu", "--", "true").code() == 0


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
    def test_are_forwarded_and_the_command_decides(self, trinco_run: Any, tmp_path: Path, number: int) -> None:
        script = f"trap 'exit 7' {number}; {SAY_PID} while :; do sleep 0.02; done"
        run = trinco_run("x", "--", "sh", "-c", script)
        number_in(tmp_path / "pid")
        run.signal(number)
        assert run.code() == 7

    def test_reach_the_whole_group_even_if_it_is_stopped(self, trinco_run: Any, tmp_path: Path) -> None:
        run = trinco_run("x", "--", "sh", "-c", f"{SAY_PID} sleep 60 | sleep 60")
        os.killpg(number_in(tmp_path / "pid"), signal.SIGSTOP)
        eventually(lambda: b" T " in Path(f"/proc/{number_in(tmp_path / 'pid')}/stat").read_bytes(), "it is stopped")
        run.signal(signal.SIGTERM)
        assert run.code() == 128 + signal.SIGTERM

    def test_a_stopped_command_keeps_its_lock(self, trinco_run: Any, url: str, tmp_path: Path) -> None:
        run = trinco_run("--ttl", "1s", "x", "--", "sh", "-c", f"{SAY_PID} while [ ! -e done ]; do sleep 0.02; done")
        group = number_in(tmp_path / "pid")
        os.killpg(group, signal.SIGSTOP)
        with connect(url) as locks:
            assert locks.lock("x").acquire(timeout=1.5) is False
        (tmp_path / "done").touch()
        os.killpg(group, signal.SIGCONT)
        assert run.end() == (0, "", "")


class TestTheGroup:
    def test_one_that_ends_while_we_look_for_stops_has_not_stopped(self) -> None:
        child = Child(["true"], dict(os.environ), Descendants("nobody else"))
        assert child.trouble() is None
        eventually(child.has_ended, "it ends")
        assert not child.notice_stops()
        child.reap()
        assert child.code == 0

    def test_what_the_command_leaves_behind_ends_before_the_lock_is_free(
        self, trinco_run: Any, url: str, tmp_path: Path
    ) -> None:
        script = f"sh -c '{STUBBORN}' & while [ ! -e pid ]; do sleep 0.01; done; exit 5"
        run = trinco_run("--kill-after", "300ms", "-v", "x", "--", "sh", "-c", script)
        left = number_in(tmp_path / "pid")
        with connect(url) as locks, locks.lock("x").hold(timeout=LIMIT):
            assert not is_running(left)
        code, _, said = run.end()
        assert code == 5
        assert "left processes behind" in said

    def test_what_is_left_behind_may_end_by_itself_when_asked(self, trinco_run: Any, tmp_path: Path) -> None:
        script = f"sh -c \"trap 'echo asked > asked; exit' TERM; {SAY_PID} while :; do sleep 0.02; done\" &"
        waiting = " while [ ! -e pid ]; do sleep 0.01; done"
        started = time.monotonic()
        assert trinco_run("x", "--", "sh", "-c", script + waiting).code() == 0
        assert time.monotonic() - started < 4
        assert (tmp_path / "asked").exists()


class TestLoss:
    def test_a_broken_lock_ends_the_command(self, trinco_run: Any, url: str, tmp_path: Path) -> None:
        run = trinco_run("--ttl", "1s", "x", "--", "sh", "-c", f"{SAY_PID} sleep 60")
        child = number_in(tmp_path / "pid")
        with connect(url) as locks:
            assert locks.break_("x")
            gone(child)
        code, _, said = run.end()
        assert code == LOST
        assert said == (
            "trinco: the lock 'x' was lost: its entry is gone: somebody broke the lock, or removed what the store "
            "keeps; the command is ended\n"
        )

    @pytest.mark.parametrize("patience", ["0", "30ms"])
    def test_a_loss_is_told_however_short_the_time_to_end_is(
        self, trinco_run: Callable[..., Run], patience: str
    ) -> None:
        run = trinco_run("--kill-after", patience, "--max-hold", "1s", "x", "--", "sleep", "30")
        code, _, said = run.end()
        assert code == LOST
        assert "--max-hold" in said

    def test_a_stubborn_command_is_killed(self, trinco_run: Any, url: str, tmp_path: Path) -> None:
        run = trinco_run("--ttl", "1s", "--kill-after", "200ms", "x", "--", "sh", "-c", STUBBORN)
        number_in(tmp_path / "pid")
        with connect(url) as locks:
            locks.break_("x")
        assert run.code() == LOST

    def test_on_lost_kill_does_not_ask(self, trinco_run: Any, url: str, tmp_path: Path) -> None:
        script = f"trap 'echo asked' TERM; {SAY_PID} while :; do sleep 0.02; done"
        run = trinco_run("--ttl", "1s", "--on-lost", "kill", "x", "--", "sh", "-c", script)
        number_in(tmp_path / "pid")
        with connect(url) as locks:
            locks.break_("x")
        assert run.end()[:2] == (LOST, "")

    def test_on_lost_ignore_lets_it_go_on_and_says_so(self, trinco_run: Any, url: str, tmp_path: Path) -> None:
        script = f"{SAY_PID} while [ ! -e done ]; do sleep 0.02; done; exit 9"
        run = trinco_run("--ttl", "1s", "--on-lost", "ignore", "x", "--", "sh", "-c", script)
        number_in(tmp_path / "pid")
        with connect(url) as locks:
            locks.break_("x")
        assert "WAS LOST" in run.process.stderr.readline()
        (tmp_path / "done").touch()
        assert run.code() == 9

    def test_max_hold_ends_it(self, trinco_run: Any, url: str) -> None:
        started = time.monotonic()
        code, _, said = trinco_run("--max-hold", "600ms", "x", "--", "sleep", "60").end()
        assert code == LOST
        assert "--max-hold" in said
        assert time.monotonic() - started < 5
        with connect(url) as locks:
            assert not locks.inspect("x").held

    @pytest.mark.parametrize("trouble", ["kill", "pause"])
    def test_a_store_that_goes_away_ends_the_command_in_time(
        self, trinco_run: Any, tmp_path: Path, trouble: str
    ) -> None:
        with RedisServer() as server:
            run = trinco_run("--ttl", "1500ms", "-u", server.url, "x", "--", "sh", "-c", f"{SAY_PID} sleep 60")
            child = number_in(tmp_path / "pid")
            getattr(server, trouble)()
            went = time.monotonic()
            gone(child)
            assert time.monotonic() - went < 1.5
            code, _, said = run.end()
            assert time.monotonic() - went < 4  # and nobody waits for that store again
            if trouble == "pause":
                server.resume()
        assert code == LOST
        assert "its term of 1.5 s could not be renewed" in said or "was not renewed in time" in said
        assert said.count("\n") == 1

    def test_a_link_that_broke_while_the_command_ran_does_not_keep_the_lock(self, trinco_run: Any) -> None:
        with RedisServer() as server, redis.Redis(port=server.port) as other, connect(server.url) as locks:
            run = trinco_run("-v", "-u", server.url, "x", "--", "sh", "-c", "while [ ! -e done ]; do sleep 0.02; done")
            eventually(lambda: locks.inspect("x").held, "it is held")
            other.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            (run.folder / "done").touch()
            code, _, said = run.end()
            assert (code, locks.inspect("x").held) == (0, False)
            assert "was released" in said

    def test_a_lock_that_could_not_be_given_back_is_told_of(self, trinco_run: Any) -> None:
        with RedisServer() as server:
            script = "while [ ! -e done ]; do sleep 0.02; done"
            run = trinco_run("-v", "-u", server.url, "x", "--", "sh", "-c", script)
            with connect(server.url) as locks:
                eventually(lambda: locks.inspect("x").held, "it is held")
            server.kill()
            (run.folder / "done").touch()
            code, _, said = run.end()
        assert code == 0
        assert "could not be released" in said
        assert "was released" not in said

    def test_a_store_that_comes_back_in_time_does_no_harm(self, trinco_run: Any, tmp_path: Path) -> None:
        script = f"{SAY_PID} while [ ! -e done ]; do sleep 0.02; done"
        with RedisServer() as server:
            run = trinco_run("--ttl", "3s", "-u", server.url, "x", "--", "sh", "-c", script)
            number_in(tmp_path / "pid")
            with connect(server.url) as locks:
                server.pause()
                resume_at = time.monotonic() + 1.2
                eventually(lambda: time.monotonic() > resume_at, "a renewal falls into the outage")
                server.resume()
                eventually(lambda: locks.inspect("x").remaining > 2.5, "it is renewed")
                (tmp_path / "done").touch()
                assert run.end() == (0, "", "")
                assert not locks.inspect("x").held


class TestTheGuardian:
    @pytest.mark.parametrize("script", [f"{SAY_PID} sleep 60", STUBBORN])
    def test_kill_9_of_trinco_ends_the_command_before_the_lock_is_anothers(
        self, trinco_run: Any, url: str, tmp_path: Path, script: str
    ) -> None:
        run = trinco_run("--ttl", "1500ms", "x", "--", "sh", "-c", script)
        child = number_in(tmp_path / "pid")
        run.signal(signal.SIGKILL)
        with connect(url) as locks, locks.lock("x").hold(timeout=LIMIT):
            assert not is_running(child)
        eventually(lambda: not processes_with(str(tmp_path)), "the guardian ends")

    def test_kill_9_of_trinco_asks_the_command_first(self, trinco_run: Any, tmp_path: Path) -> None:
        script = f"trap 'echo asked > asked; exit' TERM; {SAY_PID} while :; do sleep 0.02; done"
        run = trinco_run("x", "--", "sh", "-c", script)
        child = number_in(tmp_path / "pid")
        run.signal(signal.SIGKILL)
        gone(child)
        assert (tmp_path / "asked").exists()

    def test_a_trinco_that_is_stopped_past_its_lease_does_not_let_the_command_go_on(
        self, trinco_run: Any, url: str, tmp_path: Path
    ) -> None:
        run = trinco_run("--ttl", "1s", "x", "--", "sh", "-c", STUBBORN)
        child = number_in(tmp_path / "pid")
        run.signal(signal.SIGSTOP)
        with connect(url) as locks, locks.lock("x").hold(timeout=LIMIT):
            assert not is_running(child)
        run.signal(signal.SIGCONT)
        assert run.code() == LOST

    @pytest.mark.parametrize("code", [0, 3])
    def test_a_command_that_it_has_ended_has_lost_the_lock_though_it_could_be_renewed_again(
        self, trinco_run: Any, tmp_path: Path, code: int
    ) -> None:
        """Else a backup that was cut off would count as done."""
        script = f"trap 'echo asked > asked; exit {code}' TERM; {SAY_PID} while :; do sleep 0.02; done"
        run = trinco_run("--ttl", "3s", "--kill-after", "1s", "x", "--", "sh", "-c", script)
        number_in(tmp_path / "pid")
        run.signal(signal.SIGSTOP)
        eventually((tmp_path / "asked").exists, "the guardian asks the command to end")
        run.signal(signal.SIGCONT)
        ended, _, said = run.end()
        assert ended == LOST
        assert "was lost" in said

    def test_one_that_was_killed_is_replaced(self, trinco_run: Any, tmp_path: Path) -> None:
        run = trinco_run("x", "--", "sh", "-c", f"{SAY_PID} sleep 60")
        child = number_in(tmp_path / "pid")
        first = eventually(lambda: guardian_of(run.process.pid, child), "a guardian")
        os.kill(first, signal.SIGKILL)
        eventually(lambda: guardian_of(run.process.pid, child) not in (None, first), "another guardian")
        run.signal(signal.SIGKILL)
        gone(child)

    def test_it_does_not_wait_for_a_command_that_is_done(self, trinco_run: Any, tmp_path: Path) -> None:
        assert trinco_run("x", "--", "true").code() == 0
        assert processes_with(str(tmp_path)) == []


class TestTheTerminal:
    def test_ctrl_c_reaches_the_command_and_the_terminal_comes_back(self, url: str, tmp_path: Path) -> None:
        script = f"{SAY_PID} tty -s && ps -o tpgid= -p $$ > foreground; trap 'exit 9' INT; echo ready; read line"
        with OnTerminal(url, tmp_path, "x", "--", "sh", "-c", script) as terminal:
            terminal.see("ready")
            assert int((tmp_path / "foreground").read_text()) == number_in(tmp_path / "pid")
            terminal.type("\x03")
            assert terminal.end() == 9

    def test_ctrl_z_stops_the_command_and_again_lets_it_go_on(self, url: str, tmp_path: Path) -> None:
        script = f"{SAY_PID} echo ready; read line; echo got $line"
        with OnTerminal(url, tmp_path, "--ttl", "1s", "x", "--", "sh", "-c", script) as terminal:
            terminal.see("ready")
            terminal.type("\x1a")
            terminal.see("stays held")
            with connect(url) as locks:
                assert locks.lock("x").acquire(timeout=1.2) is False
            terminal.type("\x1a")
            terminal.type("hello\n")
            terminal.see("got hello")
            assert terminal.end() == 0

    def test_a_pipeline_keeps_the_terminal_for_all_of_it(self, url: str, tmp_path: Path) -> None:
        command, pager = (
            "sh -c 'echo a page; sleep 1'",
            "{ read page; echo $page; read key < /dev/tty; echo got $key; }",
        )
        with OnTerminal(url, tmp_path, script=f"trinco run x -- {command} | {pager}") as terminal:
            terminal.see("a page")
            terminal.type("space\n")
            terminal.see("got space")
            assert terminal.end() == 0

    def test_who_asks_for_the_terminal_gets_it_though_all_else_goes_elsewhere(self, url: str, tmp_path: Path) -> None:
        command = "echo password? > /dev/tty; read word < /dev/tty; echo $word > word"
        script = f"trinco run x -- sh -c '{command}' < /dev/null > /dev/null 2>&1"
        with OnTerminal(url, tmp_path, script=script) as terminal:
            terminal.see("password?")
            terminal.type("sesame\n")
            assert terminal.end() == 0
        assert (tmp_path / "word").read_text() == "sesame\n"

    @pytest.mark.parametrize("held", [False, True], ids=["while it runs", "while we wait"])
    def test_ctrl_c_ends_the_loop_around_us(self, url: str, tmp_path: Path, held: bool) -> None:
        script = "for i in 1 2 3; do echo before; trinco run x -- sh -c 'echo inside; exec sleep 30'; echo after; done"
        with connect(url) as locks, OnTerminal(url, tmp_path, script=script) as terminal:
            lease = locks.lock("x").try_acquire() if held else None
            terminal.see("before" if held else "inside")
            time.sleep(0.5 if held else 0)  # it has to get as far as waiting
            terminal.type("\x03")
            assert terminal.end() == -signal.SIGINT
            if lease is not None:
                lease.release()
        assert "after" not in terminal.said


class OnTerminal:
    """``trinco run``, or a script of bash's, as the leader of a session on a terminal of its own."""

    def __init__(self, url: str, folder: Path, *arguments: str, script: str = "") -> None:
        self.said = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environment = {**os.environ, "TRINCO_URL": url}
            if script:
                trinco = f'trinco() {{ {sys.executable} -m trinco "$@"; }}'
                os.execvpe("bash", ["bash", "-c", f"{trinco}; {script}"], environment)
            os.execve(sys.executable, [*TRINCO, "run", *arguments], environment)

    def __enter__(self) -> "OnTerminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def see(self, words: str) -> None:
        eventually(lambda: self._read() and words in self.said, f"'{words}' on the terminal, which has {self.said!r}")

    def _read(self) -> bool:
        if select.select([self.terminal], [], [], 0)[0]:
            with suppress(OSError):  # the last one has closed it
                self.said += os.read(self.terminal, 4096).decode()
        return True

    def end(self) -> int:
        def ended() -> Any:
            self._read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return (status,) if pid else None

        (status,) = eventually(ended, "trinco ends")
        self.pid = 0
        return os.waitstatus_to_exitcode(status)
