"""LiteLLM on a running host: what it fails at before it sends, and errors that it reads."""

import importlib
import json

import pytest

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]

ANSWER = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"},
                 "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}  # fmt: skip
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
OVERLOADED = (
    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n'
)


def with_adapters(found, ports) -> None:
    for name in ("perplexity", "anthropic"):
        found["providers"][name] = {
            "kind": "litellm", "base_url": f"http://127.0.0.1:{ports['alpha']}",
            "api_key_env": "KEY_OF_ADAPTERS", "simulated": True, "prices_as": "perplexity/sonar",
        }  # fmt: skip
        found["models"][f"{name}/*"] = "passthrough"


@pytest.fixture(scope="module")
def adapted(faulty_with):
    return faulty_with(adjust=with_adapters, environ={"KEY_OF_ADAPTERS": "sk-0123456789abcdef"})


def booked(row) -> tuple[int, int, int]:
    return row["input_tokens"], row["output_tokens"], row["cost_pusd"]


def test_a_name_that_speaks_chat_answers_and_is_paid(adapted, rule, answers) -> None:
    answer = answers.whole(json.dumps(ANSWER).encode(), WHOLE)
    told = adapted.ask("perplexity/m", rule(answer=answer), max_tokens=20)
    (row,) = adapted.stack.settled(told)
    assert told.status_code == 200
    assert row["cost_pusd"] > 0
    assert row["input_tokens"] == 5


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_adapter_fails_at_before_it_sends_is_free(adapted, monkeypatch, stream) -> None:
    async def fails(**_: object) -> None:
        raise KeyError("some defect of LiteLLM's")

    monkeypatch.setattr(importlib.import_module("backends.litellm").load(), "acompletion", fails)
    before = len(adapted.alpha.seen)
    adapted.forget()
    told = adapted.stack.chat("anthropic/m", max_tokens=20, stream=stream)
    (row,) = adapted.stack.settled(told)
    assert told.status_code == 502
    assert (row["error"], booked(row)) == ("unsendable", (0, 0, 0))
    assert len(adapted.alpha.seen) == before


def test_an_overloaded_provider_in_the_first_event(adapted, rule, answers) -> None:
    answer = answers.stream(OVERLOADED)
    told = adapted.ask("anthropic/m", rule(answer=answer), max_tokens=20, stream=True)
    (row,) = adapted.stack.settled(told)
    assert told.status_code == 503
    assert (row["error"], booked(row)) == ("overloaded", (0, 0, 0))


def test_an_answer_that_breaks_off_may_be_charged(adapted, rule) -> None:
    """The control: the request had left, and nobody knows what became of it."""
    told = adapted.ask("anthropic/m", rule(answer=b"HTTP/1.1 2"), max_tokens=20)
    (row,) = adapted.stack.settled(told)
    assert told.status_code == 502
    assert row["cost_pusd"] > 0
