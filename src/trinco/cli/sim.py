"""``trinco sim``: the simulator."""

import argparse
import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from trinco.cli import exits
from trinco.cli.faults import (
    HELP,
    USES,
    asked_faults,
    asked_liars,
    asked_workload,
    parse_ask,
    parse_fault,
    parse_notice,
)
from trinco.cli.files import refuse_unwritable, write_trace
from trinco.cli.leases import NAME as LEASE
from trinco.cli.leases import add_lease_options, liars, quorum_lease, refuse_lease_options
from trinco.cli.output import print_json, print_timeline
from trinco.cli.parser import add_json, add_settings, positive, usage, whole
from trinco.cli.progress import Teller, progress
from trinco.cli.protocols import refuse_lease_settings
from trinco.cli.sim_flags import refuse_contradictions, refuse_idle_flags, refuse_what_n_nodes_cannot
from trinco.cli.sim_report import as_dict, show, swarm_facts, tell_swarm
from trinco.cli.sizes import asked_n, check_k, chosen, tell_if_alone, tell_if_client_is_alone
from trinco.cli.watch import bounded_set_up, run_watched, so_far
from trinco.cli.work import add_jobs
from trinco.core.errors import BeyondClaims
from trinco.core.trace import MOST_NODES
from trinco.protocols.catalogue import Entry
from trinco.sim.faults import Chaos
from trinco.sim.laws import Constant, parse
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.shrink import shrink
from trinco.sim.simulation import Result, Simulation
from trinco.sim.simulation import run as simulate
from trinco.sim.swarm import Swarm
from trinco.sim.workers import process_pool

USUAL_N = 5
MAX_EVENTS = 2_000_000
"""A minute or so, and with its trace a gigabyte."""
MAX_MEGABYTES = 2048
MOST_FAULTS = 1_000_000
MOST_SEEDS = 10**12
"""What is beyond them was typed by mistake: whoever asked would wait for ever, or until memory is full."""

