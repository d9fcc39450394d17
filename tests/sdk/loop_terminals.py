"""Clients of the terminal, in Python, as a person starts them: an address, a key and a model."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from loop_agents import ASK, PROGRAM_LIMIT_S

from deploy import parts


@dataclass(frozen=True, slots=True)
class TerminalStart:
    """Words and environment of one run; `first`: the program's words before it, if any."""

    words: list[str]
    environ: dict[str, str]
    first: list[str] = field(default_factory=list)


def aider(base_url: str, key: str) -> TerminalStart:
    """It sends no tools: edits are texts."""
    words = ["--model", "openai/loop", "--openai-api-base", base_url, "--openai-api-key", key,
             "--no-git", "--yes-always", "--no-check-update", "--no-show-model-warnings",
             "--analytics-disable", "--no-show-release-notes", "--no-pretty",
             "--message", ASK]  # fmt: skip
    return TerminalStart(words, {"LITELLM_LOCAL_MODEL_COST_MAP": "True"})


def gptme(base_url: str, key: str) -> TerminalStart:
    words = ["--non-interactive", "--tool-format", "tool", "-t", "shell", "-m", "local/loop", ASK]
    return TerminalStart(words, {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": key})


def shell_gpt(base_url: str, key: str) -> TerminalStart:
    environ = {"API_BASE_URL": base_url, "OPENAI_API_KEY": key, "DEFAULT_MODEL": "loop",
               "PRETTIFY_MARKDOWN": "false"}  # fmt: skip
    return TerminalStart(["--no-cache", ASK], environ, ["--install-functions"])


# Name: the part that it is in, its program, and how it is started.
TERMINALS: dict[str, tuple[str, str, Callable[[str, str], TerminalStart]]] = {
    "aider": ("loops-aider", "aider", aider),
    "gptme": ("loops-guide", "gptme", gptme),
    "shell-gpt": ("loops-shell", "sgpt", shell_gpt),
}


def run_terminal(name: str, folder: Path, base_url: str, key: str) -> str:
    """Return what it wrote; it sees nothing of this process's environment."""
    part, program, start = TERMINALS[name]
    python = parts.by_name(part).find()
    assert python is not None, part
    started = start(base_url, key)
    told = ""
    for words in filter(None, (started.first, started.words)):
        answer = subprocess.run(
            [str(python.with_name(program)), *words], cwd=folder, check=False, text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder),
                 "NO_PROXY": "127.0.0.1", **started.environ},
            capture_output=True, timeout=PROGRAM_LIMIT_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
        told = answer.stdout
    return told
