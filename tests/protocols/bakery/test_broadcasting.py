"""The bakery over Bracha's reliable broadcast: what it costs, what it survives, and what servers remember."""

import dataclasses
import math
from collections import Counter

import pytest

from tests.mutants import bakery_broadcasting as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.cli.main import main
from trinco.core.errors import UsageError
from trinco.core.ids import bit
from trinco.protocols.bakery.broadcasting import KEPT
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.system import CLAIMS, Bakery
from trinco.sim.faults import Crash, Restart, Slow
from trinco.sim.laws import Constant, Exponential, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation, run
from trinco.sim.workload import Closed, Scripted

QUICK = Links(Uniform(0.001, 0.02))
WIDE = Links(Uniform(1.0, 110.0))
WIDER = Links(Lognormal(30.0, 1.2))
"""One message in ten takes more than 140, one in a hundred more than 490."""
PATIENT = Bakery(hold=2000.0, extension=6000.0, silence=900.0, choosing=900.0, cap=6000.0, broadcast="bracha")
"""From GET to SET a client takes up to four messages of 110."""
HASTY = dataclasses.replace(PATIENT, choosing=25.0)
NEVER = dict.fromkeys(("hold", "extension", "silence", "choosing", "cap", "expiry"), math.inf)


def scenario(build, clients, **options):
    options = {"links": WIDE, "until": 1e6, "max_events": 400_000, **options}
    return Scenario(protocol="bakery", build=build, claims=PATIENT.claims, n=build.size + clients, **options)


def simulated(build, clients, entries, seed, **options):
    workload = Closed(entries, think=Exponential(50.0 * (seed % 2)), hold=Constant(20.0))
    simulation = Simulation(scenario(build, clients, **{"workload": workload, "seed": seed, "trace": False, **options}))
    simulation.run()
    return simulation


def honest_servers(simulation):
    return [host.node for host in simulation.hosts if isinstance(host.node, Server) and host.honest]


def bans(simulation):
    """How many correct servers take a correct client for a liar."""
    correct = sum(bit(host.me) for host in simulation.hosts if host.honest)
    return sum(bool(server.banned & correct) for server in honest_servers(simulation))


def outcome(simulation):
    result = simulation.result()
    return result.violation, result.finished, result.metrics.entries, bans(simulation)


def size(server):
    """Votes per client, of the server that has the most of one."""
    votes = Counter()
    for each in server.requests.instances:
        votes.update((each.origin, kind, voter) for kind in ("echoes", "readies") for voter, _ in getattr(each, kind))
    return max(votes.values(), default=0)


# The setting, and what it costs


def test_requests_are_sent_directly_unless_told_otherwise() -> None:
    assert Bakery().claims == CLAIMS
    assert PATIENT.claims.delay.high() == 8
    with pytest.raises(UsageError, match="broadcast by none or bracha, not 'gossip'"):
        Bakery(broadcast="gossip")


def test_the_setting_has_a_word_on_the_command_line(capsys) -> None:
    assert main(["sim", "bakery", "--set", "broadcast=bracha", "-n", "6", "--entries", "4"]) == 0
    assert "ready" in capsys.readouterr().out


@pytest.mark.parametrize(("f", "messages"), [(1, 96), (2, 294), (3, 600)])
def test_alone_an_entry_and_its_exit_take_6n_plus_6n_n_minus_1_messages_and_8_message_times(f, messages) -> None:
    n, entries = 3 * f + 1, 3
    script = Scripted(tuple((0, 10.0 * turn, 1.0) for turn in range(1, entries + 2)))
    result = run(scenario(Bakery(f=f, broadcast="bracha"), 1, workload=script, links=Links(Constant(0.01))))
    assert result.violation is None
    assert result.metrics.costs[:entries] == [messages] * entries
    assert messages == 6 * n + 6 * n * (n - 1)
    kinds = result.metrics.messages_by_kind
    assert set(kinds) == {"initial", "echo", "ready", "get-reply", "set-reply", "exit-reply"}
    assert kinds["initial"] == 3 * n * (entries + 1)
    assert kinds["exit-reply"] == n * entries
    assert kinds["echo"] == kinds["ready"] == (3 * entries + 2) * n * (n - 1), "the run ends with the last EXIT"
    assert result.metrics.waiting.max == pytest.approx(8 * 0.01)


