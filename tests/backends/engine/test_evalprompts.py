"""A person's prompts and checkers: read, run, and each mistake with its place."""

import json
import sys
from pathlib import Path

import pytest

from backends.engine import evalprompts
from backends.engine.evalprompts import BadPrompts, Checker, CheckFailed, Prompt, read

LINE = {"prompt": "2 + 2?", "right": "4"}


def write(path: Path, *lines: object) -> Path:
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return path


def test_prompts_are_messages_or_one_message(tmp_path):
    chat = {"messages": [{"role": "system", "content": "Be short."}]}
    found = read(write(tmp_path / "p.jsonl", LINE, "", chat, LINE))
    assert [finding.messages for finding in found] == [
        [{"role": "user", "content": "2 + 2?"}], chat["messages"],
    ]  # fmt: skip
    other = read(write(tmp_path / "q.jsonl", chat, LINE))
    assert {item.key for item in other} == {finding.key for finding in found}


@pytest.mark.parametrize(
    ("line", "words"),
    [("{", "line 2: not JSON"), ({"text": "x"}, "line 2: `messages` or `prompt` is required"),
     ({"messages": []}, "is required"), ([], "is required")],
)  # fmt: skip
def test_a_line_that_asks_nothing_is_named(tmp_path, line, words):
    with pytest.raises(BadPrompts, match=words):
        read(write(tmp_path / "p.jsonl", LINE, line))


def test_no_prompts_are_no_evaluation(tmp_path):
    with pytest.raises(BadPrompts, match="has no prompts"):
        read(write(tmp_path / "p.jsonl", ""))
    with pytest.raises(BadPrompts, match="cannot be read"):
        read(tmp_path / "nowhere.jsonl")


async def test_a_python_file_checks_answers(tmp_path):
    file = tmp_path / "check.py"
    file.write_text(
        "import json, sys\nasked = json.load(sys.stdin)\nprint(asked['right'] in asked['answer'])"
    )
    prompt = Prompt("k", LINE)
    # A truth is no number to a shell; a checker says 0 or 1.
    with pytest.raises(CheckFailed, match="no number: b'True"):
        await Checker.of(str(file)).score(prompt, "It is 4.")
    file.write_text(file.read_text().replace("print(", "print(1.0 * (") + ")")
    checker = Checker.of(str(file))
    assert checker.command[0] == sys.executable
    assert await checker.score(prompt, "It is 4.") == 1
    assert await checker.score(prompt, "It is 5.") == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [("false", "exited with status 1"), ("/no/such/command", "cannot be started")],
)
async def test_a_checker_that_fails_is_told(words, said):
    with pytest.raises(CheckFailed, match=said):
        await Checker.of(words).score(Prompt("k", LINE), "x")


async def test_a_checker_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(evalprompts, "CHECK_LIMIT_S", 0.05)
    with pytest.raises(CheckFailed, match="more than"):
        await Checker.of("sleep 60").score(Prompt("k", LINE), "x")


def test_no_words_are_no_checker():
    with pytest.raises(ValueError, match="a command or a Python file"):
        Checker.of(" ")


@pytest.mark.parametrize("said", ["nan", "inf", "-inf"])
async def test_a_score_that_is_no_number_is_none(said):
    with pytest.raises(CheckFailed, match="printed no number"):
        await Checker.of(f"echo {said}").score(Prompt("k", LINE), "x")


def test_a_prompt_may_hold_line_breaks_that_are_no_newline(tmp_path):
    file = tmp_path / "prompts.jsonl"
    text = "one\u2028two\x85three"
    file.write_text("\ufeff" + json.dumps({"prompt": text}, ensure_ascii=False) + "\r\n")
    (prompt,) = read(file)
    assert prompt.messages[0]["content"] == text


def test_a_line_nested_too_deep_is_told(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text("[" * 200_000)
    with pytest.raises(BadPrompts, match="line 1: not JSON"):
        read(file)
