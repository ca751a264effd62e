"""``trinco``: finds the command, and turns what goes wrong into one line and an exit code."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from trinco import __version__
from trinco.cli import exits
from trinco.cli.parser import Parser
from trinco.core.errors import DamagedData, KeysMissing, TrincoError, UsageError

COMMANDS = {
    "protocols": "the catalogue: every protocol and what its paper claims",
    "sim": "simulate a protocol: metrics, monitors, faults, many seeds",
    "check": "check a protocol exhaustively: every order of every event",
    "exhibit": "flaws kept alive: find their shortest counterexample",
    "verify": "run the monitors over a recorded trace",
}
"""Each is the module of that name here, imported only when it is asked for; it has ``register`` and ``run``."""

DESCRIPTION = (
    "Distributed mutual exclusion: one piece of code for each algorithm, in a simulator and in a model checker."
)
EXAMPLES = """examples:
  trinco protocols
  trinco sim ricart-agrawala -n 5
  trinco check ricart-agrawala -n 3 --rounds 2
  trinco exhibit ricart-agrawala/no-tie-break
"""


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    except TrincoError as error:
        return _complain(str(error), _code(error))
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


def _code(error: TrincoError) -> int:
    if isinstance(error, DamagedData):
        return exits.DAMAGED_DATA
    if isinstance(error, KeysMissing):
        return exits.KEYS
    return exits.USAGE if isinstance(error, UsageError) else exits.VIOLATED


def _complain(text: str, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"trinco: {' '.join(text.split())}\n")
    return code


def _main(arguments: list[str]) -> int:
    parser = Parser(prog="trinco", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--version", action="version", version=f"trinco {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, add_help=name == wanted)
        if name == wanted:
            import_module(f"trinco.cli.{name}").register(command)
    options = parser.parse_args(arguments)
    code: int = import_module(f"trinco.cli.{options.command}").run(options)
    return code
