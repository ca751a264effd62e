"""``trinco run``: a command under a lock."""

import argparse
import os
import signal

from trinco.cli import exits
from trinco.cli.child import ENDING, Interrupted, Signals, Terminal
from trinco.cli.holding import IGNORE, KILL, TERM, Holding
from trinco.cli.parser import Parser, usage, whole
from trinco.cli.services import add_service, open_service
from trinco.cli.streams import say, say_nothing
from trinco.core.duration import in_words, seconds
from trinco.core.errors import ConfigError, StoreUnavailable, UsageError
from trinco.locks.agenda import NEVER
from trinco.locks.books import GLANCE
from trinco.locks.hub import Hub
from trinco.locks.names import require_name, shown
from trinco.locks.service import LockService, connect, slots
from trinco.locks.waiting import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trinco.locks.inspection import LockInfo
    from trinco.locks.lease import Lease
    from trinco.locks.options import Options
    from trinco.locks.waiting import Sleeper

KILL_AFTER = 5.0
PARTING = 0.5
"""How long stores are waited for by somebody who has waited for them already."""
LOOK_ON = 1.0
"""How long whoever waits may be kept from it by a look at whom it waits for."""
MOST_NAMED = 3

EXAMPLES = """examples:
  trinco run nightly -- ./backup.sh --full          wait for the lock, run, give it back
  trinco run -n nightly -- ./backup.sh              exit 75 at once if somebody holds it
  trinco run -w 10m --max-hold 2h nightly -- make   wait at most 10 minutes, run at most 2 hours
  trinco run -k 4 gpu -- python train.py            at most four at a time
  trinco run -u redis://locks.example/0 nightly -- sh -c 'curl -H "Fence: $TRINCO_TOKEN" ...'

The command runs without a shell, in a process group of its own, with TRINCO_NAME, TRINCO_TOKEN (a number that rises
with every grant: let the resource refuse a smaller one), TRINCO_EXPIRES (seconds since 1970, as of the start) and, with
-k, TRINCO_SLOT. Signals are passed on to it. When it ends, what it left behind in its group is ended too, and then the
lock is given back.

If the lock is lost, the command is ended before anybody else can have it, even when trinco itself is killed, and so is
all that it has started. A process that starts a session of its own (setsid, daemons) is out of reach: it goes on.

exit: the command's own; 128+n if it ended by signal n; 126, 127 it could not be started; 75 the lock was not had;
76 it was lost and the command was ended; 64 usage; 69 store unavailable; 77 keys or permission; 78
configuration
"""


class Words:
    """How a command speaks of what it holds."""

    def __init__(self, thing: str, held: str, granted: str, released: str) -> None:
        self.thing = thing
        self.held = held
        self.granted = granted
        self.released = released


class Attentive(Waiting):
    """Waits as ever; but a signal ends it, at a point where nothing is half done, and somebody may look on. Stores that
    were waited for in vain are not waited for again: what we told them they hear of anyhow, and we are to end.
    ``tells_why``: whether it is the lock that is waited for, and somebody wants to know why."""

    __slots__ = ("_is_in_haste", "_polled", "_signals", "look", "tells_why")

    def __init__(self, hub: Hub, signals: Signals) -> None:
        super().__init__(hub)
        self._signals = signals
        self._polled: object = None
        self._is_in_haste = False
        self.tells_why = False
        self.look: Callable[[], None] | None = None

    def hurry(self) -> None:
        """From here on nothing is waited for but what comes at once."""
        self._is_in_haste = True

    def until(self, done: "Callable[[], bool]", deadline: float = NEVER, *sleepers: "Sleeper") -> bool:
        def is_done() -> bool:
            if done():
                return True
            self._attend()
            if sleepers:
                self._tell_of_trouble()
                if self.look is not None:
                    self.look()
            return False

        limit = min(deadline, self.hub.clock() + PARTING) if self._is_in_haste else deadline
        is_in_time = super().until(is_done, limit, *sleepers)
        if not is_in_time:
            self.hurry()
        return is_in_time

    def _tell_of_trouble(self) -> None:
        """Why a store keeps us waiting, once: who sees nothing happen wants to know."""
        trouble = next(filter(None, self.hub.troubles), None)
        if trouble is not None and self.tells_why:
            self.tells_why = False
            say(f"waiting: {trouble}")

    def _attend(self) -> None:
        try:
            self._signals.interrupt()
        except Interrupted:
            self.hurry()
            raise
        self.hub.start_polling()
        if self._polled is not self.hub.poller:
            self._polled = self.hub.poller
            self.hub.poller.register(self._signals.descriptor, 1)  # POLLIN and EPOLLIN


