"""Frameworks that speak OpenAI's and Anthropic's API, unchanged: what they saw and what was booked.

LangChain, LlamaIndex, instructor, pydantic-ai, openai-agents, the command `llm`, and the AI SDK for
Node; chat completions, Responses and Messages, as far as each speaks them.
"""

import pytest

APPLIED_LIMIT_S = 60
LABEL = "[simulated]:"  # how every answer of the stand-in begins
EXPECTED = {  # checks of each program, so that none is lost
    "langchain": 16, "llamaindex": 8, "agents": 23, "llm": 5, "ai": 26,
}  # fmt: skip
WHOLE = {"ran_streamed": "ran", "helped_streamed": "helped", "streamed": "whole"}


def having(told: dict, member: str) -> dict:
    return {name: seen for name, seen in told["checks"].items() if member in seen}


def named(told: dict, end: str) -> list[dict]:
    return [seen for name, seen in told["checks"].items() if name.endswith(end)]


def test_no_check_broke(framework_told: dict) -> None:
    assert having(framework_told, "failed") == {}
    assert len(framework_told["checks"]) == EXPECTED[framework_told["name"]]


def test_answers_are_whole(framework_told: dict) -> None:
    answers = having(framework_told, "text")
    assert answers
    assert all(seen["text"].startswith(LABEL) for seen in answers.values())


def test_streams_say_what_whole_answers_say(framework_told: dict) -> None:
    checks, streams = framework_told["checks"], 0
    for name, seen in checks.items():
        end = next((item for item in WHOLE if name == item or name.endswith("_" + item)), None)
        if end is not None:
            assert seen["text"] == checks[name.removesuffix(end) + WHOLE[end]]["text"]
            assert seen.get("deltas", seen["text"]) == seen["text"]
            assert seen.get("chunks", 2) > 1
            streams += 1
    assert streams


def test_tools_and_documents_have_the_form_that_was_asked_for(framework_told: dict) -> None:
    documents = having(framework_told, "document")
    assert documents
    assert all(seen["document"].keys() == {"name", "count"} for seen in documents.values())
    calls = having(framework_told, "arguments")
    assert calls or framework_told["name"] == "llm"  # which cannot make a model call
    assert all(seen["arguments"].keys() == {"town", "days"} for seen in calls.values())
    assert all(seen["text"].startswith(LABEL) for seen in calls.values())  # after the result


def test_embeddings_have_one_size(framework_told: dict) -> None:
    for seen in named(framework_told, "embeddings"):
        assert len(seen["sizes"]) == 2
        assert len(set(seen["sizes"])) == 1


@pytest.mark.parametrize(("check", "status"), [("bad_key", 401), ("unknown_model", 404)])
def test_refusals_are_what_they_are_elsewhere(framework_told: dict, check: str, status) -> None:
    refusals = named(framework_told, check)
    assert refusals
    for seen in refusals:
        if framework_told["name"] == "llm":
            assert seen["status"] == 1
            assert f"Error code: {status}" in seen["said"]
        else:
            assert seen["status"] == status
            assert seen["raised"]


def test_what_was_booked_is_what_the_framework_says_was_used(gateway, framework_told: dict) -> None:
    told = list(having(framework_told, "usage").values())
    pairs = [pair for seen in told for pair in seen["usage"]]
    expected = {
        "status": "finished",
        "n": sum(seen.get("requests", len(seen["usage"])) for seen in told),
        "input": sum(given for given, _ in pairs),
        "output": sum(answered for _, answered in pairs),
    }
    query = (
        "SELECT status, count(*) AS n, sum(input_tokens + cached_tokens) AS input,"
        " sum(output_tokens) AS output FROM attempts WHERE team_id = :team GROUP BY status"
    )
    team = framework_told["team"]
    total = "SELECT count(*) AS n FROM attempts WHERE team_id = :team AND settled_us IS NOT NULL"
    gateway.until(lambda: gateway.rows(total, team=team)[0]["n"] >= expected["n"], APPLIED_LIMIT_S)
    assert gateway.rows(query, team=team) == [expected]
