"""The base algorithms by name."""

from trinco.core.errors import UsageError
from trinco.leases.bases.conditional import Conditional
from trinco.leases.bases.object_store import ObjectStore
from trinco.leases.bases.one_access import OneAccess
from trinco.leases.bases.queue import Queue
from trinco.leases.bases.transactional import Transactional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BASES: "dict[str, Any]" = {
    "object": ObjectStore,
    "queue": Queue,
    "conditional": Conditional,
    "transactional": Transactional,
    "one-access": OneAccess,
}


def find(name: str) -> "Any":
    if name not in BASES:
        raise UsageError(f"there is no base algorithm '{name}'; there are {', '.join(BASES)}")
    return BASES[name]
