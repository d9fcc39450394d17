"""Rules that are never reached: a warning, and an error where a protection is lost with them."""

import pytest
import yaml

from gateway.config.checks.policy_order import check_policy_order
from gateway.config.rule_fields import RESTRICTIONS
from gateway.config.schema import Settings

MODELS = {
    "chat": {"targets": ["pool:own", "openai/small"], "compare_with": ["openai/small"]},
    "code": {"targets": ["pool:own", "openai/small"], "compare_with": ["openai/small"]},
    "inner": {"targets": ["pool:own"], "residency": "internal_only"},
}
NIGHT = "match: {times: [{days: [mon], starts: '20:00', ends: '06:00'}]}"
STRICT = "slo: {ttft_ms: 500, strict: true}"


def order_faults(*rules: str, models: dict[str, object] | None = None) -> list[tuple[str, str]]:
    policies = [yaml.safe_load("{" + rule + "}") for rule in rules]
    settings = Settings.model_validate({"models": models or MODELS, "policies": policies})
    return [(fault.severity, fault.message) for fault in check_policy_order(settings)]


@pytest.mark.parametrize(
    "restriction",
    [
        "residency: internal_only", "residency: INTERNAL_ONLY", "candidates: [pool:own]",
        "candidates: [openai/small]", "max_usd_per_request: 0.01", "max_quality_loss: 0.1", STRICT,
        "slo: {tpot_ms: 40, strict: true}",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("uppers", "lower"),
    [
        (["name: all"], "name: law"),
        (["name: all"], "name: law, match: {teams: [legal]}"),
        (["name: all"], "name: law, match: {models: [chat], when: 'n > 1'}"),
        (["name: team, match: {teams: [legal, hr]}"], "name: law, match: {teams: [legal]}"),
        (["name: model, match: {models: [chat]}"],
         "name: law, match: {models: [chat], teams: [legal]}"),
        (["name: stem, match: {models: ['c*']}"], "name: law, match: {models: [chat, code]}"),
        (["name: week, match: {times: [{}]}"], "name: law"),
        (["name: always, match: {when: 'true'}"], "name: law"),
        (["name: same, match: {when: 'n > 1'}"], "name: law, match: {when: 'n>1'}"),
        ([f"name: hours, {NIGHT}"], f"name: law, {NIGHT}"),
        (["name: a, match: {models: [chat]}", "name: b, match: {models: [code]}"],
         "name: law, match: {models: [chat, code]}"),
        (["name: a, match: {teams: [legal]}", "name: b, match: {teams: [hr]}"],
         "name: law, match: {teams: [hr, legal]}"),
        (["name: a, match: {models: [chat]}", "name: b, match: {models: [code]}",
          "name: c, match: {models: [inner]}"], "name: law"),
        (["name: a, match: {models: [chat]}", "name: b, match: {models: [code]}"],
         "name: law, match: {models: ['c*']}"),
        (["name: first, match: {teams: [hr]}", "name: all"], "name: law, match: {teams: [legal]}"),
    ],
)  # fmt: skip
def test_a_protection_that_never_acts_is_an_error(uppers, lower, restriction) -> None:
    ((severity, message),) = order_faults(*uppers, f"{lower}, {restriction}")
    names = [entry.setting for entry in RESTRICTIONS]
    name = next(name for name in names if name.partition(".")[0] in restriction)
    assert severity == "error"
    assert message.startswith("never used: ")
    assert f"so its `{name}` never acts: move it above `" in message


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("name: all", "name: low, queue_ms: 500"),
        ("name: all", "name: low, weights: {'pool:own': 1}"),
        ("name: all", "name: low, slo: {ttft_ms: 500}"),
        ("name: all", "name: low, slo: {strict: true}"),  # strict about no time at all
        ("name: all", "name: low, residency: any, priority: high"),
        ("name: all, residency: internal_only", "name: low, residency: internal_only"),
        ("name: all, residency: internal_only", "name: low, candidates: ['pool:own']"),
        ("name: all, candidates: ['pool:own']", "name: low, candidates: ['pool:own', 'a/b']"),
        ("name: all, candidates: ['pool:own']", "name: low, residency: internal_only"),
        ("name: all, max_usd_per_request: 1", "name: low, max_usd_per_request: 2"),
        ("name: all, slo: {ttft_ms: 400, strict: true}", f"name: low, {STRICT}"),
        ("name: all", "name: low, match: {models: [inner]}, residency: internal_only"),
        ("name: all, shadow: true", "name: low, shadow: true, residency: internal_only"),
    ],
)  # fmt: skip
def test_what_loses_no_protection_stays_a_warning(upper, lower) -> None:
    ((severity, message),) = order_faults(upper, lower)
    assert (severity, message) == ("warning", "never used: `all` above it matches every request")


