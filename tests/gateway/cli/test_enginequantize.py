"""`breakeven engine quantize`: its table, its JSON, and errors that name the field."""

import json
import stat
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

PROGRAM = """
import json, pathlib, sys
out = pathlib.Path(sys.argv[4])
out.mkdir()
(out / "model.safetensors").write_bytes(b"x" * 250_000)
print(json.dumps({"done": {"seconds": 2.5, "calibration": {"prompts": 2, "tokens": 1070}}}))
"""


@pytest.fixture
def words(tmp_path: Path) -> list[object]:
    python = tmp_path / "engine" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!{sys.executable}\n{PROGRAM}")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"x" * 1_000_000)
    (tmp_path / "compressor" / "llmcompressor").mkdir(parents=True)
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Hello"}\n')
    return ["engine", "quantize", model, tmp_path / "out", "--engine", tmp_path / "engine",
            "--compressor", tmp_path / "compressor"]  # fmt: skip


def invoke(words: list[object], *more: object):
    return CliRunner().invoke(app, [str(word) for word in (*words, *more)])


def test_what_was_made_and_how_to_judge_it(words, tmp_path):
    prompts = ("--prompts", tmp_path / "prompts.jsonl")
    answer = invoke(words, "--method", "gptq", *prompts)
    assert answer.exit_code == 0, answer.output
    plain = answer.stdout.replace("\n", "")
    for part in ("gptq by llm-compressor, 0.2 MB (25% of 1.0)", "2 prompts, 1,070 tokens",
                 "next: breakeven engine eval"):  # fmt: skip
        assert part in plain, plain
    (tmp_path / "out" / "model.safetensors").unlink()
    (tmp_path / "out").rmdir()
    document = json.loads(invoke(words, "--method", "fp8", "--json").stdout)
    assert (document["method"], document["bytes_after"]) == ("fp8", 250_000)


@pytest.mark.parametrize(("more", "said"), [
    (("--method", "int3"), "--method"),
    (("--method", "awq"), "--prompts FILE"),
    (("--method", "gptq", "--prompts", "/dev/null"), "--prompts: /dev/null has no prompts"),
    (("--method", "fp8", "--compressor", "/nowhere"), "/nowhere has no llm-compressor"),
])  # fmt: skip
def test_errors_name_the_field(words, more, said):
    answer = invoke(words, *more)
    assert answer.exit_code != 0
    assert said in " ".join(answer.output.split())
