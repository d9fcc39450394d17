"""The relay of transcripts: OpenAI's events and vLLM's chunks, whole and broken."""

import json

import pytest

from backends.errors import BackendError, StreamError, UpstreamBroken, UpstreamOverloaded
from gateway.kinds.transcript_relay import TranscriptRelay

DONE = b"data: [DONE]\n\n"


def event(**value) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(text: str) -> bytes:
    return event(type="transcript.text.delta", delta=text, logprobs=[])


def chunk(text: str, finish: str | None = None) -> bytes:
    return event(choices=[{"delta": {"content": text}, "finish_reason": finish}])


LAST = event(type="transcript.text.done", text="so it is", usage={"type": "tokens"})
USAGE = event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 3})


@pytest.mark.parametrize(
    ("pieces", "end", "usage", "said"),
    [
        ([delta("so"), delta(" it is")], LAST + DONE, {"type": "tokens"}, 8),
        ([delta("so")], LAST, {"type": "tokens"}, 8),  # an end without `[DONE]`
        ([], LAST, {"type": "tokens"}, 8),  # red before: a text that only its end has
        ([chunk("so ")], chunk("it", "stop") + DONE, None, 5),
        (
            [chunk("so ")],
            chunk("it", "stop") + USAGE + DONE,
            {"prompt_tokens": 9, "completion_tokens": 3},
            5,
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_all_leaves_and_the_end_waits(pieces, end, usage, said, size) -> None:
    relay, stream, out = TranscriptRelay(), b"".join(pieces) + end, b""
    for place in range(0, len(stream), size):
        out += relay.feed(stream[place : place + size])
    assert out == b"".join(pieces)
    assert out + relay.finish() == stream
    assert (relay.usage, relay.said_bytes) == (usage, said)
    assert relay.content_events == len(pieces) + (end.count(b'"it"'))


@pytest.mark.parametrize("told", [{}, {"usage": {"type": "tokens"}}])
def test_usage_that_words_came_behind_is_not_of_all(told) -> None:
    """Red before: the first word's figure was that of the whole text."""
    relay, counts = TranscriptRelay(), {"usage": {"input_tokens": 9, "output_tokens": 1}}
    relay.feed(event(type="transcript.text.delta", delta="so", **counts) + delta(" it is"))
    relay.feed(event(type="transcript.text.done", text="so it is", **told))
    assert (relay.usage_final, relay.usage_behind) == (bool(told), not told)


@pytest.mark.parametrize("end", [b"", delta("more")])
def test_an_answer_without_its_end_is_broken(end: bytes) -> None:
    relay = TranscriptRelay()
    relay.feed(delta("so") + end)
    with pytest.raises(UpstreamBroken):
        relay.finish()


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (event(type="error", message="secret"), StreamError),
        (event(error={"code": "overloaded", "message": "secret"}), UpstreamOverloaded),
        (event(type="error", error={"code": 429, "message": "secret"}), UpstreamOverloaded),
    ],
)
def test_an_error_event_is_the_targets_failure(broken: bytes, kind: type[BackendError]) -> None:
    with pytest.raises(kind):
        TranscriptRelay().feed(broken)
    begun = TranscriptRelay()
    begun.feed(delta("so"))
    with pytest.raises(BackendError) as raised:
        begun.feed(broken)
    assert raised.type is UpstreamBroken
    assert "secret" not in str(raised.value)


def test_what_is_no_event_stream_is_no_answer() -> None:
    with pytest.raises(BackendError):
        TranscriptRelay().feed(b"data: nonsense\n\n")


def test_usage_beside_an_error_is_charged() -> None:
    relay = TranscriptRelay()
    with pytest.raises(UpstreamBroken):
        relay.feed(event(type="error", error={"code": 500}, usage={"seconds": 9}))
    assert relay.usage == {"seconds": 9}
