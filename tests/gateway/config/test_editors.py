"""The schema for editors: it takes what `check` takes, refuses what is mistyped, and explains."""

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from gateway.config.document import read_document
from gateway.config.editors import SECTIONS, json_schema
from gateway.config.settings import judge_document

schema = functools.cache(json_schema)
WRITTEN = ("breakeven.example.yaml", "deploy/compose.breakeven.yaml")
GUIDES = (
    "README.md",
    "gateway/README.md",
    "docs/how-to/dashboard-access.md",
    "docs/explanation/scale.md",
)
GOOD = """
models:
  chat: {targets: [pool:a, openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}
  alias: {same_as: chat}
  "openai/*": passthrough
pools:
  a:
    engine: {kind: vllm, model: /models/x, replicas: 2}
    gpu: {type: H200, billing: reserved, usd_per_hour: 3.50, since: 2026-11-01, until: 2027-10-31}
providers:
  openai: {api_key_env: OPENAI_API_KEY}
policies:
  - {name: night, match: {models: [chat]}, slo: {ttft_ms: 500}, otherwise: queue, queue_ms: 900}
  - name: default
budgets:
  - {scope: "team:search", usd: 500, period: month, hard: true}
"""


def faults(text: str) -> list[str]:
    """As editors read YAML: a day is text."""
    document = json.loads(json.dumps(yaml.safe_load(text), default=str))
    return [fault.json_path for fault in Draft202012Validator(schema()).iter_errors(document)]


def is_taken(text: str) -> bool:
    return judge_document(read_document(text), "file").settings is not None


def texts(root: Path) -> Iterator[tuple[str, str]]:
    yield from ((name, (root / name).read_text("utf-8")) for name in WRITTEN)
    for name in GUIDES:
        blocks = re.findall(r"```yaml\n(.*?)```", (root / name).read_text("utf-8"), re.DOTALL)
        yield from ((name, block) for block in blocks)


def test_it_takes_every_file_that_we_show(pytestconfig) -> None:
    shown = list(texts(pytestconfig.rootpath))
    assert len(shown) >= 4
    assert [name for name, text in shown if faults(text)] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("usd: 500", "usd: '500'"), ("usd: 500", "usd: '1e3'"), ("usd: 500", "usd: '0.50'"),
        ("3.50", "'3.50'"), ("2026-11-01", "'2026-11-01'"), ("replicas: 2", "replicas: 2.0"),
        ("slo: {ttft_ms: 500}", "weights: {pool:a: 1}"),
        ("slo: {ttft_ms: 500}", "canary: {target: pool:a, percent: 5}"),
    ],
)  # fmt: skip
def test_it_takes_what_check_takes(before: str, after: str) -> None:
    text = GOOD.replace(before, after, 1)
    assert text != GOOD
    assert (is_taken(GOOD), faults(GOOD)) == (True, [])
    assert (is_taken(text), faults(text)) == (True, [])


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("policies:", "polices:", "$"),
        ("targets:", "target:", "$.models.chat"),
        ("billing:", "biling:", "$.pools.a.gpu"),
        ("reserved", "reservd", "$.pools.a.gpu.billing"),
        ("month", "monthly", "$.budgets[0].period"),
        ("otherwise: queue", "otherwise: qeue", "$.policies[0].otherwise"),
        ("kind: vllm", "kind: vlm", "$.pools.a.engine.kind"),
        ("replicas: 2", "replicas: two", "$.pools.a.engine.replicas"),
        ("usd: 500", "usd: $500", "$.budgets[0].usd"),
        ("usd: 500", "usd: -1", "$.budgets[0].usd"),
        ("3.50", "3.50/h", "$.pools.a.gpu.usd_per_hour"),
        ("hard: true", "hard: maybe", "$.budgets[0].hard"),
        ("2026-11-01", "soon", "$.pools.a.gpu.since"),
        ("2026-11-01", "01.11.2026", "$.pools.a.gpu.since"),
        ("ttft_ms: 500", "ttft_ms: 500ms", "$.policies[0].slo.ttft_ms"),
        ("models: [chat]", "models: chat", "$.policies[0].match.models"),
        ("- name: default", "- slo: {ttft_ms: 3}", "$.policies[1]"),
        ("api_key_env: OPENAI_API_KEY", "api_key: sk-x", "$.providers.openai"),
    ],
)
def test_it_marks_what_is_mistyped(before: str, after: str, place: str) -> None:
    text = GOOD.replace(before, after, 1)
    assert text != GOOD
    assert not is_taken(text)
    assert faults(text) == [place]


def test_every_section_and_every_field_says_what_it_is() -> None:
    definitions = schema()["$defs"]
    assert SECTIONS.keys() <= definitions.keys()

    def said(field: dict[str, Any]) -> bool:
        options = [field, *field.get("anyOf", ())]
        names = [option["$ref"].rpartition("/")[2] for option in options if "$ref" in option]
        return bool(field.get("description")) or any(
            definitions[name].get("description") for name in names
        )

    sections = {"": schema(), **definitions}
    silent = [
        f"{section}.{name}"
        for section, each_section in sections.items()
        for name, field in each_section.get("properties", {}).items()
        if not said(field)
    ]
    assert silent == []
