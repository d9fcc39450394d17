"""Prompts of an evaluation, and the user's checker that scores the answers.

Prompts are JSON lines with `messages` (a chat) or `prompt` (one user message). Other members of a
line are for the checker, for example the right answer. A checker is a command or a Python file. It
reads one JSON object (the line, with `answer` added) and writes one number, from 0 (wrong) to 1
(right).
"""

import asyncio
import hashlib
import json
import math
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECK_LIMIT_S = 60.0


class BadPrompts(ValueError):
    """A file of prompts cannot be read; the text names the line."""


class CheckFailed(Exception):
    """The checker failed, took too long, or wrote no number."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt. `key` is a hash of the line, so that the order of lines does not matter."""

    key: str
    line: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        if "messages" in self.line:
            messages: list[dict[str, Any]] = self.line["messages"]
            return messages
        return [{"role": "user", "content": self.line["prompt"]}]


def read(path: Path) -> tuple[Prompt, ...]:
    """Read the prompts of a file, without duplicates. Raises `BadPrompts`."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # texts may hold other line breaks
    except (OSError, UnicodeDecodeError) as error:
        raise BadPrompts(f"{path} cannot be read: {error}") from error
    found: dict[str, Prompt] = {}
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadPrompts(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(line, dict) or not _has_prompt(line):
            raise BadPrompts(f"{path}, line {number}: `messages` or `prompt` is required")
        key = hashlib.sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()[:16]
        found[key] = Prompt(key, line)
    if not found:
        raise BadPrompts(f"{path} has no prompts")
    return tuple(found.values())


def _has_prompt(line: dict[str, Any]) -> bool:
    messages = line.get("messages")
    if messages is not None:
        return isinstance(messages, list) and bool(messages)
    return isinstance(line.get("prompt"), str)


@dataclass(frozen=True, slots=True)
class Checker:
    command: tuple[str, ...]

    @staticmethod
    def of(words: str) -> "Checker":
        """Parse a checker's command line. Raises `ValueError` when it is empty.

        A file that ends in `.py` runs under this Python interpreter.
        """
        command = shlex.split(words)
        if not command:
            raise ValueError("the checker must be a command or a Python file")
        if command[0].endswith(".py"):
            command = [sys.executable, *command]
        return Checker(tuple(command))

    @property
    def mark(self) -> str:
        """Return the checker's identity for a log: a hash of its arguments and its files."""
        found = hashlib.sha256(json.dumps(self.command[1:]).encode())
        for word in self.command:
            path = Path(word)
            if word != sys.executable and path.is_file():
                found.update(path.read_bytes())
        return found.hexdigest()[:16]

    async def score(self, prompt: Prompt, answer: str) -> float:
        """Return the checker's score of an answer. Raises `CheckFailed`."""
        asked = json.dumps(prompt.line | {"answer": answer}).encode()
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise CheckFailed(f"the checker cannot be started: {error}") from error
        try:
            async with asyncio.timeout(CHECK_LIMIT_S):
                said, complaint = await process.communicate(asked)
        except TimeoutError as error:
            process.kill()
            await process.wait()
            raise CheckFailed(f"the checker took more than {CHECK_LIMIT_S:.0f} s") from error
        if process.returncode:
            words = complaint.decode("utf-8", "replace").strip()[-300:]
            raise CheckFailed(f"the checker exited with status {process.returncode}: {words}")
        try:
            score = float(said)
        except ValueError as error:
            raise CheckFailed(f"the checker printed no number: {said[:100]!r}") from error
        if not math.isfinite(score):
            raise CheckFailed(f"the checker printed no number: {said[:100]!r}")
        return score
