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
            "openai/*": "passthrough",
        }
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
    ],
)
def test_names_are_resolved(asked, served):
    found = resolve_model(SETTINGS, asked)
    assert found is not None
    assert found[0] == served
    assert found[1].targets


@pytest.mark.parametrize("asked", ["nope", "openai/", "anthropic/x", "openai/*", "", "round"])
def test_unknown_names_are_no_models(asked):
    assert resolve_model(SETTINGS, asked) is None
