"""The deterministic simulator: one run of a system of any size. ``run(Scenario(...))``."""

from trinco.sim.faults import Chaos, Crash, Drift, Partition, Pause, Restart, Slow
from trinco.sim.laws import Constant, Exponential, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.metrics import Metrics
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, Simulation, Violation, run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Elections, OneShot, Open, Scripted, saturated

__all__ = [
    "Chaos",
    "Closed",
    "Constant",
    "Crash",
    "Drift",
    "Elections",
    "Exponential",
    "Links",
    "Lognormal",
    "Metrics",
    "OneShot",
    "Open",
    "Partition",
    "Pause",
    "Restart",
    "Result",
    "Scenario",
    "Scripted",
    "Simulation",
    "Slow",
    "Swarm",
    "Uniform",
    "Violation",
    "run",
    "saturated",
]
