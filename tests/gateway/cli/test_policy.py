"""`breakeven policy explain`: a past request with the numbers that decided, or a supposed one."""

import json
import re

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app


@pytest.fixture
def explain(stack):
    config = stack.state / "breakeven.yaml"

    def run(*words: str):
        return CliRunner().invoke(app, ["policy", "explain", *words, "--config", str(config)])

    return run


def test_a_past_request_is_explained_with_every_candidate(stack, explain):
    answer = stack.chat("chat", max_tokens=4)
    (row,) = stack.settled(answer)
    name = answer.headers["x-request-id"]
    (attempt,) = json.loads(explain(name, "--json").stdout)
    assert (attempt["attempt_id"], attempt["target"]) == (row["attempt_id"], row["target"])
    assert attempt["status"] == "finished"
    candidates = {candidate["name"]: candidate for candidate in attempt["decision"]["candidates"]}
    assert {"pool:main/0", "alpha/m"} <= candidates.keys()
    assert candidates[row["target"]]["reason"] == row["reason"]

    assert attempt["again"]["identical"] is True
    assert attempt["again"]["decision"]["chosen"] == row["target"]

    lines = explain(name).stdout.splitlines()
    assert f"decided again: {row['target']} ({row['reason']}), the same, byte by byte" in " ".join(
        lines
    )
    assert "step factor" in " ".join(lines)
    made_of = r"kv_free_tokens=\d+ after a promise of \d+ \(\d+ used, \d+ promised"
    assert re.search(made_of, " ".join(lines))
    assert re.search(r"objective=\$0\.0000\d+", " ".join(lines)), "small enough for an exponent"
    assert not re.search(r"=-?[\d.]+e", " ".join(lines))
    assert lines[0] == f"{row['attempt_id']} at {row['target']}: finished"
    assert any(line.strip().startswith(f"{row['target']}: {row['reason']} ") for line in lines)


def test_a_past_request_tells_where_its_time_went(stack, explain):
    answer = stack.chat("own", stream=True)
    stack.settled(answer)
    name = answer.headers["x-request-id"]
    (attempt,) = json.loads(explain(name, "--json").stdout)
    spans = {span["what"]: span for span in attempt["waterfall"]}
    assert {"gateway", "prefill", "decode"} <= set(spans)
    assert spans["prefill"]["how"] == "by its step model"
    assert attempt["warning"] is None
    lines = explain(name).stdout.splitlines()
    drawn = lines[lines.index("where its time went:") + 1 :]
    assert drawn[0] == "pool:main/0: finished"
    assert [line.split("|")[0].strip() for line in drawn[1:]] == list(spans)


def test_the_cap_that_money_put_on_an_answer_is_told(run_stack):
    budget = {"scope": "provider:alpha", "usd": "0.001", "period": "day", "hard": True}
    with run_stack(budgets=[budget]) as stack:
        config = ["--config", str(stack.state / "breakeven.yaml")]
        answers = stack.chat("api"), stack.chat("api", max_tokens=4)
        for answer, told in zip(answers, (True, False), strict=True):
            stack.settled(answer)
            command = ["policy", "explain", answer.headers["x-request-id"], *config]
            said = CliRunner().invoke(app, command).stdout
            cap = answer.headers["x-breakeven-decision"].partition(" cap=")[2]
            assert bool(cap) is told
            assert (f"output_cap_tokens={cap}" in said.split()) is told


def test_each_attempt_of_a_request_is_explained(stack, explain):
    stack.fault("alpha", fault="status", status=500)
    answer = stack.chat("pair", max_tokens=4)
    rows = stack.settled(answer, count=2)
    stack.forgive("alpha")
    attempts = json.loads(explain(answer.headers["x-request-id"], "--json").stdout)
    assert [attempt["attempt_id"] for attempt in attempts] == [row["attempt_id"] for row in rows]
    assert [attempt["target"] for attempt in attempts] == ["alpha/m", "beta/m"]


def test_a_supposed_request_is_explained_and_not_made(stack, explain):
    before = stack.booked()
    document = json.loads(explain("--model", "chat", "--prompt-tokens", "50", "--json").stdout)
    assert {candidate["name"] for candidate in document["candidates"]} == {"pool:main/0", "alpha/m"}
    table = explain("--model", "chat", "--prompt-tokens", "50").stdout
    assert "pool:main/0" in table
    assert "alpha/m" in table
    assert len(stack.rows()) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name either a request id"),
        (("some-request", "--model", "chat"), "name either a request id"),
        (("no-such-request",), "no request `no-such-request`"),
        (("--model", "no-such-model"), "no model named `no-such-model`"),
    ],
)
def test_mistakes_are_told(explain, words, said):
    answer = explain(*words)
    assert answer.exit_code == 1
    assert said in answer.stderr
    assert answer.stdout == ""


def test_a_shadow_is_recorded_and_explained_and_nothing_goes_there(run_stack):
    watch = {"name": "watch", "shadow": True, "weights": {"alpha/m": 1}}
    with run_stack(policies=[watch, {"name": "act"}]) as stack:
        answer = stack.chat("chat")
        assert answer.headers["x-breakeven-policy"] == "act"
        assert answer.headers["x-breakeven-backend"] == "pool:main/0"
        stack.settled(answer)
        command = ["policy", "explain", answer.headers["x-request-id"]]
        config = ["--config", str(stack.state / "breakeven.yaml")]

        def explain(*words: str):
            return CliRunner().invoke(app, [*command, *words, *config])

        (attempt,) = json.loads(explain("--json").stdout)
        assert attempt["shadow"] == {"policy": "watch", "target": "alpha/m", "reason": "weight"}
        assert "shadow policy watch: would have chosen alpha/m (weight)" in " ".join(
            explain().stdout.split()
        )
        assert stack.entries("alpha") == []
        shown = stack.get("/metrics").text
        assert 'breakeven_shadow_decisions_total{agrees="no",policy="watch"} 1.0' in shown
