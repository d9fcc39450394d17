"""A supposed request: planned as a real one, against the running host's state, and never sent."""

import asyncio
import os
from pathlib import Path

import pytest

from backends.base import Call
from backends.errors import Unreachable
from gateway.hypothetical import Nobody, Question, explain
from gateway.settings import parse
from router.types import Reason


def test_beside_a_running_host_it_sees_what_a_request_would(stack) -> None:
    before = stack.booked(), len(stack.entries("engine"))
    decision = explain(stack.settings, Question("chat", "search", 100, 50), os.environ)
    assert decision is not None
    assert decision.order[0].candidate.name == "pool:main/0"
    assert {verdict.candidate.name for verdict in decision.verdicts} == {"pool:main/0", "alpha/m"}
    assert (len(stack.rows()), len(stack.entries("engine"))) == before
    alias = explain(stack.settings, Question("gpt-4o", "search", 100, 50), os.environ)
    assert alias is not None
    assert alias.order[0].candidate.name == "pool:main/0"
    assert explain(stack.settings, Question("nothing", "search", 100, 50), os.environ) is None


def test_without_a_host_engines_are_unknown(tmp_path: Path) -> None:
    text = f"""
    state_dir: {tmp_path}
    models: {{m: {{targets: ["pool:a", "openai/gpt-4o-mini"], compare_with: [x]}}}}
    pools:
      a: {{engine: {{kind: simulated, model: x, replicas: 1}}, gpu: {{type: H200}}}}
    providers: {{openai: {{}}}}
    """
    decision = explain(parse(text, name="t"), Question("m", "t", 10, 5), {})
    assert decision is not None
    reasons = {verdict.candidate.name: verdict.reason for verdict in decision.verdicts}
    assert reasons["pool:a/0"] is not Reason.CHEAPEST
    assert all(verdict.candidate.name != "pool:a/0" for verdict in decision.order)


def test_nothing_is_ever_sent() -> None:
    with pytest.raises(Unreachable):
        asyncio.run(Nobody().open(Call("/chat/completions", b"{}", stream=False)))
    asyncio.run(Nobody().aclose())
