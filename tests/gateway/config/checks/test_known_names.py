"""Names that no key of the ledger has are told wherever the configuration names somebody."""

import pytest

from gateway.config.checks.known_names import check_unknown_names, mentioned_names
from gateway.config.schema import Settings

KNOWN = {
    "team": frozenset({"search", "legal"}), "org": frozenset({"acme"}),
    "user": frozenset({"alice"}), "key": frozenset({"0123456789abcdef"}),
    "tag": frozenset({"app", "app=web"}),
}  # fmt: skip
MODELS = {"chat": {"targets": ["openai/x"]}}


def told(document: dict[str, object], known=KNOWN) -> list[str]:
    settings = Settings.model_validate({"models": MODELS, **document})
    faults = list(check_unknown_names(settings, known))
    assert {fault.severity for fault in faults} <= {"warning"}
    return [f"{fault.path}: {fault.message}" for fault in faults]


def rule(match: dict[str, object]) -> dict[str, object]:
    return {"policies": [{"name": "a", "match": match}]}


SAMPLING = {"teams": ["serach"], "model": "m", "baseline": "b", "key_env": "K"}
SAMPLED = {"a": {"engine": {}, "gpu": {"type": "CPU"}, "sampling": SAMPLING}}


@pytest.mark.parametrize(
    ("document", "path", "near"),
    [
        (rule({"teams": ["legal", "serach"]}), "policies[0].match.teams[1]", "`search`"),
        (rule({"when": "team == 'serach'"}), "policies[0].match.when", "`search`"),
        (rule({"when": "'serach' != team"}), "policies[0].match.when", "`search`"),
        (rule({"when": "team in ['legal', \"serach\"]"}), "policies[0].match.when", "`search`"),
        (rule({"when": "org == 'acmee'"}), "policies[0].match.when", "`acme`"),
        (rule({"when": "user == 'alcie'"}), "policies[0].match.when", "`alice`"),
        (rule({"when": "has(tags.ap)"}), "policies[0].match.when", "`app`"),
        (rule({"when": "tags.app == 'wbe'"}), "policies[0].match.when", "`app=web`"),
        (rule({"when": "model == 'chta'"}), "policies[0].match.when", "`chat`"),
        ({"budgets": [{"scope": "team:serach", "usd": 1}]}, "budgets[0].scope", "`search`"),
        ({"budgets": [{"scope": "user:alcie", "usd": 1}]}, "budgets[0].scope", "`alice`"),
        ({"budgets": [{"scope": "tag:app=wbe", "usd": 1}]}, "budgets[0].scope", "`app=web`"),
        ({"limits": [{"scope": "org:acmee"}]}, "limits[0].scope", "`acme`"),
        ({"limits": [{"scope": "key:0123456789abcdee"}]}, "limits[0].scope", "`0123456789abcdef`"),
        ({"queue": {"weights": {"serach": 2}}}, "queue.weights.serach", "`search`"),
        ({"pools": SAMPLED}, "pools.a.sampling.teams[0]", "`search`"),
    ],
)  # fmt: skip
def test_a_mistyped_name_is_told_with_the_one_that_was_meant(document, path, near) -> None:
    (line,) = told(document)
    assert line.startswith(f"{path}: no ")
    assert f"did you mean {near}" in line


@pytest.mark.parametrize(
    "document",
    [
        rule({"teams": ["search"], "when": "team == 'legal' && tags['app'] == 'web'"}),
        {"budgets": [{"scope": "team:*", "usd": 1}, {"scope": "global", "usd": 1}]},
        {"budgets": [{"scope": "provider:openai", "usd": 1}, {"scope": "tag:app", "usd": 1}]},
        rule({"when": "kind == 'chat' && stream == true"}),
    ],
)
def test_known_names_are_not_told(document) -> None:
    assert told(document) == []


def test_nothing_is_said_of_kinds_that_have_no_names_yet() -> None:
    document = {**rule({"teams": ["serach"]}), "limits": [{"scope": "user:alcie"}]}
    assert told(document, {}) == []
    assert len(told(document, {"team": frozenset({"search"})})) == 1


def test_any_model_may_be_meant_where_a_provider_is_open() -> None:
    models = {**MODELS, "openai/*": "passthrough"}
    assert told({**rule({"when": "model == 'openai/y'"}), "models": models}) == []


def test_every_scope_and_every_match_is_a_mention() -> None:
    settings = Settings.model_validate(rule({"teams": ["a"], "when": "user == 'b'"}))
    assert [(kind, name) for _, kind, name in mentioned_names(settings)] == [
        ("team", "a"),
        ("user", "b"),
    ]
