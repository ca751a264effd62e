"""How much memory this process holds now."""

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Resident set size; 0 where the system does not tell, and then only the bound on states holds."""
    return _pages(1) * _PAGE


def virtual_bytes() -> int:
    """All that is mapped; 0 where the system does not tell."""
    return _pages(0) * _PAGE


def _pages(column: int) -> int:
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[column])
    except OSError:
        return 0
