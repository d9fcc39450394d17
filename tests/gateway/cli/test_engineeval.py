"""`breakeven engine eval`: the table and the status, over models that answer by rote."""

import fcntl
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app


def evaluate(*words: object):
    return CliRunner().invoke(app, ["engine", "eval", *(str(word) for word in words)])


class Rote(BaseHTTPRequestHandler):
    """Tells no log-probabilities; `/worse/` gives every other answer another end."""

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.say(200, {"data": [{"id": "rote"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "logprobs" in body:
            self.say(400, {"error": {"message": "no logprobs"}})
            return
        asked = body["messages"][0]["content"]
        end = "wrong" if "/worse/" in self.path and int(asked) % 2 else "right"
        self.say(200, {"choices": [{"message": {"content": "so it is " * 8 + end}}]})

    def say(self, status: int, document: dict) -> None:
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Rote)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def words(address: str, tmp_path: Path) -> tuple[object, ...]:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": str(index)}) + "\n" for index in range(64)))
    check = tmp_path / "check.sh"
    check.write_text("#!/bin/sh\ngrep -c 'right' || true\n")
    check.chmod(0o755)
    return (f"base={address}/v1", f"same={address}/same/v1", f"worse={address}/worse/v1",
            "--prompts", prompts, "--log", tmp_path / "log.jsonl", "--engine",
            tmp_path / "engine")  # fmt: skip


def test_a_table_with_verdicts_and_status_1_unless_all_pass(words, tmp_path):
    answer = evaluate(*words)
    assert answer.exit_code == 0, answer.output
    assert "up to the first difference" in answer.stdout
    document = json.loads(evaluate(*words, "--json").stdout)
    rows = {candidate["name"]: candidate for candidate in document["candidates"]}
    assert rows["same"]["verdict"]["state"] == "passes"
    assert rows["same"]["figures"]["same"] == 1
    # 32 of 64 answers have another word in the 25th place of 25.
    assert rows["worse"]["figures"]["disagreement"]["value"] == 32 / (64 * 25)
    assert rows["worse"]["verdict"]["state"] == "passes"
    answer = evaluate(*words, "--risk", "high")
    assert answer.exit_code == 1
    assert "worse: tokens that differ: 2.00%" in answer.stdout
    assert "same:" not in answer.stdout.replace("same: compared", "")
    answer = evaluate(*words, "--limit", 0.02)
    assert answer.exit_code == 1
    assert "more prompts decide" in answer.stdout


def test_a_checker_decides(words, tmp_path):
    more = ("--checker", tmp_path / "check.sh", "--log", tmp_path / "checked.jsonl")
    answer = evaluate(*words, *more)
    assert answer.exit_code == 1, answer.output
    assert "score lost: 50.00%" in answer.stdout
    assert "1.000 -> 0.500" in answer.stdout
    only = [word for word in words if not str(word).startswith("worse=")]
    assert evaluate(*only, *more).exit_code == 0


def test_a_checker_that_was_edited_is_another(words, tmp_path):
    """Its old scores would be shown as its new ones."""
    check = tmp_path / "check.sh"
    more = ("--checker", check, "--log", tmp_path / "checked.jsonl")
    assert "1.000 -> 0.500" in evaluate(*words, *more).stdout
    check.write_text("#!/bin/sh\necho 1\n")
    answer = evaluate(*words, *more)
    assert answer.exit_code == 1
    assert "belongs to other work (checker_digest differ)" in answer.stderr


def test_a_second_evaluation_into_one_log_is_refused(words, tmp_path):
    with (tmp_path / "log.jsonl").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        answer = evaluate(*words)
        assert answer.exit_code == 1
        assert "log.jsonl: another process works on it" in answer.stderr
    assert "passes" in evaluate(*words).stdout


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "belongs to other work (hardware, prompts"),
        (("--risk", "none"), "no risk class is named none"),
        (("--prompts", "/nowhere"), "cannot be read"),
        (("--api-key-env", "NO_SUCH_KEY"), "has no NO_SUCH_KEY"),
        (("same=http://127.0.0.1:1/v1",), "two candidates have one name"),
        (("/nowhere",), "neither an address nor a model"),
    ],
)
def test_mistakes_are_told(words, more, said, tmp_path):
    (tmp_path / "log.jsonl").write_text(json.dumps({"about": {"eval": 1}}) + "\n")
    answer = evaluate(*words, *more)
    assert answer.exit_code == 1
    assert said in answer.stderr


def test_what_cannot_be_asked_is_told(words):
    answer = evaluate("http://127.0.0.1:1/v1#m", *words[1:2], *words[3:])
    assert answer.exit_code == 1
    assert "undecided" in answer.stdout
    assert "http://127.0.0.1:1" in answer.stdout
