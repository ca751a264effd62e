"""Flags of ``trinco check`` that were given and would change nothing: whoever gave them meant something."""

import argparse

from trinco.check.model import Model
from trinco.cli.leases import NAME as LEASE
from trinco.core.errors import UsageError
from trinco.core.node import Node
from trinco.leases.nodes.system import QuorumLease
from trinco.protocols.catalogue import Entry

UNSAID = -1
"""As a number of rounds."""


def refuse_idle_flags(entry: Entry, options: argparse.Namespace) -> None:
    """What was said and would change nothing."""
    if options.byzantine and entry.name != LEASE:
        raise UsageError(f"'--byzantine' is for {LEASE} here; for what others list there is 'trinco sim'")
    if options.no_time and entry.name != LEASE:
        raise UsageError(f"--no-time is for {LEASE}, not for {entry.name}")
    if options.restarts and entry.name == LEASE:
        raise UsageError(f"'--restarts' is not for {LEASE}: a client that crashed does not come back")
    if options.restarts and not options.crashes:
        raise UsageError(f"--restarts {options.restarts}: nobody comes back who has not crashed; give --crashes too")
    if options.restarts > options.crashes:
        raise UsageError(f"--restarts {options.restarts}: there are only {options.crashes} crashes to come back from")
    if options.symmetry and options.no_reductions:
        raise UsageError("--symmetry is a reduction: it contradicts --no-reductions")
    if options.notices and not entry.claims.elects:
        raise UsageError(f"{entry.name} is no election: '--notices' is for those")
    if entry.claims.elects:
        _refuse_flags_of_entries(entry, options)


def _refuse_flags_of_entries(entry: Entry, options: argparse.Namespace) -> None:
    said = {
        "--rounds": options.rounds != UNSAID,
        "-k": options.k is not None,
        "--bypass": options.bypass,
        "--symmetry": options.symmetry,
        "--no-liveness": options.no_liveness,
    }
    for flag, is_said in said.items():
        if is_said:
            raise UsageError(f"{entry.name} is an election, in which nobody enters: '{flag}' is for other protocols")


def refuse_too_many_crashes(n: int, options: argparse.Namespace) -> None:
    if options.crashes > n + options.restarts:
        back = f", of which {options.restarts} come back" if options.restarts else ""
        raise UsageError(f"--crashes {options.crashes}: there are only {n} nodes{back}")


def refuse_idle_fires(entry: Entry, model: Model, options: argparse.Namespace) -> None:
    if options.fires is not None and not has_timers(model):
        raise UsageError(f"--fires {options.fires}: {entry.name} sets no timer that could fire")


def has_timers(model: Model) -> bool:
    return any(type(node).on_timer is not Node.on_timer for node in model.nodes)


def refuse_idle_drifting(options: argparse.Namespace, system: QuorumLease) -> None:
    if options.drifting > system.clients:
        raise UsageError(f"--drifting {options.drifting}: there are only {system.clients} clients")
    if not options.drift:
        raise UsageError(f"--drifting {options.drifting}: no clock drifts; give --drift too")
