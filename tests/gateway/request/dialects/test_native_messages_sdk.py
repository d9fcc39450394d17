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


def told_by_sdk(url: str, key: str, model: str, folder: Path) -> dict[str, Any]:
    python = parts.by_name("anthropic").find()
    assert python is not None
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
    }
    answer = subprocess.run(
        [str(python), "-I", str(PROGRAM), model], env=environ, cwd=folder, check=False,
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
    direct = told_by_sdk(upstream.url, "any", "m", tmp_path)
    sent_directly = bodies(upstream)
    upstream.asked.clear()
    through = told_by_sdk(spoken.url, spoken.token, "told/m", tmp_path)
    assert through == direct
    assert bodies(upstream) == sent_directly
    assert through["whole"]["bytes"].encode() == upstream.whole
    assert through["whole"]["message"] == WHOLE
    paths = [path for path, _ in sent_directly]
    assert paths == [*[PATH] * ANSWERED, f"{PATH}/count_tokens"]
    betas = [heads.get("anthropic-beta") for _, heads, _ in upstream.asked]
    assert betas[ANSWERED - 1] == "mcp-client-2025-11-20,code-execution-2025-08-25"
    rows = [row for row in spoken.rows() if row["target"] == "told/m"]
    assert [row["cost_pusd"] for row in rows] == [BILL_PUSD] * ANSWERED