LOCK = Words("the lock", "is held by", "is ours", "was released")


def register(parser: Parser) -> None:
    parser.description = "Run a command while holding a lock, and give it back when the command ends."
    parser.epilog = EXAMPLES
    add_options(parser)


def add_options(parser: Parser) -> None:
    parser.usage = f"{parser.prog} [options] NAME -- COMMAND [ARGUMENT ...]"
    duration = usage(seconds)
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="the lock's name; one that begins with a dash: -- NAME -- COMMAND")
    add_service(parser)
    patience = parser.add_mutually_exclusive_group()
    patience.add_argument("-n", "--nonblock", action="store_true", help="do not wait: exit 75 if somebody holds it")
    patience.add_argument("-w", "--wait", type=duration, metavar="DURATION", help="wait at most so long (for ever)")
    add("--ttl", type=duration, metavar="DURATION", help="how long the lock outlives a crash of this host (30s)")
    gone = "have the command gone when it has had the lock so long: SIGTERM comes --kill-after before that"
    add("--max-hold", type=duration, metavar="DURATION", help=gone)
    add("-k", type=whole(1, "the number of units"), metavar="N", help="N at a time may hold it (1)")
    add("-E", type=_code, default=exits.NOT_ACQUIRED, metavar="CODE", help="exit with this instead of 75")
    add("--on-lost", choices=(TERM, KILL, IGNORE), default=TERM, help="SIGTERM, SIGKILL, or let it go on (term)")
    ending = "from SIGTERM to SIGKILL (5s, but at most a third of the ttl and of --max-hold)"
    add("--kill-after", type=duration, default=KILL_AFTER, metavar="DURATION", help=ending)
    voice = parser.add_mutually_exclusive_group()
    voice.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    voice.add_argument("-v", "--verbose", action="store_true", help="say who holds it, who waits, what happens")


def _code(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3) or int(text) > 255:
        raise argparse.ArgumentTypeError(f"an exit code is 0 to 255, not '{text}'")
    return int(text)


def split(parser: Parser, arguments: list[str]) -> tuple[list[str], list[str]]:
    """Ours before the first ``--``, the command behind it."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    own, command = arguments[:place], arguments[place + 1 :]
    if not command and "-h" not in own and "--help" not in own:
        parser.error(f"there is no command to run: it comes after two dashes, as in: {parser.prog} NAME -- ./backup.sh")
    return own, command


def run(options: argparse.Namespace) -> int:
    return run_with(options, LOCK)


def run_with(options: argparse.Namespace, words: Words) -> int:
    _judge(options)
    service = open_service(options)
    if any(store.url.startswith("memory:") for store in service.stores):
        raise ConfigError("memory: is within one process, and excludes nobody from another: use sqlite:///locks.db")
    service.desk.keeper = None  # the loop renews: no thread is started
    signals = Signals()
    service.desk.waiting = waiting = Attentive(service.desk.hub, signals)
    try:
        code = _obtain_and_run(service, signals, waiting, options, words)
    finally:
        service.close()  # an attempt that failed may have left something at some store
    if code == exits.INTERRUPTED and Terminal().is_ours():
        _die_of_interrupt()
    return code


def _obtain_and_run(
    service: LockService, signals: Signals, waiting: Attentive, options: argparse.Namespace, words: Words
) -> int:
    try:
        lease = _obtain(service, waiting, options, words)
        signals.keep()
    except Interrupted as interruption:
        return exits.BY_SIGNAL + interruption.number
    if lease is None:
        return _refused(service, options, words)
    return _run(service, lease, signals, waiting, options, words)


def _die_of_interrupt() -> None:
    """A shell goes on with its loop unless whom Ctrl-C has ended has died of it. Its $? is the same."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.raise_signal(signal.SIGINT)


