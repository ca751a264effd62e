"""The base algorithms by name. Each is loaded when it is asked for: most programs use one."""

from trinco.core.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BASES = {
    "object": "object_store:ObjectStore",
    "queue": "queue:Queue",
    "conditional": "conditional:Conditional",
    "transactional": "transactional:Transactional",
    "one-access": "one_access:OneAccess",
    "handing-over": "handing_over:HandingOver",
}
"""In which module here, and what it is called there."""
RUN_CODE = ("one-access", "handing-over")
"""The stores of these kinds run operations by themselves, in one access."""


def find(name: str) -> "Any":
    if name not in BASES:
        raise UsageError(f"there is no base algorithm '{name}'; there are {', '.join(BASES)}")
    from importlib import import_module

    module, _, kind = BASES[name].partition(":")
    return getattr(import_module(f"trinco.leases.bases.{module}"), kind)
