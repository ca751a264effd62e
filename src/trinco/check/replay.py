"""Replaying a script: the same steps, found by their words, and what they lead to."""

from collections.abc import Iterable, Sequence

from trinco.check.counterexample import Counterexample, line
from trinco.check.model import Model
from trinco.check.search import Search, Violation
from trinco.core.errors import DamagedData


def replay(model: Model, script: str | Iterable[str]) -> Violation | None:
    """Walk a model along a script; the violation it ends in, or None. Raises :class:`DamagedData` at the first step
    that is not possible, and says what would have been."""
    steps = script.splitlines() if isinstance(script, str) else list(script)
    search = Search(model)
    return _walk(search, [step.strip() for step in steps if step.strip()])


def _walk(search: Search, script: Sequence[str]) -> Violation | None:
    states = list(search.cells.first_states())
    for number, wanted in enumerate(script, start=1):
        possible = [(line(step), step.state) for state in states for step in search.steps.of(state)]
        states = [state for text, state in possible if text == wanted]
        if not states:
            choices = ", ".join(f"'{text}'" for text in sorted({text for text, _ in possible})) or "nothing"
            raise DamagedData(f"step {number}, '{wanted}', is not possible here; possible: {choices}")
    return next((found for state in states if (found := search.judge(state))), None)


def as_pytest(found: Counterexample, model: str, imports: Sequence[str], command: str) -> str:
    """A pytest file that needs nothing but Trinco. ``model`` is the expression that makes the model again."""
    name = "".join(letter if letter.isalnum() else "_" for letter in found.violation.kind)
    steps = "\n".join(found.script)
    needed = "\n".join(["from trinco.check.replay import replay", *imports])
    return f'''"""{found.violation.text[0].upper()}{found.violation.text[1:]}.

Found by: {command}
Once the protocol is mended, the script is no longer possible or ends well: then turn the assertion round.
"""

{needed}

SCRIPT = """
{steps}
"""


def test_{name}() -> None:
    violation = replay({model}, SCRIPT)
    assert violation is not None
    assert (violation.kind, violation.text) == {(found.violation.kind, found.violation.text)!r}
'''