@pytest.mark.parametrize(
    ("upper", "lower", "name"),
    [
        ("max_usd_per_request: 2", "max_usd_per_request: 1", "max_usd_per_request"),
        ("slo: {ttft_ms: 600, strict: true}", STRICT, "slo.strict"),
        ("slo: {ttft_ms: 500}", STRICT, "slo.strict"),
        ("candidates: ['pool:own', 'a/b']", "candidates: ['pool:own']", "candidates"),
        ("candidates: ['pool:own', 'a/b']", "residency: internal_only", "residency"),
    ],
)
def test_a_looser_restriction_above_is_none(upper, lower, name) -> None:
    ((severity, message),) = order_faults(f"name: all, {upper}", f"name: low, {lower}")
    assert (severity, f"`{name}`" in message) == ("error", True)


def test_several_lost_protections_are_told_together() -> None:
    ((_, message),) = order_faults(
        "name: all", "name: low, residency: internal_only, max_usd_per_request: 1"
    )
    assert "its `residency` and `max_usd_per_request` never act: move it above `all`" in message


DAY, LATE = "starts: '06:00', ends: '20:00'", "starts: '20:00', ends: '06:00'"


@pytest.mark.parametrize(
    "uppers",
    [
        (f"name: a, match: {{times: [{{{DAY}}}, {{{LATE}}}]}}",),
        (f"name: a, match: {{times: [{{{DAY}}}]}}", f"name: b, match: {{times: [{{{LATE}}}]}}"),
        (
            f"name: a, match: {{models: [chat, code, inner], times: [{{{DAY}}}]}}",
            f"name: b, match: {{times: [{{{LATE}}}]}}",
        ),
    ],
)
def test_hours_that_are_the_whole_week_together_leave_none(uppers) -> None:
    ((severity, message),) = order_faults(*uppers, "name: law, residency: internal_only")
    assert severity == "error"
    assert "its `residency` never acts: move it above `a`" in message


def test_hours_that_leave_a_minute_leave_the_rule() -> None:
    late = LATE.replace("06:00", "05:59")
    upper = f"name: a, match: {{times: [{{{DAY}}}, {{{late}}}]}}"
    assert order_faults(upper, "name: law, residency: internal_only") == []


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("name: a, shadow: true", "name: b"),
        ("name: a, match: {when: 'n > 1'}", "name: b"),
        ("name: a, match: {when: 'n > 1'}", "name: b, match: {when: 'n > 2'}"),
        (f"name: a, {NIGHT}", "name: b"),
        (f"name: a, {NIGHT}", "name: b, match: {times: [{days: [tue]}]}"),
        ("name: a, match: {teams: [hr]}", "name: b, match: {teams: [hr, legal]}"),
        ("name: a, match: {models: [chat]}", "name: b, match: {models: ['c*']}"),
        ("name: a, match: {models: [chat], teams: [hr]}", "name: b, match: {teams: [hr]}"),
    ],
)  # fmt: skip
def test_a_rule_that_can_act_has_no_fault(upper, lower) -> None:
    assert order_faults(upper, lower + ", residency: internal_only") == []


def test_a_pattern_of_an_open_provider_is_more_than_the_models_that_are_known() -> None:
    models = MODELS | {"openai/*": "passthrough", "openai/x": {"targets": ["openai/x"]}}
    uppers = ["name: a, match: {models: [openai/x]}"]
    lower = "name: b, match: {models: ['openai/*']}, residency: internal_only"
    assert order_faults(*uppers, lower, models=models) == []
    assert order_faults("name: a, match: {models: ['openai/*']}", lower, models=models)
