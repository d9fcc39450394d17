"""Texts and tokens of a simulated engine: one is found again from the other."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.simulator.dialect import RefusedError, SimulatedRules
from backends.simulator.tokens import detokenize, text_of, tokenize, tokens_of

RULES = SimulatedRules(("m",), 1000, 16)


@given(st.text(st.characters(min_codepoint=1, exclude_categories=("Cs",))))
def test_a_text_is_found_again(text: str) -> None:
    assert text_of(tokens_of(text)) == text


def test_a_conversation_is_counted() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    answer = json.loads(tokenize(body, RULES))
    assert answer["count"] == len(answer["tokens"])
    assert answer["max_model_len"] == 1000


@pytest.mark.parametrize(
    ("read", "members"),
    [(tokenize, {}), (tokenize, {"prompt": "x", "model": "y"}), (detokenize, {}),
     (detokenize, {"tokens": [2**32]}), (detokenize, {"tokens": "x"}),
     (detokenize, {"tokens": [], "model": "y"})],
)  # fmt: skip
def test_what_is_wrong_is_refused(read, members: dict) -> None:
    with pytest.raises(RefusedError):
        read(json.dumps(members).encode(), RULES)
