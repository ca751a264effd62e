"""``trinco planes``: projective planes, and the quorums that nodes get from them."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trinco.cli import exits
from trinco.cli.output import pen_for_stdout, print_facts, print_json
from trinco.cli.parser import add_json, whole
from trinco.core.errors import UsageError
from trinco.protocols.quorums import padding, planes
from trinco.protocols.quorums.difference_sets import difference_set, fault_of, size
from trinco.protocols.quorums.padding import Arbiters
from trinco.protocols.quorums.planes import Check, Family, braced
from trinco.view.incidence import draw

WIDEST = 73
"""A picture with more columns does not fit beside the quorums. Order 8 has so many."""

EXAMPLES = """examples:
  trinco planes 3            the plane of order 3: 13 nodes, each asks 4
  trinco planes 97 --json    9,507 nodes, as data
  trinco planes -n 10        whom each of 10 nodes asks; no plane has 10 points, so some arbiters are virtual

7@2 is the virtual arbiter 7, which node 2 runs.

exit: 0 every check holds, 1 one does not, 64 there is no such plane here
"""


@dataclass(frozen=True)
class Shown:
    facts: Sequence[tuple[str, str]]
    quorums: Sequence[str]
    picture: Sequence[str]
    """Its last lines belong to the quorums; the ones above are its head. Empty if it is too large."""
    checks: Sequence[Check]
    data: dict[str, Any]


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print, draw and verify a projective plane: line i holds the nodes that node i asks, and any two lines meet in "
        "exactly one point. There is one for every order that is a power of a prime, and the triangle of order 1."
    )
    parser.epilog = EXAMPLES
    parser.add_argument("order", nargs="?", type=whole(1, "the order"), metavar="ORDER", help="one less than a quorum")
    parser.add_argument("-n", "--n", type=whole(1, "n"), metavar="N", help="the arrangement for so many nodes instead")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    if (options.order is None) == (options.n is None):
        raise UsageError("give the order of a plane, or else -n for the arrangement of so many nodes")
    shown = _plane(options.order) if options.n is None else _arrangement(padding.padded(options.n))
    holds = not any(check.fault for check in shown.checks)
    if options.json:
        checks = [{"check": check.claim, "fault": check.fault} for check in shown.checks]
        print_json({**shown.data, "checks": checks, "holds": holds})
    else:
        _print(shown)
    return exits.DONE if holds else exits.VIOLATED


def _plane(order: int) -> Shown:
    lines = planes.plane(order)
    differences = difference_set(order)
    last = len(lines) - 1
    unique = Check(f"each of 1 to {last:,} is the difference of one pair", fault_of(differences, len(lines)))
    return Shown(
        facts=[
            ("plane", f"order {order}, {len(lines):,} points and as many lines, {order + 1} on each"),
            ("difference set", f"{braced(differences)} mod {len(lines)}: line i has i plus each of these"),
        ],
        quorums=[" ".join(map(str, line)) for line in lines],
        picture=_picture(lines, len(lines), len(lines)),
        checks=[*planes.checks(order, lines), unique],
        data={"order": order, "points": len(lines), "difference_set": differences, "quorums": lines},
    )


def _arrangement(arbiters: Arbiters) -> Shown:
    points = size(arbiters.order)
    virtual = {arbiter: host for arbiter, host in arbiters.hosts.items() if arbiter >= arbiters.n}
    asked = max(map(len, arbiters.quorums))
    run_by_one = max(map(len, arbiters.run_by))
    return Shown(
        facts=[
            ("nodes", f"{arbiters.n:,}, on the plane of order {arbiters.order} with {points:,} points"),
            ("arbiters", f"{len(arbiters.hosts):,}; {len(virtual):,} virtual, {points - len(arbiters.hosts):,} pruned"),
            ("at most", f"{asked} asked by one node, {run_by_one} run by one node"),
        ],
        quorums=[" ".join(_named(arbiter, virtual) for arbiter in quorum) for quorum in arbiters.quorums],
        picture=_picture(arbiters.quorums, points, arbiters.n),
        checks=list(padding.checks(arbiters)),
        data={
            "n": arbiters.n,
            "order": arbiters.order,
            "points": points,
            "quorums": arbiters.quorums,
            "hosts": arbiters.hosts,
            "largest_quorum": asked,
            "most_arbiters_at_a_node": run_by_one,
        },
    )


def _named(arbiter: int, virtual: dict[int, int]) -> str:
    return f"{arbiter}@{virtual[arbiter]}" if arbiter in virtual else str(arbiter)


def _picture(quorums: Family, members: int, real: int) -> Sequence[str]:
    return list(draw(quorums, members, first=real, pen=pen_for_stdout())) if members <= WIDEST else []


def _print(shown: Shown) -> None:
    print_facts(shown.facts)
    print()
    _print_quorums(shown)
    print()
    print_facts((check.claim, "holds" if check.fault is None else f"FAILS: {check.fault}") for check in shown.checks)


def _print_quorums(shown: Shown) -> None:
    """Beside the picture, if there is one."""
    rows = [("node", "asks"), *((str(node), quorum) for node, quorum in enumerate(shown.quorums))]
    picture = shown.picture or [""] * len(rows)
    rows = [("", "")] * (len(picture) - len(rows)) + rows
    width = max(len(quorum) for _, quorum in rows) + 2
    for (node, quorum), drawn in zip(rows, picture, strict=True):
        print(f"{node:<6}{quorum:<{width}}{drawn}".rstrip())
