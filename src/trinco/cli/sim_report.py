"""What ``trinco sim`` tells of a run, and of many."""

from typing import Any

from trinco.cli.output import number, print_facts, print_json
from trinco.sim.metrics import Spread
from trinco.sim.simulation import Result
from trinco.sim.swarm import Swarm


def swarm_facts(swarm: Swarm, asked: int) -> dict[str, Any]:
    return {
        "seeds": asked,
        "seeds_run": swarm.done,
        "seeds_violating": [brief.seed for brief in swarm.violations],
        "seeds_unfinished": swarm.unfinished,
        "total_entries": swarm.entries,
        "total_messages": swarm.messages,
    }


def tell_swarm(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(
            {"verdict": "inconclusive" if facts["seeds_unfinished"] else "no violation", "violation": None, **facts}
        )
        return
    verdict = "no violation"
    if facts["seeds_unfinished"]:
        verdict = (
            f"INCONCLUSIVE: --until or --max-events cut {facts['seeds_unfinished']:,} runs off with requests still open"
        )
    print_facts(
        [
            ("seeds", f"{facts['seeds_run']:,}"),
            ("entries", f"{facts['total_entries']:,}, {facts['total_messages']:,} messages"),
            ("verdict", verdict),
        ]
    )


def as_dict(result: Result) -> dict[str, Any]:
    scenario, violation = result.scenario, result.violation
    verdict = "violation" if violation else "no violation" if result.finished else "inconclusive"
    return {
        "protocol": scenario.protocol,
        "n": scenario.n,
        "seed": scenario.seed,
        "verdict": verdict,
        "violation": {"property": violation.property, "text": violation.text, "at": violation.at}
        if violation
        else None,
        "finished": result.finished,
        **result.metrics.as_dict(),
        "claimed_messages_per_entry": str(scenario.claims.messages_per_entry),
        "trace_hash": result.trace_hash,
        "seconds": round(result.seconds, 3),
    }


def show(result: Result, swarm: dict[str, Any], bound: str | None) -> None:
    scenario, metrics = result.scenario, result.metrics
    claim = scenario.claims.messages_per_entry
    if swarm:
        failed = swarm["seeds_violating"]
        print(f"{len(failed):,} of {swarm['seeds_run']:,} seeds violate a property; seed {failed[0]} made small:")
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in metrics.messages_by_kind.items())
    per_entry = f"{number(metrics.messages_per_entry)} on average, {number(metrics.worst_messages_per_entry)} at worst"
    print(f"{scenario.protocol}: n {scenario.n}, seed {scenario.seed}")
    if scenario.claims.elects:
        _show_election(result, kinds, bound)
        return
    print_facts(
        [
            ("entries", f"{metrics.entries:,} in {number(metrics.duration)} units of time"),
            ("messages", f"{metrics.messages:,} ({kinds})"),
            ("messages per entry", f"{per_entry} (claimed: {claim})"),
            ("waiting", _spread(metrics.waiting)),
            ("synchronisation delay", _spread(metrics.synchronisation_delay)),
            ("load per node", _spread(metrics.load)),
            ("bypass", f"{metrics.bypass} at worst (claimed: {scenario.claims.bypass or 'no bound'})"),
            ("fairness (Jain)", number(metrics.fairness)),
            ("trace", f"sha256 {result.trace_hash}" if result.recording else "not kept"),
            ("verdict", _verdict(result, bound)),
        ]
    )


def _show_election(result: Result, kinds: str, bound: str | None) -> None:
    metrics = result.metrics
    leaders = sorted(set(metrics.leaders.values()))
    known = "; ".join(
        f"p{leader} to {', '.join(f'p{node}' for node, known in sorted(metrics.leaders.items()) if known == leader)}"
        for leader in leaders
    )
    print_facts(
        [
            ("leader known", known or "none"),
            ("messages", f"{metrics.messages:,} ({kinds})"),
            ("time", number(metrics.duration)),
            ("trace", f"sha256 {result.trace_hash}" if result.recording else "not kept"),
            ("verdict", _verdict(result, bound)),
        ]
    )


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"mean {number(spread.mean)}, p50 {number(spread.p50)}, p99 {number(spread.p99)}, max {number(spread.max)}"


def _verdict(result: Result, bound: str | None) -> str:
    if result.violation:
        return f"VIOLATED at {result.violation.at:.6g}, {result.violation.property}: {result.violation.text}"
    if result.finished:
        return "no violation"
    return f"INCONCLUSIVE: a bound, {bound}, cut the run off with requests still open; raise it to see more"
