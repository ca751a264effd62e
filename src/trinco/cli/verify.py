"""``trinco verify``: the monitors over a recorded trace."""

import argparse
from pathlib import Path

from trinco.cli import exits
from trinco.cli.leases import NAME as LEASE
from trinco.cli.output import print_facts, print_json, print_timeline
from trinco.cli.parser import add_json
from trinco.core import trace
from trinco.core.errors import DamagedData, UsageError
from trinco.core.verify import Findings, verify
from trinco.protocols.catalogue import ENTRIES, Entry

EXAMPLES = """examples:
  trinco sim ricart-agrawala -n 5 --trace run.ndjson && trinco verify run.ndjson
  trinco exhibit slides/S-5 --trace s5.ndjson; trinco verify s5.ndjson --timeline

exit: 0 nothing wrong (so far, if the run was cut off), 1 a property is violated, 65 the file is damaged
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run the monitors over a trace: at most k inside, nobody inside who was not granted, bounds."
    parser.epilog = EXAMPLES
    parser.add_argument("file", type=Path, help="a trace, as --trace writes it")
    parser.add_argument("--timeline", action="store_true", help="draw it")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    if options.timeline and options.json:
        raise UsageError("--timeline draws for people: it contradicts --json")
    header, events = trace.read(options.file)
    try:
        entry = _entry(header)
        monitors = getattr(entry.build, "monitors", None) if entry else None
        own = monitors(header.n) if monitors else ()
        findings = verify(header, events, entry.claims if entry else None, own)
    except (ValueError, UsageError) as error:
        raise DamagedData(f"{options.file}: {error}") from error
    if options.json:
        print_json(_as_dict(header, findings))
    else:
        _show(header, findings)
        if options.timeline:
            print()
            print_timeline(events, header.n, steps=header.runtime == "checker")
    return exits.VIOLATED if findings.violation else exits.DONE


def _entry(header: trace.Header) -> Entry | None:
    """The protocol as it was set; None if it is not one of ours. Leases have settings that no words can say."""
    entry = next((each for each in ENTRIES if each.name == header.protocol), None)
    return entry.set(*header.settings) if entry and entry.name != LEASE else entry


def _as_dict(header: trace.Header, findings: Findings) -> dict[str, object]:
    return {
        "protocol": header.protocol,
        "n": header.n,
        "events": findings.events,
        "entries": findings.entries,
        "monitors": list(findings.monitors),
        "violation": findings.violation,
        "at": findings.at,
        "finished": header.finished,
        "waiting": list(findings.waiting),
    }


def _show(header: trace.Header, findings: Findings) -> None:
    print_facts(
        [
            ("trace", f"{header.protocol}, n {header.n}, from the {header.runtime}"),
            ("events", f"{findings.events:,}, with {findings.entries:,} entries"),
            ("monitors", ", ".join(findings.monitors)),
            ("verdict", _verdict(header, findings)),
        ]
    )


def _verdict(header: trace.Header, findings: Findings) -> str:
    if findings.violation:
        return f"VIOLATED at {findings.at:g}: {findings.violation}"
    so_far = "nothing wrong" if header.finished else "nothing wrong so far: the run was cut off"
    names = ", ".join(f"p{node}" for node in findings.waiting)
    return f"{so_far}; {names} still wait{'s' if len(findings.waiting) == 1 else ''}" if names else so_far
