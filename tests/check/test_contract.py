"""What a node must not do, and how the checker says so."""

import pytest

from tests.check.examples.astray import EntersAfterLeaving, EntersTwice, Misaddressed
from trinco.check.model import Model
from trinco.check.replay import replay
from trinco.check.run import check
from trinco.core.claims import Network
from trinco.core.errors import ContractBroken, UsageError


@pytest.mark.parametrize("kind", [EntersAfterLeaving, EntersTwice])
def test_whoever_enters_without_asking_breaks_the_contract_and_the_run_is_shown(kind: type) -> None:
    model = Model(nodes=[kind()])
    result = check(model)
    assert result.violation is not None
    assert (result.violation.kind, result.violation.text) == ("contract", "p0 entered without having asked")
    assert result.counterexample is not None
    assert replay(model, result.counterexample.script) == result.violation


def test_a_message_to_nobody_breaks_the_contract_and_names_both_ends() -> None:
    with pytest.raises(ContractBroken, match=r"p0.*9"):
        check(Model(nodes=[Misaddressed()]))


SENSELESS = {
    "no nodes": {"nodes": []},
    "nobody may be inside": {"nodes": [EntersTwice()], "k": 0},
    "fewer than no crashes": {"nodes": [EntersTwice()], "crashes": -1},
    "timers that fire less than never": {"nodes": [EntersTwice()], "fires": -1},
    "channels that lose": {"nodes": [EntersTwice()], "network": Network.LOSSY},
}


@pytest.mark.parametrize("fields", SENSELESS.values(), ids=SENSELESS.keys())
def test_a_model_that_makes_no_sense_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Model(**fields)  # type: ignore[arg-type]