def _judge(options: argparse.Namespace) -> None:
    if options.name is None and options.command[1:2] == ["--"] and len(options.command) > 2:
        options.name, options.command = options.command[0], options.command[2:]
    if options.name is None:
        raise UsageError("there is no NAME of a lock: it comes before the two dashes, as in: NAME -- ./backup.sh")
    for what, amount in (("--wait", options.wait), ("--kill-after", options.kill_after)):
        if amount is not None and amount < 0:
            raise UsageError(f"{what} is at least 0 seconds, not {amount:g}")
    if options.max_hold is not None and not options.max_hold > 0:
        raise UsageError(f"--max-hold is above 0 seconds, not {options.max_hold:g}")


# Getting it


def _resources(options: argparse.Namespace) -> tuple[str, ...]:
    return (require_name(options.name),) if options.k is None else slots(options.name, options.k)


def _obtain(service: LockService, waiting: Attentive, options: argparse.Namespace, words: Words) -> "Lease | None":
    terms = service.options({"ttl": options.ttl, "max_hold": options.max_hold})
    patience = 0.0 if options.nonblock else options.wait
    if not options.verbose or patience == 0:
        return _ask(service, waiting, options, terms, patience)
    from trinco.cli.onlooker import Onlooker

    with connect(options.url, config=options.config, tell=say_nothing) as other:
        other.desk.keeper = None
        onlooker = Onlooker(lambda: _news(other, service.desk.hub.client, options, words))
        waiting.look = onlooker.look
        try:
            return _ask(service, waiting, options, terms, patience)
        finally:
            waiting.look = None


def _ask(
    service: LockService, waiting: Attentive, options: argparse.Namespace, terms: "Options", patience: float | None
) -> "Lease | None":
    waiting.tells_why = patience != 0 and not options.quiet
    try:
        return service.desk.obtain(options.name, _resources(options), terms, patience)
    finally:
        waiting.tells_why = False


def _refused(service: LockService, options: argparse.Namespace, words: Words) -> int:
    """Time is over, and what is in the way decides the code: that a lock is in use may be as good as done for whoever
    asks (``-E 0``), that nobody can tell is not. Who did not wait was told by the store that it is in use."""
    code: int = options.E
    troubles = {base: why for base, why in enumerate(service.desk.hub.troubles) if why}
    try:
        told = situation(service, options, words, troubles)
    except StoreUnavailable as error:
        told = f"whether {words.thing} '{options.name}' is in use cannot be told: {error}"
        code = exits.UNAVAILABLE if options.wait else code
    if code == exits.UNAVAILABLE or not options.quiet:
        say((f"not had within {in_words(options.wait)}: " if options.wait else "") + told)
    return code


def situation(
    service: LockService, options: argparse.Namespace, words: Words, troubles: "dict[int, str] | None" = None
) -> str:
    """Who holds it, since when, with which token, for how long. ``troubles``: which stores gave nothing out, and why.
    Some of them can be looked at meanwhile; that nobody holds it there does not tell that somebody did."""
    infos = [info for info in _looks(service, options, GLANCE) if info.held]
    if not infos and troubles and len(service.stores) - len(troubles) < service.desk.quorum:
        raise service.desk.unavailable(troubles, set())
    if not infos:
        return f"{words.thing} '{options.name}' was in use and may be free by now"
    odd = next((f" ({info.why})" for info in infos if info.why), "")
    told = ", ".join(map(_holder, infos[:MOST_NAMED]))
    more = f" and {len(infos) - MOST_NAMED} more" if len(infos) > MOST_NAMED else ""
    return f"{words.thing} '{options.name}' {words.held} {told}{more}{odd}"