@pytest.mark.parametrize("clients", [2, 4, 8, 16])
def test_contended_an_entry_takes_109_to_114_messages(clients) -> None:
    entries = 80
    workload = Closed(entries, think=Constant(0.0), hold=Constant(0.02))
    result = run(scenario(Bakery(broadcast="bracha"), clients, workload=workload, links=QUICK, trace=False))
    assert (result.violation, result.metrics.entries) == (None, entries)
    assert 109 <= result.metrics.messages_per_entry <= 114
    kinds = result.metrics.messages_by_kind
    assert kinds["initial"] == 3 * 4 * entries
    assert kinds["listen"] <= 4 * entries
    assert "suspect" not in kinds


# In the checker


@pytest.mark.parametrize(
    ("servers", "clients", "rounds", "states"), [(1, 2, 2, 1_268), (2, 1, 2, 629), (2, 2, 1, 41_854)]
)
def test_it_is_safe_and_nobody_starves_in_exactly_so_many_states(servers, clients, rounds, states) -> None:
    """f=0; timers never fire. With one server a broadcast is a message, and the states are those without it."""
    system = Bakery(f=0, servers=servers, drift=0.0, broadcast="bracha", **NEVER)
    result = check(Model(nodes=system(servers + clients), inputs={"acquire": rounds}, reductions=False))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


# LISTEN is not broadcast: F12


def test_in_200_runs_with_wide_delays_all_are_served_and_nobody_is_banned() -> None:
    """F12: LISTEN overtakes SET and trails EXIT."""
    for seed in range(200):
        assert outcome(simulated(PATIENT, 3, 6, seed, links=WIDER)) == (None, True, 6, 0), seed


def test_the_automaton_at_its_word_bans_correct_clients_in_many_of_them() -> None:
    build = mutants.Replaced(PATIENT, mutants.BansListens)
    runs = [simulated(build, 3, 6, seed, links=WIDER, until=20_000.0) for seed in range(20)]
    assert sum(bans(each) > 0 for each in runs) >= 10


# Liars


@pytest.mark.parametrize("build", [PATIENT, HASTY], ids=["patient", "hasty"])
@pytest.mark.parametrize("liar", mutants.SERVERS)
def test_whatever_one_server_says_of_broadcasts_all_are_served_and_nobody_is_banned(liar, build) -> None:
    survive(build, range(4), clients=3, liars={6: mutants.SERVERS[liar]})


@pytest.mark.parametrize("build", [PATIENT, HASTY], ids=["patient", "hasty"])
@pytest.mark.parametrize("liar", mutants.CLIENTS)
def test_whatever_a_client_broadcasts_the_others_are_served_and_not_banned(liar, build) -> None:
    survive(build, range(4), clients=4, liars={3: mutants.CLIENTS[liar]})


def survive(build, seeds, clients, liars, entries=6):
    for seed in seeds:
        simulation = simulated(build, clients, entries, seed, byzantine=liars)
        assert outcome(simulation) == (None, True, entries, 0), (liars, seed)
        assert max(size(server) for server in honest_servers(simulation)) <= KEPT


def survey(seeds):
    """The spec's validation run: one lying server, of each kind in turn, 3 to 5 clients, 12 entries. Figures for
    ``tests.prove``; that all went well is asserted."""
    liars = tuple(mutants.SERVERS.values())
    for seed in range(seeds):
        clients = 3 + seed // 4 % 3
        survive(PATIENT, (seed,), clients, {clients + 3: liars[seed % 4]}, entries=12)
    command = f"survey({seeds}) in tests/protocols/bakery/test_broadcasting.py"
    return {"command": command, "seeds": seeds, "entries": 12 * seeds, "violations": 0, "unserved": 0, "banned": 0}


