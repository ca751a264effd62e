"""Following a script through a model, to see where it leads."""

from collections.abc import Sequence

from trinco.check.counterexample import line
from trinco.check.model import Model
from trinco.check.search import Search
from trinco.check.steps import Action, Step


class Walk:
    """The states along a script, beginning with the first, and the steps between them."""

    def __init__(self, model: Model, script: Sequence[str]) -> None:
        self.search = Search(model)
        (state,) = self.search.cells.first_states()
        self.states = [state]
        self.steps: list[Step] = []
        for words in script:
            (step,) = [step for step in self.search.steps.of(self.states[-1]) if line(step) == words]
            self.steps.append(step)
            self.states.append(step.state)

    def neglected(self, start: int) -> set[Action]:
        """What can happen in every state from the given one on, and must, and does not happen."""
        actions = [
            {self.search.steps.action(step) for step in self.search.steps.of(each)} for each in self.states[start:]
        ]
        taken = {self.search.steps.action(step) for step in self.steps[start:]}
        return {action for action in set.intersection(*actions) - taken if action is not None}
