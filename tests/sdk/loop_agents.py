"""Coding agents as a person starts them: their words, their settings and their environment.

Each is told the address, the key and a model, and nothing else but to talk to nobody besides.
"""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM_LIMIT_S = 120
ASK = "Run the command that you know and tell what it said."
CODEX = """
model = "{model}"
model_provider = "gateway"
approval_policy = "never"
[model_providers.gateway]
name = "gateway"
base_url = "{base_url}"
env_key = "GATEWAY_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
CONTINUE = """
name: gateway
version: 1.0.0
schema: v1
models:
  - name: loop
    provider: openai
    model: {model}
    apiKey: {key}
    apiBase: {base_url}
    roles: [chat]
    capabilities: [tool_use]
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent works: its folder, the gateway's address and a key."""

    folder: Path
    base_url: str
    key: str
    packages: Path

    @property
    def root(self) -> str:
        return self.base_url.removesuffix("/v1")

    def put(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def program(self, pattern: str) -> str:
        """The package is a launcher; the program is in one made for this platform."""
        return str(next(iter(sorted(self.packages.glob(pattern)))))


@dataclass(frozen=True, slots=True)
class AgentStart:
    """Words and environment of one run."""

    words: list[str]
    environ: dict[str, str] = field(default_factory=dict)


def claude_code(place: Place) -> AgentStart:
    words = [place.program("@anthropic-ai/claude-code-linux-*/claude"), "-p", ASK,
             "--output-format", "json", "--allowedTools", "Bash"]  # fmt: skip
    return AgentStart(words, {
        "ANTHROPIC_BASE_URL": place.root, "ANTHROPIC_AUTH_TOKEN": place.key,
        "ANTHROPIC_MODEL": "claude-sonnet-4-5", "ANTHROPIC_SMALL_FAST_MODEL": "loop",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
    })  # fmt: skip


def codex(model: str) -> Callable[[Place], AgentStart]:
    def start(place: Place) -> AgentStart:
        place.put(".codex/config.toml", CODEX.format(model=model, base_url=place.base_url))
        program = place.program("@openai/codex-linux-*/vendor/*/*/codex")
        words = [program, "exec", "--json", "--skip-git-repo-check",
                 "--dangerously-bypass-approvals-and-sandbox", ASK]  # fmt: skip
        return AgentStart(words, {"GATEWAY_KEY": place.key})

    return start


def opencode(npm: str) -> Callable[[Place], AgentStart]:
    def start(place: Place) -> AgentStart:
        made = {
            "provider": {"gateway": {
                "npm": npm, "name": "gateway", "models": {"loop": {"name": "loop"}},
                "options": {"baseURL": place.base_url, "apiKey": place.key},
            }},
            "share": "disabled", "autoupdate": False, "small_model": "gateway/loop",
            "permission": {"bash": "allow"},
        }  # fmt: skip
        place.put("opencode.json", json.dumps(made))
        program = place.program("opencode-linux-x64/bin/opencode")
        words = [program, "run", "--format", "json", "-m", "gateway/loop", "--auto", ASK]
        return AgentStart(
            words, {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
        )

    return start


def qwen_code(place: Place) -> AgentStart:
    place.put(".qwen/settings.json", json.dumps({
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False}, "general": {"disableAutoUpdate": True},
    }))  # fmt: skip
    words = ["node", str(place.packages / "@qwen-code/qwen-code/cli.js"), "-y", "-o", "json",
             "--auth-type", "openai", "-p", ASK]  # fmt: skip
    return AgentStart(words, {"OPENAI_API_KEY": place.key, "OPENAI_BASE_URL": place.base_url,
                           "OPENAI_MODEL": "loop"})  # fmt: skip


def continue_cli(place: Place) -> AgentStart:
    place.put("config.yaml", CONTINUE.format(model="loop", key=place.key, base_url=place.base_url))
    program = str(place.packages / "@continuedev/cli/dist/cn.js")
    words = ["node", program, "--config", "config.yaml", "--auto", "-p", ASK, "--format", "json"]
    return AgentStart(words, {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_TEST": "true"})


def pi(api: str) -> Callable[[Place], AgentStart]:
    def start(place: Place) -> AgentStart:
        base_url = place.root if api == "anthropic-messages" else place.base_url
        model = {"id": "loop", "name": "loop", "reasoning": False, "input": ["text"],
                 "contextWindow": 64000, "maxTokens": 4000,
                 "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}  # fmt: skip
        made = {"providers": {"gateway": {"baseUrl": base_url, "api": api, "apiKey": "GATEWAY_KEY",
                                          "models": [model]}}}  # fmt: skip
        place.put(".pi/agent/models.json", json.dumps(made))
        program = str(place.packages / "@mariozechner/pi-coding-agent/dist/cli.js")
        words = [
            "node",
            program,
            "-p",
            "--mode",
            "json",
            "--provider",
            "gateway",
            "--model",
            "loop",
            ASK,
        ]
        return AgentStart(words, {"GATEWAY_KEY": place.key, "PI_OFFLINE": "1"})

    return start


def cline(place: Place) -> AgentStart:
    kind = "openai-compatible"
    made = {"version": 1, "lastUsedProvider": kind, "providers": {kind: {
        "settings": {"provider": "openai-compatible", "model": "loop", "apiKey": place.key,
                     "baseUrl": place.base_url},
        "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual",
    }}}  # fmt: skip
    place.put("data/settings/providers.json", json.dumps(made))
    program = place.program("@cline/cli-linux-*/bin/cline")
    words = [program, "--json", "--data-dir", "data", "-P", "openai-compatible", "-m", "loop",
             "-k", place.key, "-t", "60", ASK]  # fmt: skip
    return AgentStart(words, {"CLINE_TELEMETRY_DISABLED": "1", "DO_NOT_TRACK": "1"})


AGENTS: dict[str, Callable[[Place], AgentStart]] = {
    "claude-code": claude_code,
    "codex": codex("loop"),
    "codex-gpt-5.5": codex("gpt-5.5"),
    "codex-gpt-5.6-sol": codex("gpt-5.6-sol"),
    "opencode": opencode("@ai-sdk/openai-compatible"),
    "opencode-responses": opencode("@ai-sdk/openai"),
    "opencode-anthropic": opencode("@ai-sdk/anthropic"),
    "qwen-code": qwen_code,
    "continue": continue_cli,
    "pi": pi("openai-completions"),
    "pi-responses": pi("openai-responses"),
    "pi-anthropic": pi("anthropic-messages"),
    "cline": cline,
}


def run_agent(name: str, place: Place) -> str:
    """What it wrote; it sees nothing of this process's environment."""
    started = AGENTS[name](place)
    home = {"PATH": os.environ["PATH"], "HOME": str(place.folder), "NO_PROXY": "127.0.0.1"}
    answer = subprocess.run(
        started.words, cwd=place.folder, env={**home, **started.environ}, check=False,
        capture_output=True, text=True, timeout=PROGRAM_LIMIT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    return answer.stdout


def tokens_told(name: str, said: str) -> list[int] | None:
    """Tokens that the agent itself says were used, given and answered; None: it is silent."""
    lines = [json.loads(line) for line in said.splitlines() if line.startswith(("{", "["))]
    if name == "claude-code":
        used = list(lines[-1]["modelUsage"].values())
        given = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        return [
            sum(use[key] for use in used for key in given),
            sum(use["outputTokens"] for use in used),
        ]
    if name.startswith("codex"):
        (used,) = [line["usage"] for line in lines if line["type"] == "turn.completed"]
        return [used["input_tokens"], used["output_tokens"]]
    if name == "qwen-code":
        used = lines[-1][-1]["usage"]
        return [used["input_tokens"], used["output_tokens"]]
    if name == "cline":
        used = lines[-1]["usage"]
        return [used["inputTokens"], used["outputTokens"]]
    return None