def test_the_survey_counts_what_it_saw() -> None:
    assert survey(4)["entries"] == 48


def heard_of_a_liar(liar, seed, build=PATIENT):
    """What correct servers have delivered of its broadcasts, a long time after."""
    script = Scripted(((0, 60_000.0, 1.0),))
    simulation = simulated(build, 2, 1, seed, workload=script, byzantine={1: liar})
    assert outcome(simulation) == (None, True, 1, 0)
    servers = honest_servers(simulation)
    return {(dict(each.requests.delivered).get(1), dict(each.last).get(1), each.banned) for each in servers}


@pytest.mark.parametrize("liar", [mutants.TellsSome, mutants.TwoFaced, mutants.Miscounts])
def test_what_a_lying_client_broadcasts_all_servers_deliver_or_none_does(liar) -> None:
    outcomes = [heard_of_a_liar(liar, seed) for seed in range(10)]
    assert all(len(each) == 1 for each in outcomes)
    assert len({delivered for each in outcomes for delivered, _, _ in each}) > 3, "and it is not always the same"


def test_servers_that_take_a_clients_word_do_not_agree() -> None:
    build = mutants.Replaced(PATIENT, mutants.TakesItsWord)
    outcomes = (heard_of_a_liar(mutants.TwoFaced, seed, build) for seed in range(20))
    assert any(len(each) > 1 for each in outcomes)


# Clients that come back


def runs_with_a_restart(build, seeds):
    for seed in seeds:
        faults = (Crash(0, 200.0 + 20 * seed, after_sends=seed % 4 or None), Restart(0, 2500.0 + 20 * seed))
        yield simulated(build, 3, 12, seed, faults=faults, until=100_000.0)


def test_who_comes_back_from_a_crash_is_served_again_and_not_taken_for_a_liar() -> None:
    for simulation in runs_with_a_restart(PATIENT, range(20)):
        violation, finished, entries, banned = outcome(simulation)
        assert (violation, finished, banned) == (None, True, 0)
        assert entries >= 11
        assert simulation.hosts[0].stored[1] == simulation.hosts[0].node.requests


@pytest.mark.parametrize("mutant", [mutants.ForgetsNumbers, mutants.WaitsForAll], ids=lambda each: each.__name__)
def test_its_numbers_go_on_and_what_it_did_not_finish_is_not_waited_for(mutant) -> None:
    """Otherwise its requests are old news, or wait for ever for the one that it was sending when it died."""
    outcomes = [outcome(each) for each in runs_with_a_restart(mutants.Replaced(PATIENT, mutant), range(20))]
    stuck = [violation.text for violation, _, _, _ in outcomes if violation]
    assert stuck == ["starvation: p0 asked and never entered"] * len(stuck)
    assert len(stuck) >= 3


# Servers that lag behind


def runs_with_a_slow_server(build):
    """The first server hears everything late, and misses the votes on most of it. Then another one dies, and nobody can
    enter without the first."""
    for seed in (0, 5):
        faults = (Slow(2, at=0.0, lasts=5_000.0, factor=60.0), Crash(5, at=5_000.0))
        yield simulated(build, 2, 24, seed, faults=faults, until=60_000.0)


def test_a_server_that_has_missed_turns_takes_part_again() -> None:
    for simulation in runs_with_a_slow_server(PATIENT):
        assert outcome(simulation) == (None, True, 24, 0)


def test_a_server_that_waits_for_every_number_does_not() -> None:
    """Strict order and a bounded memory do not go together."""
    for simulation in runs_with_a_slow_server(mutants.Replaced(PATIENT, mutants.WaitsForAll)):
        assert not simulation.result().finished
