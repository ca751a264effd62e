"""``trinco protocols``: the catalogue with its claims."""

import argparse
from enum import Enum
from typing import Any

from trinco.cli import exits
from trinco.cli.leases import LEASE_ONLY
from trinco.cli.leases import NAME as LEASE
from trinco.cli.output import print_facts, print_json, print_table
from trinco.core.claims import Claims
from trinco.core.errors import UsageError
from trinco.protocols.catalogue import ENTRIES, Entry, find
from trinco.protocols.settings import in_words

EXAMPLES = """examples:
  trinco protocols                     a table of all
  trinco protocols ricart-agrawala     everything claimed about one
  trinco protocols --byzantine         which Byzantine strategies each one lists
  trinco protocols --json
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "The catalogue: every protocol and what its paper claims."
    parser.epilog = EXAMPLES
    parser.add_argument("protocol", nargs="?", help="show one protocol")
    parser.add_argument("--byzantine", action="store_true", help="list the Byzantine strategies instead")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of text for people")


def run(options: argparse.Namespace) -> int:
    entries = [find(options.protocol)] if options.protocol else list(ENTRIES)
    if options.byzantine:
        _show_strategies(entries, options.json)
    elif options.json:
        print_json([_as_dict(entry) for entry in entries])
    elif options.protocol:
        _show(entries[0])
    else:
        _table(entries)
    return exits.DONE


def _show_strategies(entries: list[Entry], as_json: bool) -> None:
    rows = [
        (entry.name, name, (kind.__doc__ or "").split("\n")[0])
        for entry in entries
        for name, kind in entry.strategies.items()
    ]
    if as_json:
        print_json([dict(zip(("protocol", "strategy", "what"), row, strict=True)) for row in rows])
    else:
        print_table("Byzantine strategies", ("protocol", "strategy", "what it does"), rows)


def _as_dict(entry: Entry) -> dict[str, object]:
    return {
        "name": entry.name,
        "summary": entry.summary,
        "smallest_n": entry.smallest,
        "strategies": sorted(entry.strategies),
        "settings": {name: _in_words(value) for name, value in entry.settings.items()},
        "claims": entry.claims.as_dict(),
    }


def _table(entries: list[Entry]) -> None:
    headings = ("protocol", "messages per entry", "delay", "crashes", "network", "fairness")
    rows = []
    for entry in entries:
        claims = entry.claims
        network = claims.network.name.lower()
        rows.append(
            (
                entry.name,
                str(claims.messages_per_entry),
                str(claims.delay),
                str(claims.crashes),
                network,
                claims.fairness.value,
            )
        )
    print_table("Protocols and what their papers claim", headings, rows)


def _show(entry: Entry) -> None:
    claims = entry.claims
    print(entry.module.__doc__ or entry.name)
    print_facts([*_common(entry), *([] if claims.elects else _of_exclusion(claims)), ("settings", _settings(entry))])


def _common(entry: Entry) -> list[tuple[str, str]]:
    claims = entry.claims
    return [
        ("paper", claims.paper + (f" ({claims.year})" if claims.year else "")),
        ("network", claims.network.value),
        (f"messages per {'election' if claims.elects else 'entry'}", str(claims.messages_per_entry)),
        ("delay", f"{claims.delay} message times"),
        ("crashes survived", str(claims.crashes)),
        ("Byzantine nodes survived", str(claims.byzantine)),
    ]


def _of_exclusion(claims: Claims) -> list[tuple[str, str]]:
    return [
        ("fairness", claims.fairness.value),
        ("overtaking", f"at most {claims.bypass}" if claims.bypass else "no bound claimed"),
        ("at most inside", str(claims.k)),
        ("deadlock-free", "yes" if claims.deadlock_free else "no"),
        ("starvation-free", "yes" if claims.starvation_free else "no"),
        ("fencing token", "yes" if claims.fencing else "no"),
    ]


def _settings(entry: Entry) -> str:
    return ", ".join(f"{name}={_in_words(value)}" for name, value in entry.settings.items()) or "none"


def _in_words(value: Any) -> str:
    return str(value.value) if isinstance(value, Enum) else in_words(value)


def refuse_lease_settings(options: argparse.Namespace) -> None:
    """The lease is set by options of its own."""
    if options.protocol == LEASE and options.set:
        name = options.set[0].partition("=")[0].strip()
        flags = {each: f"--{each}" for each in LEASE_ONLY} | {"f": "-f", "fenced": "--token", "widen": "--quorum-first"}
        instead = f"use {flags[name]}" if name in flags else "it has options of its own (see --help)"
        raise UsageError(f"{LEASE} is not changed by '--set {options.set[0]}': {instead}")