def _looks(service: LockService, options: argparse.Namespace, patience: float) -> "list[LockInfo]":
    """At everything that we would take, without waiting long for a store that says nothing: others wait for us."""
    desk = service.desk
    return [desk.look(resource, patience).info(desk.hub, service.enough) for resource in _resources(options)]


def _news(other: LockService, me: str, options: argparse.Namespace, words: Words) -> tuple[object, str]:
    """For whoever waits: who is in the way, and what to say about it. ``other`` is a service of its own."""
    infos = _looks(other, options, LOOK_ON)
    if any(info.owner in (me, None) for info in infos):
        return None, ""  # our turn has come
    waiters = max((info.waiters for info in infos), key=len)
    ahead = waiters[: waiters.index(me)] if me in waiters else waiters
    before_us = f"; before us: {', '.join(map(shown, ahead))}" if ahead else ""
    holders = [(info.owner, info.token) for info in infos]
    return (holders, ahead), f"waiting: {situation(other, options, words)}{before_us}"


def _holder(info: "LockInfo") -> str:
    since = "" if info.age is None else f" for {in_words(info.age)}"
    token = "" if info.token is None else f"token {info.token}, "
    return f"{shown(info.owner)}{since} ({token}{in_words(info.remaining)} left unless it is renewed)"


# Holding it


def _run(
    service: LockService,
    lease: "Lease",
    signals: Signals,
    waiting: Attentive,
    options: argparse.Namespace,
    words: Words,
) -> int:
    name, what = options.name, f"{words.thing} '{options.name}'"
    if options.verbose:
        say(f"{what} {words.granted}" + ("" if lease.token is None else f", with token {lease.token}"))
    early = [number for number in signals.take() if number in ENDING]
    if early:
        lease.release()
        return exits.BY_SIGNAL + early[0]
    holding = Holding(
        service.desk,
        lease,
        signals,
        what=what,
        on_lost=options.on_lost,
        kill_after=_kill_after(options, lease),
        verbose=options.verbose,
    )
    try:
        holding.start(options.command, _environment(lease, name))
    except OSError as error:
        lease.release()
        return _not_started(options.command[0], error)
    code = holding.wait()
    holding.give_back()
    if holding.is_cut_off:
        waiting.hurry()
    if options.verbose and not (holding.is_lost or holding.is_owed):
        say(f"the command ended with {code} and {what} {words.released}")
    return code


def _kill_after(options: argparse.Namespace, lease: "Lease") -> float:
    """A third of the time at most: the command should have most of it."""
    longest = lease.options.ttl if lease.options.max_hold is None else min(lease.options.ttl, lease.options.max_hold)
    asked: float = options.kill_after
    return min(asked, longest / 3)


def _environment(lease: "Lease", name: str) -> dict[str, str]:
    import time

    environment = dict(os.environ)
    environment["TRINCO_NAME"] = name
    environment["TRINCO_EXPIRES"] = f"{time.time() + lease.remaining:.3f}"
    told = {"TRINCO_TOKEN": lease.token, "TRINCO_SLOT": lease.slot}
    for variable, value in told.items():
        environment.pop(variable, None)  # a trinco around us may have set its own
        if value is not None:
            environment[variable] = str(value)
    return environment


def _not_started(program: str, error: OSError) -> int:
    if isinstance(error, FileNotFoundError) and not (os.sep in program and os.path.exists(program)):
        meant = f" among the commands; did you mean ./{program}?" if os.path.isfile(program) else ""
        say(f"'{program}' was not found{meant}; the lock was released")
        return exits.NOT_FOUND
    if isinstance(error, FileNotFoundError):
        say(f"'{program}' cannot be run: the interpreter in its first line was not found; the lock was released")
        return exits.NOT_EXECUTABLE
    say(f"'{program}' cannot be run: {error.strerror}; the lock was released")
    return exits.NOT_EXECUTABLE
