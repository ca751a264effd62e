"""The user's keyring, in a file that only the user can read."""

import os
import stat

from trinco.core.errors import DamagedData, KeysMissing
from trinco.leases.keys import KEY_BYTES, Ed25519Key, Keyring, MacKey, dump, load
from trinco.locks.folders import config_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trinco.leases.keys import SigningKey

NAME = "keys.json"
LONGEST = 2**20
"""Characters. Thousands of keys take less."""
PUBLIC = bytes(KEY_BYTES)
"""The key of a quorum without authentication: everybody knows it, so it says nothing about who wrote an entry."""


def keyring_path(path: str | None = None) -> str:
    return path or os.environ.get("TRINCO_KEYS") or os.path.join(config_folder(), NAME)


def keys_command(action: str, path: str) -> str:
    """What to type, to do this to this very keyring."""
    usual = keyring_path()
    if path == usual or path == os.path.abspath(usual):
        return f"trinco keys {action}"
    from shlex import quote

    return f"trinco keys {action} --file {quote(path)}"


def read_keyring(path: str) -> Keyring:
    """What the file holds; an empty keyring where there is none."""
    try:
        with open(path, encoding="utf-8", opener=_without_waiting) as file:
            _require_private(path, os.fstat(file.fileno()).st_mode)
            text = file.read(LONGEST + 1)
    except FileNotFoundError:
        return Keyring()
    except OSError as error:
        raise KeysMissing(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DamagedData(f"{path}: the keyring is not text: it was cut or edited; restore it from a copy") from None
    if len(text) > LONGEST:
        raise DamagedData(f"{path}: this is no keyring: none is longer than {LONGEST:,} characters")
    try:
        return load(text)
    except DamagedData as error:
        raise DamagedData(f"{path}: {error}") from None


def _without_waiting(path: str, flags: int) -> int:
    """A pipe would be waited for until somebody writes into it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _require_private(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise KeysMissing(f"{path} is a device or a pipe, and a keyring is a file: name another one")
    if mode & 0o077:
        raise KeysMissing(f"{path} can be read by others; a keyring is for its owner alone: chmod 600 {path}")


def change_keyring(path: str, change: "Callable[[Keyring], Keyring]") -> Keyring:
    """Read the file, change it and replace it, while nobody else does; all or nothing."""
    import fcntl

    path = os.path.realpath(path)  # a symbolic link stays one, and whoever goes by another waits for the same file
    change(read_keyring(path))  # what is refused leaves nothing behind
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    with open(f"{path}.lock", "a", opener=_private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = read_keyring(path)
        after = change(before)
        if after != before:
            write_keyring(after, path)
        return after


def write_keyring(keyring: Keyring, path: str) -> None:
    """Replace the file at once or not at all."""
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    draft = f"{path}.{os.urandom(6).hex()}"
    try:
        with open(draft, "w", encoding="utf-8", opener=_private) as file:
            file.write(dump(keyring))
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def new_key(kind: str) -> "SigningKey":
    return (Ed25519Key if kind == "ed25519" else MacKey)(os.urandom(KEY_BYTES))


def keyring_for(auth: str, path: str | None, tell: "Callable[[str], object] | None" = None) -> Keyring:
    """The keyring that a quorum signs with; the shared secret is made on first use, and said so: to ``tell``, or else
    on standard error."""
    if auth == "none":
        return Keyring(MacKey(PUBLIC))
    place = keyring_path(path)
    keyring = read_keyring(place)
    if auth == "ed25519":
        if not isinstance(keyring.own, Ed25519Key):
            way = keys_command(f"{'make' if keyring.own is None else 'rotate'} --kind ed25519", place)
            raise KeysMissing(f"{place} has no Ed25519 key of our own to sign with: {way}")
        return keyring
    if keyring.own is None:
        keyring = _first_secret(place, tell)
    if not isinstance(keyring.own, MacKey):
        shared = next((key for key in keyring.trusted if isinstance(key, MacKey)), None)
        if shared is None:
            way = keys_command("import", place)
            raise KeysMissing(f"{place} has no shared secret: {way}, with the line of another host")
        keyring = Keyring(shared, tuple(key for key in keyring.trusted if key is not shared))
    return keyring


def _first_secret(path: str, tell: "Callable[[str], object] | None" = None) -> Keyring:
    """Of several processes that want one at once, one makes it, and it is everybody's."""
    made = new_key("secret")

    def add(keyring: Keyring) -> Keyring:
        return keyring if keyring.own is not None else Keyring(made, keyring.trusted)

    try:
        keyring = change_keyring(path, add)
    except OSError as error:
        raise KeysMissing(f"{path} cannot be written: {error.strerror}") from None
    if keyring.own == made:
        (tell or _say)(
            f"made a shared secret in {path}; whoever else uses these stores needs it too: "
            f"'{keys_command('export', path)}' here, 'trinco keys import' there"
        )
    return keyring


def _say(text: str) -> None:
    """One line for people, if anybody reads it."""
    import sys

    try:
        if sys.stderr is not None:
            sys.stderr.write(f"trinco: {text}\n")
    except OSError:
        return
