"""Claude Code and Codex, unchanged, asked one thing: they are told where to go, nothing else."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from deploy import parts

APPLIED_LIMIT_S = 60
PROGRAM_LIMIT_S = 120
LABEL = "[simulated]:"  # how every answer of the stand-in begins
ROWS = "SELECT * FROM attempts WHERE team_id = :team AND settled_us IS NOT NULL ORDER BY opened_us"
CODEX = """
model = "chat"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "{base_url}"
env_key = "GATEWAY_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
pytestmark = pytest.mark.part("coding")


def program(pattern: str) -> Path:
    """The package is a launcher; the program is in one made for this platform."""
    found = parts.by_name("coding").find() / "node_modules"
    return next(iter(sorted(found.glob(pattern))))


def typed(words: list[str | Path], folder: Path, **environ: str) -> str:
    answer = subprocess.run(
        words, cwd=folder, env={"PATH": os.environ["PATH"], "HOME": str(folder), **environ},
        check=False, capture_output=True, text=True, timeout=PROGRAM_LIMIT_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    return answer.stdout


def test_claude_code(gateway, tmp_path: Path) -> None:
    claude = program("@anthropic-ai/claude-code-linux-*/claude")
    said = typed(
        [claude, "-p", "hi", "--output-format", "json"],
        tmp_path,
        ANTHROPIC_BASE_URL=gateway.root,
        ANTHROPIC_AUTH_TOKEN=gateway.key(team="team-claude-code"),
        ANTHROPIC_MODEL="chat",
        ANTHROPIC_SMALL_FAST_MODEL="chat",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
    )
    found = json.loads(said)
    assert (found["is_error"], found["num_turns"]) == (False, 1)
    assert found["result"].startswith(LABEL)
    rows = gateway.until(lambda: gateway.rows(ROWS, team="team-claude-code"), APPLIED_LIMIT_S)
    assert {row["status"] for row in rows} == {"finished"}
    used = found["modelUsage"]["chat"]
    given = used["inputTokens"] + used["cacheReadInputTokens"] + used["cacheCreationInputTokens"]
    assert given == sum(row["input_tokens"] + row["cached_tokens"] for row in rows)
    assert used["outputTokens"] == sum(row["output_tokens"] for row in rows)


def test_codex(gateway, tmp_path: Path) -> None:
    """It offers functions in a namespace and a search of OpenAI's with everything that it asks."""
    codex = program("@openai/codex-linux-*/vendor/*/*/codex")
    settings = tmp_path / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(CODEX.format(base_url=gateway.base_url), encoding="utf-8")
    said = typed(
        [codex, "exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", "hi"],
        tmp_path,
        GATEWAY_KEY=gateway.key(team="team-codex"),
    )
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    (answer,) = [
        event["item"]["text"]
        for event in events
        if event["type"] == "item.completed" and event["item"]["type"] == "agent_message"
    ]
    assert answer.startswith(LABEL)
    (usage,) = [event["usage"] for event in events if event["type"] == "turn.completed"]
    (row,) = gateway.until(lambda: gateway.rows(ROWS, team="team-codex"), APPLIED_LIMIT_S)
    assert row["status"] == "finished"
    assert usage["input_tokens"] == row["input_tokens"] + row["cached_tokens"]
    assert usage["cached_input_tokens"] == row["cached_tokens"]
    assert usage["output_tokens"] == row["output_tokens"]