EXAMPLES = """examples:
  trinco sim ricart-agrawala -n 50 --entries 500
  trinco sim token-ring -n 8 --workload open --rate 0.05 --delay exponential:1
  trinco sim coordinator -n 5 --unordered --delay uniform:0.1,5 --seeds 1000
  trinco sim ricart-agrawala -n 2 --ask 0@0+1 --ask 1@0.5+1 --timeline
  trinco sim ricart-agrawala -n 3 --fault crash:1@10 --beyond-claims --timeline
  trinco sim bully -n 8 --notice 4@1 --timeline              the highest has crashed, 4 notices
  trinco sim chandy-misra -n 6 --set graph=ring
  trinco sim quorum-lease --stores object,queue,conditional,transactional --clients 3 --byzantine silent
  trinco sim ricart-agrawala -n 5 --trace run.ndjson && trinco verify run.ndjson

laws: 1.5, constant:1.5, uniform:0.5,1.5, exponential:2, lognormal:MEDIAN,SIGMA; times are virtual
exit: 0 no violation, 1 a property is violated, 3 a bound ended the run with requests still open
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "Simulate a protocol in virtual time: one seed decides everything. Its claims are monitored."
    parser.epilog = EXAMPLES
    parser.add_argument("protocol", help="a name from 'trinco protocols'")
    parser.add_argument("-n", type=whole(1, "n", MOST_NODES), help="how many nodes (5, or as many as let two compete)")
    parser.add_argument("-k", type=whole(1, "k"), help="how many may be inside (what the protocol claims)")
    parser.add_argument("--seed", type=whole(0, "the seed"), default=0, help="decides everything (0)")
    _add_workload(parser.add_argument_group("workload"))
    _add_network(parser.add_argument_group("network"))
    _add_faults(parser.add_argument_group("faults"))
    add_settings(parser)
    add_lease_options(parser, small=False)
    _add_swarm(parser.add_argument_group("many seeds"))
    _add_output(parser.add_argument_group("bounds and output"))
    add_json(parser)


def _add_workload(group: Any) -> None:
    group.add_argument("--entries", type=whole(1, "the number of entries"), help="in all (100)")
    group.add_argument("--workload", choices=tuple(USES), help="closed: think, ask, hold, again (default)")
    group.add_argument("--think", type=usage(parse), metavar="LAW", help="exponential:5")
    group.add_argument("--hold", type=usage(parse), metavar="LAW", help="time inside (1)")
    ask = {"action": "append", "type": usage(parse_ask), "default": [], "metavar": "NODE@TIME+HOLD"}
    group.add_argument("--ask", help="exactly this request, instead of a workload; can be repeated", **ask)
    notice = {"action": "append", "type": usage(parse_notice), "default": [], "metavar": "NODE@TIME"}
    group.add_argument("--notice", help="of an election: who notices when that the leader is gone", **notice)
    group.add_argument("--rate", type=positive("the rate"), help="arrivals per time, for open (0.1)")


def _add_network(group: Any) -> None:
    group.add_argument(
        "--delay",
        type=usage(parse),
        metavar="LAW",
        help="of a message (1; in the bakery and in quorum-lease, which count seconds, 0.01)",
    )
    group.add_argument("--unordered", action="store_true", help="channels need not be FIFO")
    chance = {"type": float, "default": 0.0, "metavar": "P"}
    group.add_argument("--loss", help="chance that a message is lost", **chance)
    group.add_argument("--duplication", help="chance that it arrives twice", **chance)
    group.add_argument("--reordering", help="chance that it dawdles and is overtaken", **chance)


def _add_faults(group: Any) -> None:
    group.add_argument("--fault", action="append", type=usage(parse_fault), default=[], metavar="FAULT", help=HELP)
    group.add_argument("--crashes", type=whole(0, "the number of crashes"), default=0, help="crashes at random times")
    pauses, partitions = (whole(0, f"the number of {what}", MOST_FAULTS) for what in ("pauses", "partitions"))
    group.add_argument("--pauses", type=pauses, default=0, help="pauses at random times")
    group.add_argument("--partitions", type=partitions, default=0, help="at random times")
    group.add_argument("--within", type=positive("the time for faults"), help="random faults start before (50)")
    group.add_argument(
        "--byzantine",
        action="append",
        default=[],
        metavar="NODE:STRATEGY",
        help="let a node lie; of quorum-lease: a store (NODE: can be left out)",
    )
    group.add_argument("--beyond-claims", action="store_true", help="allow what the paper does not promise to survive")


def _add_swarm(group: Any) -> None:
    seeds = whole(1, "the number of seeds", MOST_SEEDS)
    group.add_argument("--seeds", type=seeds, default=1, help="run so many, from --seed on")
    add_jobs(group)
    group.add_argument("--all", action="store_true", help="go on after a violation and count them all")
    group.add_argument("--no-shrink", action="store_true", help="show the violation as it was found")


def _add_output(group: Any) -> None:
    group.add_argument("--until", type=positive("the time limit"), default=1e9, help="stop at this virtual time")
    group.add_argument(
        "--max-events",
        type=whole(1, "the bound on events"),
        default=MAX_EVENTS,
        metavar="N",
        help=f"stop after so many ({MAX_EVENTS})",
    )
    group.add_argument(
        "--max-memory",
        type=whole(50, "the bound on memory"),
        metavar="MB",
        help=f"of a single run: stop beyond so much memory ({MAX_MEGABYTES})",
    )
    group.add_argument("--patience", type=positive("patience"), help="nobody may wait longer than this")
    group.add_argument("--trace", type=Path, metavar="FILE", help="write the trace (NDJSON)")
    group.add_argument("--no-trace", action="store_true", help="keep no trace: less memory, no hash")
    group.add_argument("--timeline", action="store_true", help="draw the run")


def run(options: argparse.Namespace) -> int:
    refuse_lease_settings(options)
    entry = chosen(options)
    refuse_lease_options(entry, options)
    refuse_contradictions(options)
    refuse_idle_flags(entry, options)
    refuse_unwritable(options.trace)
    with progress(quiet=options.json) as tell, bounded_set_up(options.max_memory or MAX_MEGABYTES):
        tell("setting up")
        scenario = _lease_scenario(entry, options) if entry.name == LEASE else _peers_scenario(entry, options)
    return _many(scenario, options) if options.seeds > 1 else _one(scenario, options)


def _peers_scenario(entry: Entry, options: argparse.Namespace) -> Scenario:
    n = asked_n(entry, options, USUAL_N)
    check_k(entry, n, options.k)
    nodes = entry.nodes(n)
    scenario = _scenario(entry, n, asked_liars(entry, nodes, options.byzantine), options)
    if not options.ask:
        tell_if_alone(entry, nodes)
    return scenario


def _lease_scenario(entry: Entry, options: argparse.Namespace) -> Scenario:
    system = quorum_lease(options, small=False)
    check_k(entry, system.n, options.k)
    fenced = system.can_fence if system.fenced is None else system.fenced
    entry = replace(entry, build=system, claims=replace(entry.claims, fencing=fenced))
    byzantine = {node: entry.strategies[name] for node, name in liars(entry, options.byzantine, system).items()}
    scenario = _scenario(entry, system.n, byzantine, options)
    if not options.ask:
        tell_if_client_is_alone(system.n - len(system.stores))
    return scenario


def _scenario(entry: Entry, n: int, byzantine: dict[int, Any], options: argparse.Namespace) -> Scenario:
    refuse_what_n_nodes_cannot(n, options)
    within = options.within or 50.0
    chaos = Chaos(options.crashes, pauses=options.pauses, partitions=options.partitions, within=within)
    faults = asked_faults(entry, n, options)
    ordered = not (options.unordered or options.reordering)
    delay = options.delay or Constant(entry.delay)
    try:
        return Scenario(
            protocol=entry.name,
            build=entry.build,
            claims=entry.claims,
            n=n,
            seed=options.seed,
            workload=asked_workload(entry, n, faults, options),
            links=Links(delay, ordered, options.loss, options.duplication, options.reordering),
            faults=faults,
            chaos=chaos if options.crashes or options.pauses or options.partitions else None,
            byzantine=byzantine,
            until=options.until,
            max_events=options.max_events,
            patience=options.patience,
            trace=not options.no_trace,
            beyond_claims=options.beyond_claims,
        )
    except BeyondClaims as error:
        raise BeyondClaims(f"{error} with --beyond-claims") from None


def _one(scenario: Scenario, options: argparse.Namespace) -> int:
    simulation = Simulation(scenario)
    megabytes = options.max_memory or MAX_MEGABYTES
    try:
        with progress(quiet=options.json) as tell:
            fits = run_watched(simulation, megabytes, tell)
    except KeyboardInterrupt:
        sys.stderr.write(f"trinco: interrupted: {so_far(simulation)}, no violation so far\n")
        return exits.INTERRUPTED
    result = simulation.result()
    _tell(result, options, {}, _bound(simulation) if fits else f"--max-memory {megabytes}")
    return _code(result)


def _bound(simulation: Simulation) -> str | None:
    """The flag that ended the run, if one did."""
    if not simulation.kernel.out_of_bounds:
        return None
    scenario = simulation.scenario
    is_late = min(simulation.kernel.moments) > scenario.until
    return f"--until {scenario.until:g}" if is_late else f"--max-events {scenario.max_events}"


def _code(result: Result) -> int:
    if result.violation:
        return exits.VIOLATED
    return exits.DONE if result.finished else exits.INCONCLUSIVE


def _many(scenario: Scenario, options: argparse.Namespace) -> int:
    swarm = Swarm(scenario, collect=options.all)
    seeds = range(options.seed, options.seed + options.seeds)
    with progress(quiet=options.json) as tell:
        try:
            jobs = options.jobs or os.cpu_count() or 1
            workers = process_pool(jobs) if jobs > 1 else nullcontext()
            with workers as executor:
                swarm.run(seeds, executor, lambda done: tell(f"{done:,} of {len(seeds):,} seeds", done / len(seeds)))
        except KeyboardInterrupt:
            found = f"{len(swarm.violations)} violations" if swarm.violations else "no violation"
            sys.stderr.write(f"trinco: interrupted after {swarm.done:,} of {len(seeds):,} seeds, {found}\n")
            return exits.INTERRUPTED
        facts = swarm_facts(swarm, len(seeds))
        if not swarm.violations:
            tell_swarm(facts, options.json)
            if options.trace:
                sys.stderr.write(f"trinco: {options.trace} was not written: no seed violates anything\n")
            return exits.INCONCLUSIVE if swarm.unfinished else exits.DONE
        result = _first_violation(swarm, options, tell)
    _tell(result, options, facts, None)
    return exits.VIOLATED


def _first_violation(swarm: Swarm, options: argparse.Namespace, tell: Teller) -> Result:
    """The failing seed, made small unless that is not wanted, run again with its trace."""
    first = swarm.violations[0]
    assert first.violation is not None
    failing = swarm.scenario.with_changes(seed=first.seed)
    if not options.no_shrink:
        failing = shrink(failing, first.violation.property, listener=lambda runs: tell(f"shrinking: {runs:,} runs"))
    return simulate(failing.with_changes(trace=True))


def _tell(result: Result, options: argparse.Namespace, swarm: dict[str, Any], bound: str | None) -> None:
    if options.json:
        print_json(as_dict(result) | {"bound": bound} | swarm)
    else:
        show(result, swarm, bound)
        shrunk_violation = result.violation and swarm
        if result.recording and (options.timeline or shrunk_violation):
            print()
            print_timeline(result.recording.events(), result.scenario.n, steps=False)
    if options.trace and result.recording:
        write_trace(options.trace, result.recording)
