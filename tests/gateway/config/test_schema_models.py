"""Models in stages as they are written, and what is said of those that cannot be meant."""

import pytest

from gateway.config.document import read_document
from gateway.config.editors import json_schema
from gateway.config.schema_models import STAGES_LIMIT, ModelSection
from gateway.config.settings import judge_document, parse

FILE = """
providers:
  a: {{base_url: "https://a.example/v1"}}
  b: {{base_url: "https://b.example/v1"}}
models:
  m:
    targets: [a/x]
{rest}
"""


def faults(rest: str) -> list[str]:
    text = FILE.format(rest="\n".join(f"    {line}" for line in rest.splitlines()))
    return judge_document(read_document(text), "f").lines


def test_stages_are_read_in_their_order() -> None:
    rest = (
        "    then: [{after: [failure, context], targets: [b/x, b/y]}, {after: ANY, targets: [b/z]}]"
    )
    model = parse(FILE.format(rest=rest), name="f").models["m"]
    assert isinstance(model, ModelSection)
    assert [(stage.causes, stage.targets) for stage in model.then] == [
        (("failure", "context"), ("b/x", "b/y")), (("any",), ("b/z",)),
    ]  # fmt: skip
    assert model.reachable == ("a/x", "b/x", "b/y", "b/z")
    assert model.overflow == ("a/x", "b/z")


@pytest.mark.parametrize(
    ("rest", "line", "told"),
    [
        ("then: [{after: failure}]", 8, "then[0].targets: at least one is needed"),
        ("then:\n- {targets: [a/x]}", 9, "`a/x` is already one of `targets`"),
        ("then:\n- {targets: [b/x, b/x]}", 9, "stated twice"),
        ("then:\n- {targets: [c/x]}", 9, "no provider named `c`"),
        ("then:\n- {targets: ['pool:p']}", 9, "no pool named `p`"),
        ("then:\n- {after: error, targets: [b/x]}", 9, "failure"),
        ("then:\n- {on: failure, targets: [b/x]}", 9, "write `after`"),
        ("then:\n- {targets: [b/x], timeouts: {total_s: 5}}", 9, "the model's own `timeouts`"),
        ("timeouts: {head_s: 0}", 8, "head_s"),
        ("residency: internal_only\nthen: [{targets: [b/x]}]", 8, "is an external API"),
        ("quality_loss: {b/x: 0.1}", 8, "not a target of this model"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_line(rest, line, told) -> None:
    found = faults(rest)
    assert any(text.startswith(f"f:{line}:") and told in text for text in found), found


def test_a_later_stage_counts_where_any_target_does() -> None:
    assert faults("then: [{targets: [b/x]}]\nquality_loss: {b/x: 0.1}") == []
    names = ", ".join(f"{{targets: [b/{n}]}}" for n in range(STAGES_LIMIT + 1))
    assert any("then" in text for text in faults(f"then: [{names}]"))


@pytest.mark.parametrize("member", ["n", "max_tokens", "model", "tools", "service_tier"])
def test_no_member_of_each_request_changes_what_it_may_cost(member) -> None:
    text = FILE.format(rest="").replace('v1"}', f'v1", extra_body: {{{member}: 3, top_k: 1}}}}', 1)
    (told,) = judge_document(read_document(text), "f").lines
    assert f"providers.a.extra_body.{member}" in told


def test_editors_complete_stages() -> None:
    stage = json_schema()["$defs"]["StageSection"]
    words = ["any", "failure", "context", "content_policy"]
    one, several = stage["properties"]["after"]["anyOf"]
    assert one["enum"] == several["items"]["enum"] == words
