"""Moderations of the simulated provider: texts, lists and parts."""

import json

import pytest

from backends.simulator.dialect import RefusedError, SimulatedRules
from backends.simulator.moderation import DEFAULT_MODEL, moderate, parse_moderation

RULES = SimulatedRules((), 1000, 16)


@pytest.mark.parametrize(
    ("given", "texts"),
    [("x", ["x"]), (["x", "y"], ["x", "y"]),
     ([{"type": "text", "text": "x"}, {"type": "image_url"}], ["x "])],
)  # fmt: skip
def test_inputs_are_texts(given, texts: list[str]) -> None:
    assert parse_moderation(json.dumps({"input": given}).encode(), RULES) == (DEFAULT_MODEL, texts)


@pytest.mark.parametrize("members", [{}, {"input": []}, {"input": 5}])
def test_what_is_wrong_is_refused(members: dict) -> None:
    with pytest.raises(RefusedError):
        parse_moderation(json.dumps(members).encode(), RULES)


def test_a_word_of_a_category_flags_a_text() -> None:
    answer = json.loads(moderate("m", ["peace", "pure HATE"], id="modr-1"))
    assert [result["flagged"] for result in answer["results"]] == [False, True]
    assert answer["results"][1]["categories"]["hate"]
