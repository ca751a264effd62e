"""What SQLite keeps beside a file while it is open: its log, and the index of that.

Whoever removes them takes nothing away from those who have them open, and gives others to those who come next: then
the two exclude each other no more. SQLite itself removes them only when nobody has the file open.
"""

import os
from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    Identity = tuple[int, int]
    """The device and the number of a file."""

COMPANIONS = ("-wal", "-shm")
NOWHERE = (0, 0)
"""Where there is no file."""


class Companions:
    """Which files beside a file its connections in this process use: SQLite maps the index once for all of them, as it
    was when the first of them was opened. Each holds this object for as long as it is open."""

    __slots__ = ("__weakref__", "found")

    def __init__(self, found: "tuple[Identity, ...]") -> None:
        self.found = found


_in_use: "dict[Identity, ref[Companions]]" = {}


def companions_of(file: "Identity", found: "tuple[Identity, ...]") -> Companions:
    """Those in use for this file; the ones that were found if nobody here has it open."""
    known = _in_use.get(file)
    companions = None if known is None else known()
    if companions is None:
        companions = Companions(found)
        for each in [each for each, known in _in_use.items() if known() is None]:
            del _in_use[each]
        _in_use[file] = ref(companions)
    return companions


def found_beside(path: str) -> "tuple[Identity, ...]":
    return tuple(identity_of(path + companion) for companion in COMPANIONS)


def identity_of(path: str) -> "Identity":
    try:
        found = os.stat(path)
    except OSError:
        return NOWHERE
    return found.st_dev, found.st_ino
