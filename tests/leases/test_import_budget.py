"""What lies on the path of ``trinco run`` must load in no time: see the import budget of the design."""

import subprocess
import sys

PATH = [
    "trinco.leases.client",
    "trinco.leases.terms",
    "trinco.leases.item",
    "trinco.leases.bases.one_access",
    "trinco.leases.bases.conditional",
    "trinco.leases.bases.transactional",
    "trinco.leases.bases.object_store",
    "trinco.leases.bases.queue",
    "trinco.leases.bases.catalogue",
]
FORBIDDEN = {
    "typing",
    "dataclasses",
    "msgspec",
    "json",
    "asyncio",
    "logging",
    "subprocess",
    "pathlib",
    "inspect",
    "rich",
}
FORBIDDEN |= {"nacl", "hmac", "hashlib", "uuid", "secrets", "random", "socket", "tomllib"}


def loaded_by(code):
    """The modules that a bare interpreter has loaded after it ran this."""
    call = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}; print(*sys.modules)"]
    return set(subprocess.run(call, capture_output=True, text=True, check=True).stdout.split())


def test_leases_load_nothing_heavy():
    loaded = loaded_by(f"import {', '.join(PATH)}") - loaded_by("pass")
    assert "trinco.leases.client" in loaded
    assert loaded & FORBIDDEN == set()
