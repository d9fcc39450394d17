"""Programs that know nothing of the log: each of their lines is one of ours."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import warmstart
from gateway.host.log_wrapper import LogOptions, passwords, wrapper_arguments

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import logging, sys
def main():
    print("words", *sys.argv[1:])
    logging.getLogger("theirs").warning("no pa55word at all")
    raise SystemExit(7)

if __name__ == "__main__":
    main()
"""
URL = "postgresql+psycopg://breakeven:pa55word@db/ledger"


@pytest.fixture
def run(tmp_path):
    (tmp_path / "other_program.py").write_text(PROGRAM)

    def ran(*argv: str) -> subprocess.CompletedProcess:
        environ = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "SOME_URL": URL}
        return subprocess.run(
            [sys.executable, *argv], capture_output=True, text=True, check=False, env=environ
        )

    return ran


def test_every_line_is_json_and_of_no_password(run) -> None:
    done = run(
        *wrapper_arguments("other", LogOptions("json", "warning"), "other_program"), "--a", "b"
    )
    assert (done.returncode, done.stdout) == (7, "")
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(each_line["process"], each_line["message"]) for each_line in said] == [
        ("other", "words --a b"), ("other", "no *** at all"),
    ]  # fmt: skip
    plain = run("-m", "other_program", "--a", "b")
    assert "pa55word" in plain.stderr, "the control"


def test_the_ledger_s_writer_says_its_last_words_in_it(run) -> None:
    """It refuses to start without its arguments; and it reads no configuration meanwhile."""
    done = run(*wrapper_arguments("ledger-writer", LogOptions("json", "warning"), "ledger.writer"))
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 2
    assert "required: --journals" in said[-1]["message"]


def test_passwords_of_addresses() -> None:
    found = {"A": URL, "B": "http://u:a%20b@x", "C": "http://x", "D": "no address", "E": "x://[u:p"}
    assert sorted(password.reveal() for password in passwords(found)) == [
        "a b", "a%20b", "pa55word", "pa55word",
    ]  # fmt: skip


OURS = ("worker-0", "ledger-writer", "telemetry", "dashboard", "provider-standin")


def test_json_is_json_for_every_line_of_every_process(make_host, patiently) -> None:
    """What the engines write is theirs; the dashboard says where it answers as it starts."""
    host = make_host(
        workers=1, engines=1,
        logs={"format": "json", "level": "info"}, dashboard={"enabled": True, "port": 0},
    )  # fmt: skip
    folder, own = host.state / "logs", [host.state / name for name in ("output", "errors")]
    with own[0].open("wb") as output, own[1].open("wb") as errors:
        done = warmstart.programs().start(
            ["serve", "--config", host.config], output=output.fileno(), errors=errors.fileno()
        )

    def said(name: str) -> str:
        return (folder / f"{name}.log").read_text() if (folder / f"{name}.log").exists() else ""

    try:
        patiently(lambda: "http" in said("dashboard") and host.pids("ledger.writer"), 120)
        (host.state / "ledger.db").rename(host.state / "elsewhere.db")  # the writer has news
        (writer,) = host.pids("ledger.writer")
        os.kill(writer, 9)
        patiently(lambda: said("ledger-writer"), 120)
    finally:
        done.terminate()
        done.wait(120)
    output, errors = (path.read_text() for path in own)
    texts = {name: said(name) for name in OURS} | {"serve": errors, "serve's output": output}
    for name, text in texts.items():
        for line in text.splitlines():
            assert json.loads(line)["process"] == name, (name, line)
    assert all(texts[name] for name in ("dashboard", "ledger-writer", "serve"))
    assert output == ""
    assert any("is started again" in json.loads(line)["message"] for line in errors.splitlines())
