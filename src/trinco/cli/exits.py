"""The exit codes, as the README lists them. 64 and up follow sysexits.h."""

DONE = 0
VIOLATED = 1
INCONCLUSIVE = 3
USAGE = 64
DAMAGED_DATA = 65
UNAVAILABLE = 69
BUG = 70
CANNOT_WRITE = 74
NOT_ACQUIRED = 75
LOST = 76
KEYS = 77
"""Or a permission that we do not have."""
CONFIG = 78
NOT_EXECUTABLE = 126
NOT_FOUND = 127
BY_SIGNAL = 128
"""And the number of the signal."""
INTERRUPTED = 130
