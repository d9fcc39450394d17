"""Simulated rankings: by shared words, counted as vLLM counts or billed as Cohere bills."""

import json

import pytest

from backends.simulator.dialect import RefusedError, SimulatedRules
from backends.simulator.ranking import parse_ranking, rank_documents, score

RULES = SimulatedRules(("m",), 100, 16)


def asked(**changes):
    fields = {"model": "m", "query": "a b", "documents": ["b c", {"text": "A B"}, "x"], **changes}
    return parse_ranking(json.dumps(fields).encode(), RULES)


def test_the_best_come_first_and_ties_keep_their_order() -> None:
    found = json.loads(rank_documents(asked(), id="r", searches=False, documents=True))
    assert [(result["index"], result["relevance_score"]) for result in found["results"]] == [
        (1, 1.0), (0, 0.5), (2, 0.0),
    ]  # fmt: skip
    assert found["results"][0]["document"] == {"text": "A B"}
    assert found["usage"] == {"prompt_tokens": 18, "total_tokens": 18}  # (1 + 1 + 4) x 3


def test_searches_and_a_limit() -> None:
    many = asked(documents=["x"] * 201, top_n=1)
    found = json.loads(rank_documents(many, id="r", searches=True, documents=False))
    assert found["meta"]["billed_units"] == {"search_units": 3}
    assert found["results"] == [{"index": 0, "relevance_score": 0.0}]
    assert "usage" not in found


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"query": None}, "body.query"),
        ({"documents": []}, "body.documents"),
        ({"documents": [1]}, "body.documents"),
        ({"documents": ["x" * 500]}, "documents"),
        ({"model": "other"}, "model"),
    ],
)
def test_refusals(changes, param) -> None:
    with pytest.raises(RefusedError) as raised:
        asked(**changes)
    assert raised.value.param == param


def test_no_words_score_nothing() -> None:
    assert score("", "a") == 0.0
