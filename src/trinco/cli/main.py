"""``trinco``: finds the command, and turns what goes wrong into one line and an exit code."""

import gc
import os
import sys
from errno import EMFILE, ENFILE
from importlib import import_module
from keyword import iskeyword

from trinco import __version__
from trinco.cli import exits
from trinco.cli.parser import Parser
from trinco.cli.streams import CannotWrite, prepare_streams, say
from trinco.core.errors import (
    AcquireTimeout,
    ConfigError,
    DamagedData,
    KeysMissing,
    LeaseLost,
    StoreForbidden,
    StoreUnavailable,
    TrincoError,
    UsageError,
    WorkersLost,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

LAB = {
    "protocols": "the catalogue: every protocol and what its paper claims",
    "sim": "simulate a protocol: metrics, monitors, faults, many seeds",
    "check": "check a protocol exhaustively: every order of every event",
    "exhibit": "flaws kept alive: find their shortest counterexample",
    "planes": "projective planes: whom each node asks, and that any two ask one in common",
    "compare": "the algorithms side by side: claimed, measured, drawn",
    "reproduce": "a paper's tables and figures, beside what we measure",
    "verify": "run the monitors over a recorded trace",
}
COMMANDS = {
    "run": "run a command while holding a lock",
    "elect": "run a command while leading: one of many runs, the others stand by",
    "status": "who holds a lock, and who waits for it",
    "list": "every lock that the stores know of",
    "wait": "wait until a lock is free",
    "break": "take a lock away from whoever holds it",
    "health": "what each store is worth: down, slow, or caught lying",
    "doctor": "find out whether a store is fit to lock on",
    "keys": "the keys that sign what is written to a quorum",
    **LAB,
}
"""Each is the module of that name here (with an underscore behind a word that Python keeps for itself), imported only
when it is asked for. It has ``register`` and ``run``, and ``split`` if a command of the user's follows ``--``."""

NO_VERDICT = (
    "out of memory, so there is no verdict: allow more, or ask for less (fewer nodes, rounds or entries; "
    "'sim --no-trace' keeps no trace)",
    exits.INCONCLUSIVE,
)
NO_ROOM = (
    "out of memory, and what was asked may be done in part: allow more (ulimit -v), and look with 'trinco status'",
    exits.UNAVAILABLE,
)
"""What is said where memory runs out: in the lab, and where it is about locks."""

DESCRIPTION = (
    "Distributed mutual exclusion: locks on what you already have, and a lab in which every algorithm is one piece of "
    "code, in a simulator and in a model checker."
)
EXAMPLES = """examples:
  trinco run nightly -- ./backup.sh
  trinco protocols
  trinco sim ricart-agrawala -n 5
  trinco check ricart-agrawala -n 3 --rounds 2
  trinco exhibit ricart-agrawala/no-tie-break
"""

OWN_OPTIONS = ("-h", "--help", "--version")
"""What stands before a command, or rather instead of one."""

CODES: "tuple[tuple[type[TrincoError], int], ...]" = (
    (CannotWrite, exits.CANNOT_WRITE),
    (DamagedData, exits.DAMAGED_DATA),
    (KeysMissing, exits.KEYS),
    (ConfigError, exits.CONFIG),
    (UsageError, exits.USAGE),
    (StoreForbidden, exits.KEYS),
    (StoreUnavailable, exits.UNAVAILABLE),
    (AcquireTimeout, exits.NOT_ACQUIRED),
    (LeaseLost, exits.LOST),
    (WorkersLost, exits.INCONCLUSIVE),
    (TrincoError, exits.VIOLATED),
)
"""The first that fits."""


def main(arguments: "Sequence[str] | None" = None, loaded: "Callable[[], object]" = lambda: None) -> int:
    """``loaded`` is called when all that the command needs is there, and an interrupt can be told in a line."""
    if arguments is not None:
        return _judged(list(arguments), loaded)
    prepare_streams()
    given = sys.argv[1:]
    if given[:1] not in (["run"], ["elect"]):
        return _judged(given, loaded)
    gc.disable()
    os._exit(_judged(given, loaded))  # at once: taking the interpreter down would cost a tenth of the whole run


def _judged(arguments: "list[str]", loaded: "Callable[[], object]") -> int:
    try:
        if arguments and arguments[0] in COMMANDS:
            _module(arguments[0])
        loaded()
        return _shown(arguments)
    except TrincoError as error:
        return _complain(str(error), next(code for kind, code in CODES if isinstance(error, kind)))
    except KeyboardInterrupt:
        return _complain("interrupted", exits.INTERRUPTED)
    except MemoryError:
        return _complain(*(NO_VERDICT if arguments and arguments[0] in LAB else NO_ROOM))
    except Exception as error:
        if "TRINCO_DEBUG" in os.environ:
            raise
        if getattr(error, "errno", None) in (EMFILE, ENFILE):
            return _complain("too many files are open here: allow more of them (ulimit -n)", exits.UNAVAILABLE)
        return _complain(
            f"a bug of ours: {type(error).__name__}: {error}. Please report it, with what TRINCO_DEBUG=1 prints",
            exits.BUG,
        )


def _complain(text: str, code: int) -> int:
    try:  # noqa: SIM105 (contextlib takes long to load)
        sys.stdout.flush()
    except CannotWrite:
        pass  # what went wrong before that matters more
    say(text)
    return code


def _shown(arguments: "list[str]") -> int:
    """The command's exit code, when all that it printed has arrived."""
    try:
        code = _main(arguments)
    except SystemExit:  # so ends who was asked for help
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return code


def _main(arguments: "list[str]") -> int:
    if arguments and arguments[0] in COMMANDS:
        return _run(arguments[0], arguments[1:])
    if arguments[:1] == ["help"]:
        raise UsageError(_way_to_help(arguments[1:]))
    if arguments and arguments[0].startswith("-") and not any(own.startswith(arguments[0]) for own in OWN_OPTIONS):
        raise UsageError(_way_to_options(arguments))
    _everything().parse_args(arguments)
    raise UsageError("there is no such command; see 'trinco --help'")


def _way_to_help(topics: "list[str]") -> str:
    if topics and topics[0] in COMMANDS:
        return f"'trinco {topics[0]} --help' tells what it does"
    return "'trinco --help' lists the commands, and 'trinco COMMAND --help' tells what one does"


def _way_to_options(arguments: "list[str]") -> str:
    command = next((each for each in arguments if each in COMMANDS), "COMMAND")
    return f"options come after the command: trinco {command} {arguments[0]} ... (see 'trinco --help')"


def _run(name: str, arguments: "list[str]") -> int:
    module = _module(name)
    parser = Parser(prog=f"trinco {name}")
    module.register(parser)
    command: list[str] = []
    if hasattr(module, "split"):
        arguments, command = module.split(parser, arguments)
    options = parser.parse_args(arguments)
    options.command = command
    code: int = module.run(options)
    return code


def _module(name: str) -> "Any":
    return import_module(f"trinco.cli.{name}{'_' if iskeyword(name) else ''}")


def _everything() -> Parser:
    """The parser that knows the names of all commands, for help and for complaints."""
    parser = Parser(prog="trinco", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--version", action="version", version=f"trinco {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary, add_help=False)
    return parser
