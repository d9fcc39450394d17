"""Usage of a stream in unusual places, behind errors, and beside quoted material."""

import json
from contextlib import suppress
from typing import Any

import pytest

from backends.errors import StreamError, UpstreamBroken
from gateway.kinds.relay import ByteRelay

DONE = b"data: [DONE]\n\n"
PAGE = "word " * 2000
THOUGHT = {"prompt_tokens": 8, "completion_tokens": 5, "total_tokens": 13}
ERROR = {"code": 502, "message": "x"}


def event(*choices: dict, **members: Any) -> bytes:
    value = {"choices": list(choices), **members} if choices else members
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def choice(index: int = 0, finish: str | None = None, delta: dict | None = None, **more: Any):
    return {"index": index, "delta": delta or {}, "finish_reason": finish, **more}


def words(text: str = "hi", index: int = 0) -> bytes:
    return event(choice(index, delta={"content": text}))


GEMINI = {"promptTokenCount": 8, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}


@pytest.mark.parametrize(
    ("end", "usage"),
    [
        (event(choice(finish="stop", delta={"usage": THOUGHT})), THOUGHT),
        (event(choice(finish="stop", message={"usage": THOUGHT})), THOUGHT),
        (event(choice(finish="stop"), usageMetadata=GEMINI), GEMINI),
        (event(choice(finish="stop", delta={"content": "!"}), usageMetadata=GEMINI), GEMINI),
        (event(choice(finish="stop"), timings={"prompt_n": 8, "predicted_n": 5}),
         {"prompt_n": 8, "predicted_n": 5}),
        (event(choice(finish="stop")) + event(usage_metadata=GEMINI), GEMINI),
        (event(choice(finish="stop", delta={"content": []}, usage=THOUGHT)), THOUGHT),
    ],
)  # fmt: skip
def test_usage_is_read_wherever_it_stands(end: bytes, usage: dict) -> None:
    relay = ByteRelay(hide_usage=True)
    assert relay.feed(words()) == words()
    relay.feed(end + DONE)
    assert (relay.usage, relay.usage_final) == (usage, True)
    assert relay.finish().startswith(end[:40])


@pytest.mark.parametrize("index", [0, "0"], ids=["usual", "of another type"])
def test_quoted_material_without_a_word_beside_it_may_be_text(index) -> None:
    """A figure that a provider counts for it is not too high."""
    relay = ByteRelay(hide_usage=True)
    relay.feed(event(choice(index, delta={"annotations": [{"quote": PAGE}]})))
    assert relay.said_bytes == 0
    assert relay.most_said_bytes >= len(PAGE)


def test_each_choices_own_usage_is_added_up() -> None:
    relay = ByteRelay(hide_usage=True, choices=2)
    for index in (0, 1):
        relay.feed(words(index=index))
        relay.feed(event(choice(index, "stop", usage=THOUGHT)))
    relay.feed(DONE)
    assert relay.usage == {"prompt_tokens": 8, "completion_tokens": 10, "total_tokens": 18}
    assert relay.usage_final


FAILED = [
    event(choice(finish="error"), error=ERROR, usage=THOUGHT),
    event(choice(finish="error", error=ERROR), usage=THOUGHT),
    event(error=ERROR, usage=THOUGHT),
    event(object="error", code=502, usage=THOUGHT),
    event(error=ERROR, usageMetadata=GEMINI),
    event(choices=[], usage={"input_tokens": 8, "output_tokens": 5}) + event(error=ERROR),
    event(choices=[], usage={**GEMINI, "candidatesTokenCount": 0}) + event(error=ERROR),
    event(choices=[], usage={"prompt_tokens": 8, "total_tokens": 13}) + event(error=ERROR),
    b"data: " + json.dumps([{"error": ERROR, "usage": THOUGHT}]).encode() + b"\n\n",
]


@pytest.mark.parametrize("end", FAILED)
def test_output_that_was_counted_before_an_error_is_charged(end: bytes) -> None:
    relay = ByteRelay(hide_usage=True)
    relay.feed(event(choice(delta={"role": "assistant"})))
    with pytest.raises(UpstreamBroken) as caught:
        relay.feed(end)
    assert caught.value.billable
    assert relay.usage is not None


def test_words_in_the_event_of_an_error_are_counted() -> None:
    relay = ByteRelay(hide_usage=True)
    with pytest.raises(UpstreamBroken):
        relay.feed(event(choice(delta={"content": "half of it"}), error=ERROR))
    assert relay.said_bytes == 10


@pytest.mark.parametrize("usage", [{"prompt_tokens": 8, "completion_tokens": 0}, None])
def test_an_error_before_any_output_is_free(usage: dict | None) -> None:
    relay = ByteRelay(hide_usage=True)
    relay.feed(event(choices=[], usage=usage))
    with pytest.raises(StreamError) as caught:
        relay.feed(event(error=ERROR))
    assert (caught.value.billable, relay.usage) == (False, None)


