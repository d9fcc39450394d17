"""`breakeven engine bench` on the simulated engine: table, JSON, plot; mistakes in one line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def engine():
    command = ["-m", "backends.simulator.server", "--profile", "h200-llama-3.1-8b-fp8",
               "--model", "sim", "--port", "0"]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    found = re.search(r"http://\S+", process.stdout.readline())
    yield found[0]
    process.terminate()
    process.wait(timeout=30)
    process.stdout.close()


def bench(*words: object):
    return CliRunner().invoke(app, ["engine", "bench", *(str(word) for word in words)])


# Ctrl-C when the last of its loads has begun: from a process that signals itself then.
ENDED_EARLY = """
import os, signal, sys
from backends.engine.benchclient import BenchClient
from gateway.cli.app import app
url, loads, out = sys.argv[1:]
left, run = len(loads.split(",")), BenchClient.run
async def counted(self, *words):
    global left
    left -= 1
    if not left:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job behind a shell ignores it
        os.kill(os.getpid(), signal.SIGINT)
    return await run(self, *words)
BenchClient.run = counted
app(["engine", "bench", url, "--concurrency", loads, "--requests", "6", "--output-tokens", "8",
     "--prompt-tokens", "64", "--out", out])
"""
QUICK = ("--prompt-tokens", 64, "--output-tokens", 8, "--requests", 6)


def test_a_sweep_is_a_table_a_file_and_a_plot(engine, tmp_path):
    out, plot = tmp_path / "bench.json", tmp_path / "bench.svg"
    slo = ("--slo-ttft-ms", 60_000, "--usd-per-hour", "3.50")
    answer = bench(engine, "--concurrency", "1,2", *QUICK, *slo, "--out", out, "--plot", plot)
    assert answer.exit_code == 0, answer.output
    for word in ("1 at once", "2 at once", "100.0 %", "$/1M in+out", "saturation:", "bootstrap"):
        assert word in answer.stdout
    document = json.loads(out.read_text())
    assert [run["at_once"] for run in document["runs"]] == [1, 2]
    assert document["about"]["model"] == "sim"
    assert document["about"]["kv_tokens"] > 1000, "as its metrics say, for `engine fit`"
    assert plot.read_text().startswith("<svg")


def test_open_loops_are_named_by_their_rates_and_no_rate_no_cost(engine):
    answer = bench(engine, "--rate", "20,40", *QUICK, "--completions", "--json")
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    assert [run["name"] for run in document["runs"]] == ["20", "40"]
    assert "enter your GPU rate" in bench(engine, "--rate", "20", "--even", *QUICK).stdout


def test_a_trace_is_sent_as_it_was_recorded_and_fitted_again(engine, tmp_path):
    trace = tmp_path / "trace.csv"
    rows = [f"{place / 10},{40 + place},{4 + place},0.1,0.2" for place in range(6)]
    trace.write_text("\n".join(["start_s,input_tokens,output_tokens,ttft_s,e2e_s", *rows]))
    out = tmp_path / "bench.json"
    answer = bench(engine, "--trace", trace, "--speed", 2, "--out", out)
    assert answer.exit_code == 0, answer.output
    requests = json.loads(out.read_text())["runs"][0]["requests"]
    assert [request["output_tokens"] for request in requests] == [4, 5, 6, 7, 8, 9]
    words = ["engine", "fit", str(out), "--kv-tokens", "48000", "--evaluations", "2"]
    assert CliRunner().invoke(app, words).exit_code == 0


def test_failures_are_status_1_and_named(engine):
    answer = bench(engine, "--concurrency", 1, *QUICK, "--model", "other")
    assert answer.exit_code == 1
    assert "404" in answer.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rate", "1", "--concurrency", "2"), "one of --concurrency"),
        (("--rate", "x"), "not a list of numbers"),
        (("--rate", "0"), "above 0"),
        (("--rate", "nan"), "above 0 and at most 1,000,000"),
        (("--rate", "1,inf"), "above 0 and at most 1,000,000"),
        (("--concurrency", "inf"), "above 0 and at most 1,000,000"),
        (("--concurrency", "nan"), "above 0 and at most 1,000,000"),
        (("--concurrency", "1.5"), "whole numbers"),
        (("--usd-per-hour", "dear"), "is not a number"),
        (("--usd-per-hour", "-1"), "above 0"),
        (("--trace", "none.csv"), "No such file"),
        (("--key-env", "NOT_SET_ANYWHERE"), "is not set"),
        (("--out", "/none/bench.json"), "cannot write /none/bench.json"),
        (("--plot", "/"), "is a folder"),
        ((), "nothing answers there"),
    ],
)
def test_mistakes_are_told(words, said):
    answer = bench("http://127.0.0.1:1/v1", *words)
    assert answer.exit_code == 1
    assert said in answer.stderr
    assert "--model" not in answer.stderr, "it would not help"


def test_an_address_without_its_v1_or_with_a_slash_too_many(engine):
    answer = bench(engine.removesuffix("/v1"), *QUICK)
    assert answer.exit_code == 1
    assert "give the address with its /v1" in answer.stderr
    assert bench(f"{engine}/", "--concurrency", 1, *QUICK).exit_code == 0


@pytest.mark.parametrize(("loads", "said"), [("2,1", "after 1 of 2 runs"), ("1", "before")])
def test_whoever_ends_it_early_keeps_the_runs_that_are_whole(engine, tmp_path, loads, said):
    out = tmp_path / "bench.json"
    command = [sys.executable, "-c", ENDED_EARLY, engine, loads, str(out)]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 1
    assert said in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr
    assert out.exists() == (loads == "2,1")
    if out.exists():
        assert "2 at once" in ended.stdout
        assert len(json.loads(out.read_text())["runs"]) == 1
