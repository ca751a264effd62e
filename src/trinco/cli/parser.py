"""The argument parser of every command: one line for an error, exit 64, and help that keeps its examples."""

import argparse
import sys

from trinco.cli import exits
from trinco.core.errors import UsageError
from trinco.core.nearest import suggest
from trinco.core.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

WIDTH = 100

argparse._ = str  # type: ignore[attr-defined]  # our help is English: to look for translations takes a millisecond


class Help(argparse.RawDescriptionHelpFormatter):
    """Of a fixed width: to ask the terminal loads ``shutil``, and every ``add_argument`` would do so."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=WIDTH)


class Parser(argparse.ArgumentParser):
    def __init__(self, **options: object) -> None:
        super().__init__(formatter_class=Help, **options)  # type: ignore[arg-type]

    def parse_args(self, args: "Any" = None, namespace: "Any" = None) -> "Any":
        options, rest = self.parse_known_args(args, namespace)
        odd = next((each for each in rest if each.startswith("-")), None)
        if odd is not None:
            name = odd.partition("=")[0]
            self.error(f"there is no option '{name}'{suggest(name, self._option_string_actions)}")
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return options

    def _parse_optional(self, arg_string: str) -> "Any":
        """-1s is no option, but a duration that somebody may be told is wrong; argparse knows that of -1 only."""
        return None if arg_string[:1] == "-" and arg_string[1:2].isdigit() else super()._parse_optional(arg_string)

    def _get_values(self, action: argparse.Action, arg_strings: "list[str]") -> "Any":
        """Two dashes that belong to an option (``--wait=--``) are its value, and a wrong one. Before Python 3.13
        argparse takes them for the end of the options, and the option gets an empty list instead of its type."""
        if not (action.option_strings and arg_strings == ["--"]):
            return super()._get_values(action, arg_strings)
        value = self._get_value(action, "--")
        self._check_value(action, value)
        return value

    def _check_value(self, action: argparse.Action, value: "Any") -> None:
        """The choices of an option, and the names of commands."""
        if action.choices is not None and value not in action.choices:
            known = [str(each) for each in action.choices]
            raise argparse.ArgumentError(
                action, f"there is no '{value}'{suggest(str(value), known)} (there are {', '.join(known)})"
            )

    def error(self, message: str) -> "NoReturn":
        sys.stderr.write(f"{self.prog}: {printable(message)} (see '{self.prog} --help')\n")
        sys.exit(exits.USAGE)


def whole(low: int, what: str, high: int | None = None) -> "Callable[[str], int]":
    """An argument type: a whole number that is at least ``low``, and at most ``high``."""

    def parse(text: str) -> int:
        try:
            number = int(text.replace("_", ""))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{what} is a whole number, not '{text}'") from None
        if number < low:
            raise argparse.ArgumentTypeError(f"{what} must be at least {low}, not {number}")
        if high is not None and number > high:
            raise argparse.ArgumentTypeError(f"{what} must be at most {high:,}, not {number:,}")
        return number

    return parse


def positive(what: str) -> "Callable[[str], float]":
    """An argument type: a number above zero."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{what} is a number, not '{text}'") from None
        if not number > 0:
            raise argparse.ArgumentTypeError(f"{what} must be above 0, not {text}")
        return number

    return parse


def usage(parse: "Callable[[str], object]") -> "Callable[[str], object]":
    """An argument type from a function that raises :class:`UsageError`."""

    def argument(text: str) -> object:
        try:
            return parse(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return argument


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of text for people")


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="change a setting of the protocol ('trinco protocols NAME' shows them); can be repeated",
    )
