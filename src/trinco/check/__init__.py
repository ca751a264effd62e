"""The model checker: every run of a small system. ``check(Model(nodes=...))``."""

from trinco.check.model import Clocks, Model, Timers
from trinco.check.run import Checker, Result, check
from trinco.check.search import Progress, Verdict, Violation
from trinco.check.view import View

__all__ = ["Checker", "Clocks", "Model", "Progress", "Result", "Timers", "Verdict", "View", "Violation", "check"]
