"""The simulator against SimPy: Ricart-Agrawala, n=50, saturated. Deliveries per second of CPU, as ratios in one run.

python bench/simulator.py [--json]
"""

import time
from collections.abc import Callable
from typing import Any

import measure
import simpy_ricart_agrawala as yardstick
from trinco.protocols.permission import ricart_agrawala
from trinco.sim.faults import Pause
from trinco.sim.laws import Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import saturated

N, ENTRIES, ROUNDS = 50, 1000, 7
ALL_ON: dict[str, Any] = {"trace": True, "faults": (Pause(node=3, at=40.0, lasts=3.0),)}


def ours(**options: Any) -> Callable[[], tuple[int, float]]:
    """The run itself: from the first event to the last, monitors always on. Making the scenario is not counted."""

    def subject() -> tuple[int, float]:
        scenario = Scenario(
            protocol="ricart-agrawala",
            build=ricart_agrawala.system,
            claims=ricart_agrawala.CLAIMS,
            n=N,
            workload=saturated(ENTRIES),
            **options,
        )
        simulation = Simulation(scenario)
        began = time.process_time()
        simulation.run()
        seconds = time.process_time() - began
        assert simulation.violation is None
        return sum(sum(host.sent.values()) for host in simulation.hosts), seconds

    return subject


def main() -> None:
    measure.pin()
    best = measure.rates(
        {
            "simpy": measure.timed(lambda: yardstick.run(N, ENTRIES)),
            "tuned": measure.timed(lambda: yardstick.run(N, ENTRIES, yardstick.TunedPeer)),
            "bare": ours(trace=False),
            "all on": ours(**ALL_ON),
            "all on, random delays": ours(**ALL_ON, links=Links(delay=Uniform(0.5, 1.5))),
        },
        ROUNDS,
    )
    figures: dict[str, Any] = {
        "SimPy as documented, deliveries/s": best["simpy"],
        "SimPy tuned, deliveries/s": best["tuned"],
        "Trinco bare, deliveries/s": best["bare"],
        "bare / SimPy as documented": best["bare"] / best["simpy"],
        "bare / SimPy tuned": best["bare"] / best["tuned"],
        "trace, faults, monitors / SimPy as documented": best["all on"] / best["simpy"],
        "trace, faults, monitors / SimPy tuned": best["all on"] / best["tuned"],
        "the same with random delays / SimPy as documented": best["all on, random delays"] / best["simpy"],
    }
    targets = {
        "bare / SimPy as documented": (">=", 8.0),
        "trace, faults, monitors / SimPy as documented": (">=", 4.0),
    }
    measure.report("simulator", figures, targets)


if __name__ == "__main__":
    main()
