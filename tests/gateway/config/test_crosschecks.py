"""Names that lead nowhere and contradictions: one row per fault, over a file that has none."""

import pytest

from gateway.config.aliases import logical_models
from gateway.config.crosschecks import CHECKS
from gateway.config.document import read_document
from gateway.config.draft import draft_settings

GOOD = """
models:
  chat: {targets: ["pool:own", "openai/gpt-4o-mini"], compare_with: ["openai/gpt-4o-mini"]}
  code: {targets: ["pool:own"], residency: internal_only, compare_with: ["openai/gpt-4o-mini"]}
  gpt-4o: {same_as: chat}
  "openai/*": passthrough
pools:
  own: {engine: {endpoints: ["http://h:1/v1"]}, gpu: {type: H200}}
providers:
  openai: {api_key_env: OPENAI_API_KEY}
policies:
  - {name: fast, match: {models: [chat, "openai/gpt*", "c*"]}}
  - {name: rest, match: {teams: [search]}}
  - {name: last}
"""


def found(text: str) -> list[str]:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    return [fault.text("f") for check in CHECKS for fault in check(settings)]


def test_the_sound_file_has_no_faults():
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("{api_key_env: OPENAI_API_KEY}", "{api_key_env: K, kind: anthropic, tier: flex}",
         "providers.openai.tier: Anthropic's Messages have no service tier"),
        ('"openai/*": pass', '"acme/*": pass', "models.acme/*: no provider named `acme`"),
        ('"openai/*": pass', "openai: pass", "models.openai: a pass-through model is named after"),
        ("same_as: chat}", "same_as: chatt}",
         "models.gpt-4o.same_as: `chatt` leads to no model; did you mean `chat`?"),
        ("same_as: chat}", "same_as: gpt-4o}",
         "models.gpt-4o.same_as: `gpt-4o` leads to no model, but back to `gpt-4o`"),
        ("same_as: chat}", "same_as: chat, targets: [openai/x]}",
         "models.gpt-4o.same_as: an alias has no targets"),
        ('["pool:own", "openai/gpt-4o-mini"]', "[]", "models.chat.targets: at least one is needed"),
        ('["pool:own", ', '["pool:ownn", ',
         "models.chat.targets[0]: no pool named `ownn`; did you mean `own`?"),
        ('["pool:own", ', '["own", ',
         "`own` is not a `pool:NAME` or `PROVIDER/MODEL`; did you mean `pool:own`?"),
        ('["pool:own", ', '["pool:own", "openai/", ', "models.chat.targets[1]: `openai/` is no"),
        ('["pool:own", ', '["pool:own", "pool:own", ',
         "models.chat.targets[1]: `pool:own` is stated twice"),
        ('["pool:own", ', '["acme/x", ', "models.chat.targets[0]: no provider named `acme`"),
        (', compare_with: ["openai/gpt-4o-mini"]}', "}",
         "models.chat.compare_with: name at least one API model"),
        ('{targets: ["pool:own", ', '{residency: internal_only, targets: ["pool:own", ',
         "models.chat.residency: internal_only, but the target `openai/gpt-4o-mini` is an"),
        ("name: rest", "name: fast", "policies[1].name: policy names must be unique: `fast`"),
        ("models: [chat, ", "models: [chatt, ",
         "policies[0].match.models[0]: no model named `chatt`; did you mean `chat`?"),
        ("models: [chat, ", "models: [gpt-4o, ",
         "policies[0].match.models[0]: `gpt-4o` is an alias: name `chat`"),
        ('"c*"]', '"z*"]', "policies[0].match.models[2]: no model named `z*`"),
        ("name: rest, match: {teams: [search]}", "name: rest",
         "warning: policies[2]: never used: `rest` above it matches every request"),
    ],
)  # fmt: skip
def test_a_fault_is_said_at_its_place(before, after, said):
    assert before in GOOD
    faults = found(GOOD.replace(before, after, 1))
    assert len([fault for fault in faults if said in fault]) == 1, faults


def test_a_circle_of_aliases_is_told_of_each():
    faults = found("models: {a: {same_as: b}, b: {same_as: a}, c: {same_as: a}}")
    assert [fault.split(": ")[1] for fault in faults] == ["models.a.same_as", "models.b.same_as"]


def test_aliases_and_pass_through_are_no_logical_models():
    settings = draft_settings(read_document(GOOD)).settings
    assert settings is not None
    assert [name for name, _ in logical_models(settings)] == ["chat", "code"]
