"""Faults and requests as they are written on the command line."""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from trinco.cli.leases import refuse_second_lie
from trinco.core.errors import UsageError
from trinco.core.nearest import suggest
from trinco.core.node import Node
from trinco.protocols.catalogue import Entry
from trinco.sim.faults import Crash, Drift, Fault, Partition, Pause, Restart, Slow, validate
from trinco.sim.laws import Constant, Exponential
from trinco.sim.workload import Closed, Elections, OneShot, Open, Scripted, Workload, saturated

HELP = (
    "crash:NODE@TIME, crash:NODE@TIME/SENDS (dies in a multi-send, after so many), restart:NODE@TIME, "
    "pause:NODE@TIME+LASTS, slow:NODE@TIME+LASTS*FACTOR, drift:NODE*RATE, "
    "partition:0,1|2,3@TIME+LASTS (with ! at the end messages are lost, not held back)"
)
USES = {
    "closed": ("entries", "think", "hold"),
    "saturated": ("entries", "hold"),
    "open": ("entries", "rate", "hold"),
    "one-shot": ("hold",),
}
"""Which flags each workload makes use of."""
NOTICED_AFTER = 1.0
"""From a crash until somebody notices it, where nobody says who does."""

_NUMBER = r"(-?[\d.]+(?:e-?\d+)?)"
_PATTERNS: tuple[tuple[str, Callable[..., Fault]], ...] = (
    (rf"crash:(\d+)@{_NUMBER}", lambda node, at: Crash(int(node), float(at))),
    (rf"crash:(\d+)@{_NUMBER}/(\d+)", lambda node, at, sends: Crash(int(node), float(at), int(sends))),
    (rf"restart:(\d+)@{_NUMBER}", lambda node, at: Restart(int(node), float(at))),
    (rf"pause:(\d+)@{_NUMBER}\+{_NUMBER}", lambda node, at, lasts: Pause(int(node), float(at), float(lasts))),
    (
        rf"slow:(\d+)@{_NUMBER}\+{_NUMBER}\*{_NUMBER}",
        lambda node, at, lasts, factor: Slow(int(node), float(at), float(lasts), float(factor)),
    ),
    (rf"drift:(\d+)\*{_NUMBER}", lambda node, rate: Drift(int(node), float(rate))),
    (
        rf"partition:([\d,|]+)@{_NUMBER}\+{_NUMBER}(!?)",
        lambda groups, at, lasts, drops: Partition(_groups(groups), float(at), float(lasts), bool(drops)),
    ),
)


class Told(NamedTuple):
    """A fault, and the words that asked for it."""

    text: str
    fault: Fault


def parse_fault(text: str) -> Told:
    for pattern, make in _PATTERNS:
        match = re.fullmatch(pattern, text)
        if match:
            try:
                return Told(text, make(*match.groups()))
            except ValueError:
                break
    raise UsageError(f"'{text}' is not a fault; faults are {HELP}")


def parse_ask(text: str) -> tuple[int, float, float]:
    """One request of a script: who, when, held for how long."""
    match = re.fullmatch(rf"(\d+)@{_NUMBER}\+{_NUMBER}", text)
    if not match:
        raise UsageError(f"'{text}' is not a request: give NODE@TIME+HOLD, for example 1@0.5+2")
    node, at, hold = match.groups()
    return int(node), float(at), float(hold)


def parse_notice(text: str) -> tuple[int, float]:
    """Who notices when that a leader is gone."""
    match = re.fullmatch(rf"(\d+)@{_NUMBER}", text)
    if not match:
        raise UsageError(f"'{text}' says neither who nor when: give NODE@TIME, for example 4@1")
    return int(match[1]), float(match[2])


def _groups(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(node) for node in group.split(",")) for group in text.split("|"))


def asked_faults(entry: Entry, n: int, options: argparse.Namespace) -> tuple[Fault, ...]:
    """An election begins because the leader is gone, unless something else was asked for."""
    for told in options.fault:
        _refuse_senseless(told, n)
    if not options.crashes:
        _refuse_idle_restarts(options.fault)
    if entry.claims.elects and not (options.fault or options.crashes):
        return (Crash(n - 1, 0.0),)
    return tuple(told.fault for told in options.fault)


