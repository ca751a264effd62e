"""The exit codes, as the README lists them. 64 and up follow sysexits.h."""

DONE = 0
VIOLATED = 1
INCONCLUSIVE = 3
USAGE = 64
DAMAGED_DATA = 65
BUG = 70
KEYS = 77
INTERRUPTED = 130
