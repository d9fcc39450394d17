"""Anthropic's own SDK, at a server that speaks Messages and through the gateway: no difference."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from messages_upstream import BILL_PUSD, CODE, PATH, WHOLE, MessagesUpstream

from deploy import parts

pytestmark = pytest.mark.part("anthropic")
PROGRAM = Path(__file__).parents[3] / "sdk" / "clients" / "native_messages_checks.py"
ANSWERED = 4  # checks that an answer is made and booked for
LIMIT_S = 60


def told_by_sdk(folder: Path, *where: str) -> list[dict[str, Any]]:
    """What it tells of each server, which is a URL, a key and a model."""
    python = parts.by_name("anthropic").find()
    assert python is not None
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    answer = subprocess.run(
        [str(python), "-I", str(PROGRAM), *where], env=environ, cwd=folder, check=False,
        input=json.dumps(CODE).encode(), capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr.decode()[-4000:]
    return json.loads(answer.stdout)


def bodies(upstream: MessagesUpstream) -> list[tuple[str, list[tuple[str, Any]]]]:
    """Paths and members, in their order."""
    return [(path, list(json.loads(body).items())) for path, _, body in upstream.asked]


def test_the_sdk_sees_and_sends_through_the_gateway_what_it_does_directly(
    spoken, upstream, tmp_path: Path
) -> None:
    places = upstream.url, "any", "m", spoken.url, spoken.token, "told/m"
    direct, through = told_by_sdk(tmp_path, *places)
    assert through == direct
    sent = bodies(upstream)
    sent_directly, sent_through = sent[: len(sent) // 2], sent[len(sent) // 2 :]
    assert sent_through == sent_directly
    assert through["whole"]["bytes"].encode() == upstream.whole
    assert through["whole"]["message"] == WHOLE
    paths = [path for path, _ in sent_directly]
    assert paths == [*[PATH] * ANSWERED, f"{PATH}/count_tokens"]
    betas = [heads.get("anthropic-beta") for _, heads, _ in upstream.asked[len(paths) :]]
    assert betas[ANSWERED - 1] == "mcp-client-2025-11-20,code-execution-2025-08-25"
    rows = [row for row in spoken.rows() if row["target"] == "told/m"]
    assert [row["cost_pusd"] for row in rows] == [BILL_PUSD] * ANSWERED
