"""Replaying a script: the same steps, found by their words, and what they lead to."""

from collections.abc import Iterable, Sequence

from trinco.check.counterexample import Counterexample, line
from trinco.check.liveness import judge_cycle
from trinco.check.model import Model
from trinco.check.reachability import judge_prospects
from trinco.check.search import Search, Violation
from trinco.check.steps import Step
from trinco.core.errors import DamagedData


def replay(model: Model, script: str | Iterable[str], repeats_from: int | None = None) -> Violation | None:
    """Walk a model along a script; the violation it ends in, or None. With ``repeats_from``, what is wrong with going
    on for ever from that step (the first is 1) to the last and round again. A script as one text has a line a step.
    Raises :class:`DamagedData` at the first step that is not possible, and says what would have been."""
    lines = [each.strip() for each in script.splitlines() if each.strip()] if isinstance(script, str) else list(script)
    search = Search(model)
    for start, steps in _walks(search, lines):
        if repeats_from is None:
            last = steps[-1].state if steps else start
            found = search.judge(last) or judge_prospects(search, last)
        else:
            found = _judge_repeated(search, [start, *(step.state for step in steps)], steps, repeats_from)
        if found:
            return found
    return None


def _walks(search: Search, script: Sequence[str]) -> list[tuple[int, list[Step]]]:
    """Every way that fits the words: usually one."""
    walks: list[tuple[int, list[Step]]] = [(start, []) for start in search.cells.first_states()]
    for number, wanted in enumerate(script, start=1):
        ahead = [
            (start, steps, step)
            for start, steps in walks
            for step in search.steps.of(steps[-1].state if steps else start)
        ]
        walks = [(start, [*steps, step]) for start, steps, step in ahead if line(step) == wanted]
        if not walks:
            choices = ", ".join(f"'{text}'" for text in sorted({line(step) for _, _, step in ahead})) or "nothing"
            raise DamagedData(f"step {number}, '{wanted}', is not possible here; possible: {choices}")
    return walks


def _judge_repeated(
    search: Search, states: Sequence[int], steps: Sequence[Step], repeats_from: int
) -> Violation | None:
    if not 1 <= repeats_from <= len(steps) or states[repeats_from - 1] != states[-1]:
        raise DamagedData(f"the last step does not lead back to where step {repeats_from} began")
    return judge_cycle(search, steps[repeats_from - 1 :])


def as_pytest(found: Counterexample, model: str, imports: Sequence[str], command: str) -> str:
    """A pytest file that needs nothing but Trinco. ``model`` is the expression that makes the model again."""
    name = "".join(letter if letter.isalnum() else "_" for letter in found.violation.kind)
    steps = "\n".join(f"    {step!r}," for step in found.script)
    needed = "\n".join(["from trinco.check.replay import replay", *imports])
    again = f", repeats_from={found.cycle_from}" if found.cycle_from else ""
    wrong = (found.violation.kind, found.violation.text)
    return f'''"""A run that goes wrong ({found.violation.kind}), found by: {_harmless(command)}

Once the protocol is mended, the script is no longer possible or ends well: then turn the assertion round.
"""

{needed}

SCRIPT = [
{steps}
]


def test_{name}() -> None:
    violation = replay({model}, SCRIPT{again})
    assert violation is not None
    assert (violation.kind, violation.text) == {wrong!r}
'''


def _harmless(text: str) -> str:
    """Words that can stand in a docstring."""
    return text.replace("\\", "/").replace('"', "'")
