"""Names of models: aliases of aliases, pass-through, and names that lead nowhere."""

import pytest

from gateway.config.aliases import resolve_model
from gateway.config.schema import Settings

SETTINGS = Settings.model_validate(
    {
        "models": {
            "chat": {"targets": ["openai/a"]},
            "gpt": {"same_as": "chat"},
            "alias-of-alias": {"same_as": "gpt"},
            "through": {"same_as": "openai/gpt-5"},
            "round": {"same_as": "about"},
            "about": {"same_as": "round"},
            "openai/o9": {"targets": ["openai/a"]},
            "openai/*": "passthrough",
        },
        "budgets": [{"scope": "model:openai/GPT-6", "usd": 1}],
        "limits": [{"scope": "model:openai/gpt-7", "requests_per_minute": 1}],
        "policies": [{"name": "inside", "match": {"models": ["openai/gpt-8"]}}],
    }
)


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("chat", "chat"),
        ("gpt", "chat"),
        ("alias-of-alias", "chat"),
        ("openai/gpt-5", "openai/gpt-5"),
        ("through", "openai/gpt-5"),
        ("openai/gpt-5 ", "openai/gpt-5"),
        ("openai/GPT-5", "openai/GPT-5"),
        ("openai/gpt-6", "openai/GPT-6"),
        (" openai/GPT-7  ", "openai/gpt-7"),
        ("openai/Gpt-8", "openai/gpt-8"),
        ("openai/O9", "openai/o9"),
    ],
)
def test_names_are_resolved(asked, served):
    found = resolve_model(SETTINGS, asked)
    assert found is not None
    assert found[0] == served
    assert found[1].targets


def test_what_is_passed_through_is_asked_for_as_its_budget_names_it() -> None:
    """Red before: with a blank behind it the model was another one, and had no budget."""
    found = resolve_model(SETTINGS, "openai/gpt-6 ")
    assert found is not None
    assert (found[0], found[1].targets) == ("openai/GPT-6", ("openai/GPT-6",))


@pytest.mark.parametrize("asked", ["nope", "openai/", "anthropic/x", "openai/*", "", "round"])
def test_unknown_names_are_no_models(asked):
    assert resolve_model(SETTINGS, asked) is None
