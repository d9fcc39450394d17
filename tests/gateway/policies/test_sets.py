"""A set of policies is judged under the rest of the configuration, and never half in force."""

import pytest

from gateway.config.schema_policies import POLICIES_MOST
from gateway.config.settings import parse, version
from gateway.policies.sets import LONGEST, examine_set, rules_of, written
from ledger.policies import PolicySet

CONFIG = parse(
    """
models: {chat: {targets: [openai/gpt-4o-mini]}, other: {targets: [openai/gpt-4o-mini]}}
providers: {openai: {api_key_env: OPENAI_API_KEY}}
policies: [{name: default, slo: {ttft_ms: 900}}]
budgets: [{scope: global, usd: "0.5"}]
""",
    name="breakeven.yaml",
)
FITS = "policies:\n  - {name: chat, match: {models: [chat]}, max_usd_per_request: 0.25}\n"


def test_only_the_policies_change() -> None:
    found = examine_set("state_dir: elsewhere\n" + FITS, CONFIG, "new.yaml")
    assert found.faults == ()
    assert [rule.name for rule in found.settings.policies] == ["chat"]
    assert found.settings.model_copy(update={"policies": CONFIG.policies}) == CONFIG
    assert version(found.settings) != version(CONFIG)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("policies:\n  - {name: a, match: {models: [nothing]}}", "new.yaml:2: policies[0].match"),
        ("policies:\n  - {name: a, otherwise: wait}", "new.yaml:2: policies[0].otherwise"),
        ("policies:\n  - {name: a}\n  - {name: a}", "new.yaml:"),
        ("policy: []", "new.yaml:1: there is no `policies` in it"),
        ("policies: [", "new.yaml:"),
        ("#" * LONGEST + FITS, "new.yaml: has 1,000,079 characters, more than 1,000,000"),
        (
            "policies:\n" + "".join(f"  - {{name: p{n}}}\n" for n in range(POLICIES_MOST + 1)),
            "new.yaml:1: policies: must have at most 1,000 entries",
        ),
    ],
)
def test_every_fault_has_the_line_of_its_own_file(text, line) -> None:
    found = examine_set(text, CONFIG, "new.yaml")
    assert found.settings is None
    assert found.lines[0].startswith(line)


def test_the_newest_set_is_in_force_and_without_one_the_file() -> None:
    assert rules_of(CONFIG, None) == (CONFIG, version(CONFIG), None)
    back = PolicySet(2, None, 0, "ann")
    assert rules_of(CONFIG, back) == (CONFIG, version(CONFIG), None)
    found = rules_of(CONFIG, PolicySet(1, FITS, 0, "ann"))
    assert [rule.name for rule in found.settings.policies] == ["chat"]
    assert found.version == version(found.settings)


def test_a_set_that_no_longer_fits_is_told_and_left_out() -> None:
    stored = PolicySet(3, "policies: [{name: a, match: {models: [gone]}}]", 0, "ann")
    found = rules_of(CONFIG, stored)
    assert (found.settings, found.version) == (CONFIG, version(CONFIG))
    assert "policy set 3" in found.fault
    assert "gone" in found.fault


def test_a_set_stands_beside_a_provider_that_states_no_kinds() -> None:
    """Of what nobody stated, a provider serves what its dialect has: no default is a fault."""
    config = parse(
        """
models: {claude: {targets: [anthropic/claude-sonnet-4-5]}}
providers: {anthropic: {kind: anthropic, api_key_env: ANTHROPIC_API_KEY}}
policies: [{name: default}]
""",
        name="breakeven.yaml",
    )
    text = "policies: [{name: claude, match: {models: [claude]}}]"
    assert examine_set(text, config, "new.yaml").faults == ()
    found = rules_of(config, PolicySet(1, text, 0, "ann"))
    assert found.fault is None
    assert [rule.name for rule in found.settings.policies] == ["claude"]


def test_what_is_written_is_read_as_the_same() -> None:
    again = examine_set(written(CONFIG), CONFIG, "again")
    assert again.settings == CONFIG
    assert "ttft_ms: 900" in written(CONFIG)
    assert "attainment" not in written(CONFIG)
