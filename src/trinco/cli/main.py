"""``trinco``: finds the command, and turns what goes wrong into one line and an exit code."""

import gc
import os
import sys
from importlib import import_module
from keyword import iskeyword

from trinco import __version__
from trinco.cli import exits
from trinco.cli.parser import Parser
from trinco.core.errors import (
    AcquireTimeout,
    ConfigError,
    DamagedData,
    KeysMissing,
    LeaseLost,
    StoreUnavailable,
    TrincoError,
    UsageError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

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
    "protocols": "the catalogue: every protocol and what its paper claims",
    "sim": "simulate a protocol: metrics, monitors, faults, many seeds",
    "check": "check a protocol exhaustively: every order of every event",
    "exhibit": "flaws kept alive: find their shortest counterexample",
    "planes": "projective planes: whom each node asks, and that any two ask one in common",
    "compare": "the algorithms side by side: claimed, measured, drawn",
    "reproduce": "a paper's tables and figures, beside what we measure",
    "verify": "run the monitors over a recorded trace",
}
"""Each is the module of that name here (with an underscore behind a word that Python keeps for itself), imported only
when it is asked for. It has ``register`` and ``run``, and ``split`` if a command of the user's follows ``--``."""

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

CODES: "tuple[tuple[type[TrincoError], int], ...]" = (
    (DamagedData, exits.DAMAGED_DATA),
    (KeysMissing, exits.KEYS),
    (ConfigError, exits.CONFIG),
    (UsageError, exits.USAGE),
    (StoreUnavailable, exits.UNAVAILABLE),
    (AcquireTimeout, exits.NOT_ACQUIRED),
    (LeaseLost, exits.LOST),
    (TrincoError, exits.VIOLATED),
)
"""The first that fits."""


def main(arguments: "Sequence[str] | None" = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is not None or given[:1] not in (["run"], ["elect"]):
        return _judged(given)
    gc.disable()
    return _leave(_judged(given))


def _judged(arguments: "list[str]") -> int:
    import warnings

    warnings.formatwarning = lambda message, *_: f"trinco: {message}\n"
    try:
        return _main(arguments)
    except TrincoError as error:
        return _complain(str(error), next(code for kind, code in CODES if isinstance(error, kind)))
    except KeyboardInterrupt:
        return _complain("interrupted", exits.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads any more: no second complaint
        return exits.DONE
    except Exception as error:
        if "TRINCO_DEBUG" in os.environ:
            raise
        return _complain(
            f"a bug of ours: {type(error).__name__}: {error}. Please report it, with what TRINCO_DEBUG=1 prints",
            exits.BUG,
        )


def _complain(text: str, code: int) -> int:
    _flush()
    if sys.stderr is not None:
        sys.stderr.write(f"trinco: {' '.join(text.split())}\n")
    return code


def _flush() -> None:
    """What was closed when we were started is None."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _leave(code: int) -> "NoReturn":
    """At once: taking the interpreter down would cost a tenth of the whole run."""
    try:
        _flush()
    finally:
        os._exit(code)


def _main(arguments: "list[str]") -> int:
    if arguments and arguments[0] in COMMANDS:
        return _run(arguments[0], arguments[1:])
    _everything().parse_args(arguments)
    raise UsageError("there is no such command; see 'trinco --help'")


def _run(name: str, arguments: "list[str]") -> int:
    module: Any = import_module(f"trinco.cli.{name}{'_' if iskeyword(name) else ''}")
    parser = Parser(prog=f"trinco {name}")
    module.register(parser)
    command: list[str] = []
    if hasattr(module, "split"):
        arguments, command = module.split(parser, arguments)
    options = parser.parse_args(arguments)
    options.command = command
    code: int = module.run(options)
    return code


def _everything() -> Parser:
    """The parser that knows the names of all commands, for help and for complaints."""
    parser = Parser(prog="trinco", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--version", action="version", version=f"trinco {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary, add_help=False)
    return parser
