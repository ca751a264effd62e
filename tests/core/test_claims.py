import dataclasses
import json

import pytest

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.formula import Formula
from trinco.protocols.catalogue import ENTRIES


def claims(**changes):
    promised = {
        "paper": "A paper",
        "network": Network.FIFO,
        "messages_per_entry": Formula("2*(n-1)"),
        "delay": Formula("2"),
        "fairness": Fairness.FIFO_BY_CLOCK,
    }
    return Claims(**{**promised, **changes})


def test_a_paper_that_says_nothing_of_faults_promises_to_survive_none():
    silent = claims()
    assert silent.crashes.high(n=9) == 0
    assert silent.byzantine.high(n=9) == 0
    assert silent.k.high(n=9) == 1


def test_claims_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        claims().crashes = Formula("n")


def test_networks_are_ranked_by_how_badly_they_behave():
    assert Network.FIFO.misbehaviour < Network.UNORDERED.misbehaviour < Network.LOSSY.misbehaviour


def test_claims_as_plain_values_keep_every_field_and_can_be_json():
    plain = claims(year=1981, roles={"server": Formula("1")}).as_dict()
    assert set(plain) == {field.name for field in dataclasses.fields(Claims)}
    assert json.loads(json.dumps(plain)) == plain


def test_claims_as_plain_values_read_as_a_person_would_write_them():
    plain = claims(roles={"client": Formula("n-1")}).as_dict()
    assert plain["messages_per_entry"] == "2*(n-1)"
    assert plain["fairness"] == "fifo-by-clock"
    assert plain["network"] == "fifo"
    assert plain["roles"] == {"client": "n-1"}
    assert plain["bypass"] is None


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_formula_of_the_catalogue_has_a_value_at_the_smallest_size(entry):
    for field in dataclasses.fields(entry.claims):
        value = getattr(entry.claims, field.name)
        if isinstance(value, Formula):
            letters = entry.letters(entry.smallest)
            assert value.low(**letters) <= value.high(**letters)
