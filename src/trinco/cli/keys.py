"""``trinco keys``: what this user signs with, and whose entries are believed."""

import argparse
import os
import sys

from trinco.cli import exits
from trinco.cli.output import print_json, print_line, print_table
from trinco.cli.parser import Parser, add_json
from trinco.cli.services import add_service
from trinco.cli.streams import say
from trinco.core.errors import ConfigError, DamagedData, KeysMissing, UsageError
from trinco.core.printable import printable
from trinco.leases.keys import Ed25519Key, Ed25519PublicKey, Key, Keyring, MacKey, export, parse_key
from trinco.locks.config import find_service
from trinco.locks.keyfile import change_keyring, keyring_path, keys_command, new_key, read_keyring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = """examples:
  trinco keys make                          a key pair of your own (Ed25519)
  trinco keys show                          fingerprints; which key signs
  trinco keys export                        the line that other hosts need
  trinco keys trust < ana.key               believe what that key signed
  ssh other trinco keys export | trinco keys import
  trinco keys rotate                        sign with a new key; the old one stays to verify with

A quorum signs what it writes: with a secret that all its hosts share (made on first use), or with a key pair for each
user (auth = "ed25519" in trinco.toml). The keyring is a file of the user's config folder that only its owner can read.

exit: 0 done, 64 usage, 65 not a key, 77 there is no such key, or the file cannot be used
"""
KINDS = ("ed25519", "secret")
LONGEST_LINE = 1024
"""Characters, several times what a key takes: some files have no lines, and no end either."""


def register(parser: Parser) -> None:
    parser.description = "The keys that sign lease entries, and those that are believed."
    parser.epilog = EXAMPLES
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    for name, (summary, _) in ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=summary.capitalize() + ".")
        add_service(action)
        action.add_argument("--file", metavar="FILE", help="the keyring, if not the service's or the usual one")
        add_json(action)
        if name in ("make", "rotate"):
            action.add_argument("--kind", choices=KINDS, help="a key pair, or a secret that all hosts share")
        if name in ("trust", "import"):
            action.add_argument("line", nargs="?", default="-", help="the line; from standard input if it is not given")
        if name == "export":
            action.add_argument("fingerprint", nargs="?", help="which key, if not the one that signs")


def run(options: argparse.Namespace) -> int:
    path = _path(options)
    _, action = ACTIONS[options.action]
    action(options, path)
    return exits.DONE


def _path(options: argparse.Namespace) -> str:
    """What was named, what the service names, or the usual place."""
    named = options.file
    if named == "":
        raise UsageError("--file names no file: give a path, or leave it out for the usual keyring")
    if named is None and (options.url is not None or options.config is not None):
        named = find_service(options.url, options.config).keys
    try:
        return os.path.abspath(keyring_path(named))
    except FileNotFoundError:
        raise ConfigError(
            f"'{keyring_path(named)}': the current folder is gone: go to another one, or give the whole path"
        ) from None


# The actions


def _make(options: argparse.Namespace, path: str) -> None:
    def change(keyring: Keyring) -> Keyring:
        if keyring.own is not None:
            raise UsageError(
                f"{path} signs with {keyring.own.fingerprint} already: '{keys_command('rotate', path)}' makes another "
                f"and keeps this one to verify with"
            )
        return Keyring(new_key(options.kind or "ed25519"), keyring.trusted)

    _tell(_changed(path, change), path, options, "made")


def _rotate(options: argparse.Namespace, path: str) -> None:
    def change(keyring: Keyring) -> Keyring:
        if keyring.own is None:
            raise KeysMissing(f"{path} has no key of our own to replace: {keys_command('make', path)}")
        kind = options.kind or ("secret" if isinstance(keyring.own, MacKey) else "ed25519")
        return keyring.rotate(new_key(kind))

    _tell(_changed(path, change), path, options, "rotated to")


def _show(options: argparse.Namespace, path: str) -> None:
    keyring = read_keyring(path)
    if options.json:
        print_json({"file": path, "keys": [_as_dict(key, keyring) for key in _all(keyring)]})
    elif not _all(keyring):
        print_line(f"{path} has no keys: '{keys_command('make', path)}' makes one")
    else:
        rows = [(key.fingerprint, _kind(key), _use(key, keyring)) for key in _all(keyring)]
        print_table(path, ("fingerprint", "kind", "use"), rows, whole=("fingerprint",))