def _refuse_senseless(told: Told, n: int) -> None:
    text, fault = told
    try:
        validate((fault,), n)
    except UsageError as error:
        raise UsageError(f"{text}{str(error).removeprefix(str(fault))}") from None
    members = [node for group in fault.groups for node in group] if isinstance(fault, Partition) else []
    twice = [node for node in members if members.count(node) > 1]
    if twice:
        raise UsageError(f"{text}: node {twice[0]} is named twice, but can be on one side only")


def _refuse_idle_restarts(faults: Sequence[Told]) -> None:
    crashes = [told.fault for told in faults if isinstance(told.fault, Crash)]
    for text, fault in faults:
        if isinstance(fault, Restart) and not any(
            crash.node == fault.node and crash.at <= fault.at for crash in crashes
        ):
            raise UsageError(f"{text}: node {fault.node} has not crashed by then; add --fault crash:{fault.node}@TIME")


def asked_liars(entry: Entry, nodes: Sequence[Node], texts: Sequence[str]) -> dict[int, type[Node]]:
    chosen: dict[int, type[Node]] = {}
    for text in texts:
        liar, strategy = _asked_liar(entry, nodes, text)
        refuse_second_lie(liar, chosen)
        chosen[liar] = strategy
    return chosen


def _asked_liar(entry: Entry, nodes: Sequence[Node], text: str) -> tuple[int, type[Node]]:
    """NODE:STRATEGY, as far as the protocol lists it for such a node."""
    node, _, name = text.partition(":")
    if not node.isdigit() or not name:
        raise UsageError(f"'{text}' does not say who lies and how: give NODE:STRATEGY")
    if name not in entry.strategies:
        known = ", ".join(sorted(entry.strategies)) or "none"
        raise UsageError(
            f"{entry.name} lists no strategy '{name}'{suggest(name, entry.strategies)} (it lists: {known})"
        )
    me, strategy = int(node), entry.strategies[name]
    if me < len(nodes) and not issubclass(strategy, type(nodes[me])):
        raise UsageError(f"p{me} cannot lie as '{name}': it is a {type(nodes[me]).__name__}")
    return me, strategy


def asked_workload(entry: Entry, n: int, faults: Sequence[Fault], options: argparse.Namespace) -> Workload | Elections:
    _refuse_idle_flags(entry, options)
    if entry.claims.elects:
        return _elections(n, faults, options)
    if options.ask:
        return Scripted(tuple(options.ask))
    hold, entries = options.hold or Constant(1.0), options.entries or 100
    match options.workload:
        case "saturated":
            return saturated(entries, hold)
        case "open":
            return Open(entries, options.rate or 0.1, hold)
        case "one-shot":
            return OneShot(hold=hold)
        case _:
            return Closed(entries, options.think or Exponential(5.0), hold)


def _refuse_idle_flags(entry: Entry, options: argparse.Namespace) -> None:
    """What was said and would change nothing."""
    if options.notice and not entry.claims.elects:
        raise UsageError(f"{entry.name} is no election: '--notice' is for those")
    said = [name for name in ("ask", "workload", "entries", "think", "hold", "rate") if getattr(options, name)]
    workload = options.workload or "closed"
    for name in said:
        if entry.claims.elects:
            raise UsageError(f"{entry.name} is an election, in which nobody enters: '--{name}' is for other protocols")
        if options.ask and name != "ask":
            raise UsageError(f"--ask says all that is asked: '--{name}' would change nothing")
        if name not in ("ask", "workload", *USES[workload]):
            raise UsageError(f"a workload that is '{workload}' makes no use of '--{name}'")


def _elections(n: int, faults: Sequence[Fault], options: argparse.Namespace) -> Elections:
    if options.notice:
        return Elections(tuple(options.notice))
    if options.crashes:
        raise UsageError("--crashes come at random times: say with --notice NODE@TIME who notices them, and when")
    return Elections(tuple(_noticing(n, faults)) or ((0, 1.0),))


def _noticing(n: int, faults: Sequence[Fault]) -> Iterator[tuple[int, float]]:
    """After each crash, the first of those who live."""
    for crash in faults:
        if isinstance(crash, Crash):
            at = crash.at + NOTICED_AFTER
            dead = {fault.node for fault in faults if isinstance(fault, Crash) and fault.at <= at}
            yield from ((node, at) for node in [node for node in range(n) if node not in dead][:1])
