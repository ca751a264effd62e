"""Options of ``trinco sim`` and ``trinco check`` for the quorum lease: its stores, its clients, its terms."""

import argparse
from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import Any

from trinco.check.leases import SMALL
from trinco.cli.parser import positive, whole
from trinco.core.errors import DamagedData, UsageError
from trinco.core.nearest import suggest
from trinco.core.trace import MOST_NODES
from trinco.leases.bases.catalogue import BASES
from trinco.leases.keys import Keyring, load
from trinco.leases.nodes.system import QuorumLease
from trinco.leases.terms import Policy
from trinco.protocols.catalogue import Entry

NAME = "quorum-lease"
LEASE_ONLY = (
    "stores",
    "clients",
    "f",
    "ttl",
    "policy",
    "granularity",
    "sigma",
    "rho",
    "token",
    "renewals",
    "drift",
    "drifting",
    "widen",
    "keyring",
)


def add_lease_options(parser: argparse.ArgumentParser, *, small: bool) -> None:
    """``small``: for the checker, where times are ticks and everything starts small."""
    group: Any = parser.add_argument_group("quorum-lease (-n is the number of stores)")
    kinds = ", ".join(BASES)
    group.add_argument("--stores", metavar="KIND,..", help=f"base algorithm, one for all or one each: {kinds}")
    group.add_argument("-f", type=whole(0, "f", MOST_NODES), help="how many stores may lie; needs n >= 3f+1 (1)")
    clients = whole(1, "the number of clients", MOST_NODES)
    group.add_argument("--clients", type=clients, help="how many compete (2)")
    group.add_argument("--ttl", type=positive("ttl"), help="how long a lease lasts (2 ticks)" if small else "(30)")
    policies = [policy.value for policy in Policy]
    default = "once" if small else "priority"
    group.add_argument("--policy", choices=policies, help=f"what to do when an attempt fails ({default})")
    group.add_argument("--granularity", type=float, metavar="G", help="how coarse the stores' clocks are (0)")
    group.add_argument("--sigma", type=float, metavar="S", help="margin against steps of a store's clock (0)")
    group.add_argument("--rho", type=float, help="margin against clock rates (0)" if small else "(0.0004)")
    group.add_argument(
        "--token", action=argparse.BooleanOptionalAction, help="fencing tokens (no)" if small else "(if the stores can)"
    )
    group.add_argument(
        "--quorum-first", dest="widen", action="store_const", const=1.0, help="ask q stores first, the rest if need be"
    )
    if not small:
        group.add_argument("--keyring", type=Path, metavar="FILE", help="sign entries for real, with this keyring")
    if small:
        group.add_argument("--renewals", type=whole(0, "the number of renewals"), help="per client (0)")
        group.add_argument("--drift", type=whole(0, "drift"), metavar="W", help="ticks that clocks may be apart (0)")
        group.add_argument(
            "--drifting",
            type=whole(0, "the number of drifting clocks"),
            metavar="N",
            help="clients whose clocks do (all)",
        )
        group.add_argument("--no-time", action="store_true", help="no clock ticks: leases never run out")


def refuse_lease_options(entry: Entry, options: argparse.Namespace) -> None:
    """They mean nothing to other protocols."""
    used = [name for name in LEASE_ONLY if getattr(options, name, None) is not None]
    if used and entry.name != NAME:
        flag = f"-{used[0]}" if len(used[0]) == 1 else f"--{used[0]}"
        raise UsageError(f"{flag} is for {NAME}, not for {entry.name}")


def quorum_lease(options: argparse.Namespace, *, small: bool) -> QuorumLease:
    """The system that was asked for."""
    system = SMALL if small else QuorumLease(clients=2)
    f = system.f if options.f is None else options.f
    stores = _stores(options, f)
    asked: dict[str, Any] = {
        "clients": options.clients,
        "ttl": options.ttl,
        "policy": None if options.policy is None else Policy(options.policy),
        "granularity": options.granularity,
        "sigma": options.sigma,
        "rho": options.rho,
        "fenced": options.token,
        "widen": options.widen,
        "keyring": _keyring(getattr(options, "keyring", None)),
    }
    if small and options.drift and options.sigma is None:
        asked["sigma"] = 2 * options.drift  # from one end of the window to the other
        asked["ttl"] = options.ttl or 2 + 2 * options.drift
    given = {name: value for name, value in asked.items() if value is not None}
    system = replace(system, stores=stores, f=f, **given)
    system.terms  # noqa: B018 (judges them)
    return system


def _keyring(path: Path | None) -> Keyring | None:
    if path is None:
        return None
    try:
        return load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedData(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _stores(options: argparse.Namespace, f: int) -> tuple[str, ...]:
    kinds = tuple(options.stores.split(",")) if options.stores else ("one-access",)
    for kind in kinds:
        if kind not in BASES:
            raise UsageError(
                f"there is no base algorithm '{kind}'{suggest(kind, BASES)} (there are {', '.join(BASES)})"
            )
    n = options.n or (len(kinds) if len(kinds) > 1 else max(3 * f + 1, 1))
    if len(kinds) not in (1, n):
        raise UsageError(f"-n {n} stores, but --stores names {len(kinds)}: give one for all or one each")
    return kinds * n if len(kinds) == 1 else kinds


def refuse_second_lie(liar: int, chosen: Container[int]) -> None:
    if liar in chosen:
        raise UsageError(f"p{liar} can lie in one way only: name another node, or leave one of the two out")


def liars(entry: Entry, texts: list[str], system: QuorumLease) -> dict[int, str]:
    """Who lies and how: NODE:BEHAVIOUR, or BEHAVIOUR alone for the last store that is still honest."""
    chosen: dict[int, str] = {}
    for text in texts:
        node, colon, name = text.rpartition(":")
        if name not in entry.strategies:
            known = ", ".join(entry.strategies)
            raise UsageError(f"there is no behaviour '{name}'{suggest(name, entry.strategies)} (there are {known})")
        if colon and not node.isdigit():
            raise UsageError(f"'{text}' does not say who lies: give NODE:BEHAVIOUR or BEHAVIOUR")
        honest = [store for store in system.store_ids if store not in chosen]
        if colon and int(node) not in system.store_ids:
            first, last = system.store_ids[0], system.store_ids[-1]
            raise UsageError(f"node {node} is no store; the stores are {first} to {last}")
        if not honest:
            raise UsageError("there are more liars than stores")
        liar = int(node) if colon else honest[-1]
        refuse_second_lie(liar, chosen)
        chosen[liar] = name
    return chosen