@pytest.mark.parametrize(
    "quoted",
    [
        {"role": "assistant", "context": {"citations": [{"content": PAGE}]}},
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": PAGE}]},
        {"executed_tools": [{"output": PAGE}]},
        {"annotations": [{"url_citation": {"content": PAGE}}]},
        {"content": [], "context": [PAGE]},
    ],
)
def test_what_is_quoted_is_no_event_of_words_and_no_certain_text(quoted: dict) -> None:
    relay = ByteRelay(hide_usage=True)
    relay.feed(event(choice(delta=quoted)))
    assert (relay.said_bytes, relay.content_events) == (0, 0)
    relay.feed(words("a short answer"))
    assert (relay.said_bytes, relay.content_events) == (14, 1)
    assert relay.most_said_bytes >= 14 + len(PAGE)


def test_long_members_without_a_name_may_be_words_beside_known_ones() -> None:
    relay = ByteRelay(hide_usage=True)
    relay.feed(event(choice(delta={"content": "hi", "musings": PAGE})))
    assert (relay.said_bytes, relay.most_said_bytes) == (2, 2 + len(PAGE))


def test_sound_is_told() -> None:
    relay = ByteRelay(hide_usage=True)
    relay.feed(words())
    assert not relay.spoken
    relay.feed(event(choice(delta={"audio": {"data": "AAAA", "transcript": "hey"}})))
    assert (relay.spoken, relay.said_bytes) == (True, 5)


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("end", [DONE, event(error=ERROR)])
def test_usage_behind_the_end_or_an_error_counts_and_is_not_relayed(
    end: bytes, pieces: int
) -> None:
    """Red before: it was not looked at, and the answer was estimated."""
    told = event(usage=THOUGHT) + event(choice(), usage={"prompt_tokens": "odd"})
    relay = ByteRelay(hide_usage=False)
    relay.feed(words())
    rest = [end + event(usage=THOUGHT)] if pieces == 1 else [end, event(usage=THOUGHT), b"data: {"]
    with suppress(UpstreamBroken):
        relay.feed(rest[0])
    for piece in rest[1:]:
        relay.take_trailing(piece)
    assert (relay.usage, relay.usage_final) == (THOUGHT, True)
    if end == DONE:
        assert relay.finish() == DONE
    relay.take_trailing(told)  # whatever comes
    relay.take_trailing(b"data: \xff\n\n" * 3)


def test_usage_behind_an_error_before_any_word_is_of_nothing() -> None:
    relay = ByteRelay(hide_usage=False)
    with pytest.raises(StreamError):
        relay.feed(event(error=ERROR) + event(usage=THOUGHT))
    relay.take_trailing(event(usage=THOUGHT))
    assert relay.usage is None


def test_words_behind_a_figure_are_not_in_it() -> None:
    """Red before: behind a finish and usage any text was free."""
    relay = ByteRelay(hide_usage=False)
    relay.feed(words() + event(choice(finish="stop")) + event(usage=THOUGHT))
    assert (relay.usage_final, relay.usage_behind) == (True, False)
    relay.feed(words("more " * 400) + DONE)
    assert (relay.usage_final, relay.usage_behind) == (False, True)
    several = ByteRelay(hide_usage=False, choices=3)
    for index in (0, 1):
        several.feed(words(index=index) + event(choice(index, "stop", usage=THOUGHT)))
    several.feed(words(index=2) + event(choice(2, "stop")) + DONE)
    assert (several.usage_final, several.usage_behind) == (False, True)


@pytest.mark.parametrize("rest", [event(usage=THOUGHT)[:-2], event(usage=THOUGHT)[:-1]])
def test_usage_whose_empty_line_never_came_is_read(rest: bytes) -> None:
    """Red before: the answer was estimated."""
    relay = ByteRelay(hide_usage=False)
    relay.feed(words() + event(choice(finish="stop")) + rest)
    relay.check_end()
    assert (relay.usage, relay.usage_final) == (THOUGHT, True)
    relay.finish()
    assert relay.earlier_usage == ()


BEGUN = {"prompt_tokens": 8, "completion_tokens": 0, "total_tokens": 8}


@pytest.mark.parametrize(
    ("keep_running", "usage", "finish", "told"),
    [
        (False, BEGUN, None, 1),  # red before: who adds up what is told had the prompt twice
        (True, BEGUN, None, 2),
        (False, BEGUN, "length", 2),  # nothing was made, and that is how it ended
        (False, THOUGHT, None, 2),
    ],
)
def test_the_prompt_alone_is_told_to_who_asked_for_running_usage(
    keep_running: bool, usage: dict, finish: str | None, told: int
) -> None:
    relay = ByteRelay(hide_usage=False, keep_running=keep_running)
    begun = event(choice(finish=finish, delta={"role": "assistant"}), usage=usage)
    sent = relay.feed(begun)
    assert relay.usage == usage
    sent += relay.feed(event(choice(finish="stop")) + event(choices=[], usage=THOUGHT) + DONE)
    sent += relay.finish()
    payloads = [part[6:] for part in sent.split(b"\n\n") if part and not part.endswith(b"[DONE]")]
    assert sum("usage" in json.loads(payload) for payload in payloads) == told
    assert relay.usage == THOUGHT