def _export(options: argparse.Namespace, path: str) -> None:
    key = _chosen(read_keyring(path), options.fingerprint, path)
    if isinstance(key, MacKey):
        say("this line is the secret itself: whoever has it can sign. Send it as you would a password")
    line = export(key)
    if options.json:
        print_json({"fingerprint": key.fingerprint, "kind": _kind(key), "line": line})
    else:
        print(line)


def _trust(options: argparse.Namespace, path: str) -> None:
    key = parse_key(_line(options))
    _changed(path, lambda keyring: keyring.trust(key))
    _report(options, path, "trusts", key.fingerprint)


def _import(options: argparse.Namespace, path: str) -> None:
    """A secret becomes what we sign with, unless we have a key pair; what we signed with before stays to verify."""
    key = parse_key(_line(options))

    def change(keyring: Keyring) -> Keyring:
        has_pair = isinstance(keyring.own, Ed25519Key)
        if isinstance(key, Ed25519PublicKey) or (isinstance(key, MacKey) and has_pair):
            return keyring.trust(key)
        return keyring.rotate(key)

    signs = _changed(path, change).own == key
    _report(options, path, "signs with" if signs else "trusts", key.fingerprint)


ACTIONS: "dict[str, tuple[str, Callable[[argparse.Namespace, str], None]]]" = {
    "make": ("make a key of your own, if there is none", _make),
    "show": ("list the keys by their fingerprints, and which of them signs", _show),
    "trust": ("believe entries that this key signed", _trust),
    "export": ("print the line that other hosts need to verify what you sign", _export),
    "import": ("take over the line that another host exported", _import),
    "rotate": ("sign with a new key, and keep the old one to verify with", _rotate),
}


# What they share


def _line(options: argparse.Namespace) -> str:
    """One line. It may be a secret, so nothing here repeats it."""
    text: str = _line_of_stdin() if options.line == "-" else options.line
    if not text.strip():
        raise UsageError("there is no key: give the line that 'trinco keys export' printed, or pipe it in")
    return text


def _line_of_stdin() -> str:
    try:
        line = sys.stdin.readline(LONGEST_LINE)
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}; pipe the line of the key in") from None
    except UnicodeDecodeError:
        raise DamagedData(
            "what was piped in is no text, let alone a key: pipe in what 'trinco keys export' prints"
        ) from None
    if len(line) == LONGEST_LINE:
        raise DamagedData("what was piped in has no end, and is no key: pipe in what 'trinco keys export' prints")
    return line


def _changed(path: str, change: "Callable[[Keyring], Keyring]") -> Keyring:
    """What the file holds after a change that no other process comes between."""
    try:
        return change_keyring(path, change)
    except OSError as error:
        raise KeysMissing(f"{path} cannot be written: {error.strerror}") from None


def _chosen(keyring: Keyring, fingerprint: str | None, path: str) -> "MacKey | Ed25519Key | Ed25519PublicKey":
    if fingerprint is None:
        if keyring.own is None:
            raise KeysMissing(f"{path} has no key of our own: {keys_command('make', path)}")
        return keyring.own
    key = keyring.find(fingerprint)
    if not isinstance(key, MacKey | Ed25519Key | Ed25519PublicKey):
        known = ", ".join(each.fingerprint for each in _all(keyring)) or "none"
        raise KeysMissing(f"{path} has no key '{fingerprint}'; its keys: {known}")
    return key


def _all(keyring: Keyring) -> list[Key]:
    return [*filter(None, [keyring.own]), *keyring.trusted]


def _kind(key: Key) -> str:
    return "shared secret" if isinstance(key, MacKey) else "Ed25519"


def _use(key: Key, keyring: Keyring) -> str:
    return "signs" if key is keyring.own else "verifies"


def _as_dict(key: Key, keyring: Keyring) -> dict[str, object]:
    return {"fingerprint": key.fingerprint, "kind": _kind(key), "signs": key is keyring.own}


def _tell(keyring: Keyring, path: str, options: argparse.Namespace, what: str) -> None:
    """Of a new key of our own, and what others have to do."""
    assert keyring.own is not None
    _report(options, path, what, keyring.own.fingerprint)
    there = "import" if isinstance(keyring.own, MacKey) else "trust"
    here = keys_command("export", path)
    told = f"other hosts need it: '{here}' here, 'trinco keys {there}' there"
    sys.stderr.write(f"trinco: {printable(told)}\n")  # a path keeps its blanks


def _report(options: argparse.Namespace, path: str, what: str, fingerprint: str) -> None:
    if options.json:
        print_json({"file": path, "done": what, "fingerprint": fingerprint})
    else:
        print_line(f"{path}: {what} {fingerprint}")
