"""Names and forms as `openinference-semantic-conventions` 0.1 and Langfuse's SDK 4 have them."""

import json

import pytest

from gateway.telemetry.otel.vocabularies import VOCABULARIES
from ledger.journals.records import TokenCounts
from router.request_kinds import RequestKind

OPENINFERENCE, LANGFUSE = VOCABULARIES["openinference"], VOCABULARIES["langfuse"]
COUNTS = TokenCounts(
    input=30, cached=10, cache_write=4, cache_write_1h=1, audio_input=5, output=20, reasoning=7,
    audio_output=3,
)  # fmt: skip
WHO = {"user": "u1", "session": "s1", "tags": (("app", "web"), ("run", "7"))}


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_a_request_and_its_attempts_tell_who_asked(plan, step, name) -> None:
    vocabulary = VOCABULARIES[name]
    tags = {"openinference": "tag.tags", "langfuse": "langfuse.trace.tags"}[name]
    for said in (
        vocabulary.of_request(plan(**WHO)),
        vocabulary.of_attempt(plan(**WHO), step()),
    ):
        assert (said["user.id"], said["session.id"]) == ("u1", "s1")
        assert said[tags] == ("app=web", "run=7")
    assert not {"user.id", "session.id", tags} & set(vocabulary.of_request(plan()))


@pytest.mark.parametrize(
    ("kind", "span", "observation"),
    [
        (RequestKind.CHAT, "LLM", "generation"),
        (RequestKind.EMBEDDING, "EMBEDDING", "embedding"),
        (RequestKind.RERANK, "RERANKER", "generation"),
        (RequestKind.MODERATION, "GUARDRAIL", "generation"),
    ],
)
def test_kinds_of_requests_have_their_kinds_of_spans(plan, step, kind, span, observation) -> None:
    said = OPENINFERENCE.of_attempt(plan(kind=kind), step())
    assert said["openinference.span.kind"] == span
    model = "embedding.model_name" if kind is RequestKind.EMBEDDING else "llm.model_name"
    assert said[model] == "m"
    assert LANGFUSE.of_attempt(plan(kind=kind), step())["langfuse.observation.type"] == observation
    assert OPENINFERENCE.of_request(plan(kind=kind))["openinference.span.kind"] == "CHAIN"


def test_openinference_counts_parts_inside_the_whole(ending) -> None:
    said = OPENINFERENCE.of_ending(ending(tokens=COUNTS, cost_pusd=1_500_000_000_000), 0)
    count = "llm.token_count"
    assert said[f"{count}.prompt"] == 50
    assert said[f"{count}.completion"] == 20
    assert said[f"{count}.total"] == 70
    assert said[f"{count}.prompt_details.cache_read"] == 10
    assert said[f"{count}.prompt_details.cache_write"] == 5
    assert said[f"{count}.completion_details.reasoning"] == 7
    assert said["llm.cost.total"] == 1.5


def test_langfuse_adds_up_parts_that_do_not_overlap(ending) -> None:
    said = LANGFUSE.of_ending(ending(tokens=COUNTS, cost_pusd=250_000_000_000), 10**18)
    usage = json.loads(said["langfuse.observation.usage_details"])
    assert sum(count for name, count in usage.items() if "input" in name) == COUNTS.whole_prompt
    assert sum(count for name, count in usage.items() if "output" in name) == COUNTS.output
    assert usage["total"] == 70
    assert json.loads(said["langfuse.observation.cost_details"]) == {"total": 0.25}
    first = json.loads(said["langfuse.observation.completion_start_time"])
    assert first == "2001-09-09T01:46:40.100000+00:00"
    assert "langfuse.observation.level" not in said


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_an_unknown_cost_is_left_out_and_a_failure_is_named(ending, name) -> None:
    record = ending(cost_pusd=None, ttft_us=None, status="upstream_error", error="connect")
    said = VOCABULARIES[name].of_ending(record, 0)
    assert not [key for key in said if "cost" in key or "start_time" in key]
    assert name != "langfuse" or said["langfuse.observation.status_message"] == "connect"
