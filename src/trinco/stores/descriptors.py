"""How many more files this process may open. The system tells whoever opens one; SQLite and libpq do not pass it on."""

import os
from errno import EMFILE, ENFILE

USED_UP = (EMFILE, ENFILE)
ADVICE = "too many files are open here: close some, or allow more of them (ulimit -n)"


def are_used_up(needed: int) -> bool:
    """Whether fewer than so many are left."""
    opened = []
    try:
        for _ in range(needed):
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in USED_UP
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return False
