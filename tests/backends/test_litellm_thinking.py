"""Claude's budgets of thinking through LiteLLM stay below the cap of the answer."""

import json
from typing import Any

import pytest

from backends.base import Call
from backends.litellm import load
from backends.litellm_arguments import AdapterArguments
from backends.openai import Credentials

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]


def told(prefix: str, model: str, **asked: Any) -> tuple[Any, tuple[str, ...]]:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **asked}
    call = Call("/chat/completions", json.dumps(body).encode(), stream=False)
    _, arguments = AdapterArguments(prefix, Credentials(), None).make(load(), call)
    return arguments["reasoning_effort"], call.transmission.ignored


@pytest.mark.parametrize("cap", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize(
    ("tokens", "asked", "effort"),
    [
        (4097, "high", "high"), (4096, "high", "medium"), (1100, "high", "low"),
        (1025, "minimal", "minimal"), (1024, "high", None), (100, "low", None),
        (100, "none", "none"),
    ],
)  # fmt: skip
def test_a_budget_is_below_the_cap(cap: str, tokens: int, asked: str, effort: str | None) -> None:
    """Red before: Anthropic refused every request with a lower cap."""
    found = told("anthropic", "claude-haiku-4-5", **{cap: tokens}, reasoning_effort=asked)
    assert found == (effort, () if effort == asked else ("reasoning_effort",))


@pytest.mark.parametrize(
    ("prefix", "model", "asked"),
    [
        ("anthropic", "claude-haiku-4-5", {}),
        ("anthropic", "claude-opus-4-6", {"max_tokens": 100}),
        ("openrouter", "anthropic/claude-sonnet-4.5", {"max_tokens": 100}),
        ("gemini", "gemini-2.5-pro", {"max_tokens": 100}),
    ],
    ids=["no cap", "no budget", "the provider's own affair", "another model"],
)
def test_other_efforts_stay_as_they_are(prefix: str, model: str, asked: dict[str, int]) -> None:
    assert told(prefix, model, reasoning_effort="high", **asked) == ("high", ())
