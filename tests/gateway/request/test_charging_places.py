"""Usage that an answer tells in several places is charged once, at the most of each count."""

import json

import pytest
from charge_cases import api

from backends.chunks import parse_answer
from gateway.kinds import KINDS
from gateway.kinds.image_generation import PictureRelay
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.relay import ByteRelay
from gateway.kinds.transcript_relay import TranscriptRelay
from ledger.journals.records import TokenCounts
from router.request_kinds import RequestKind

LOW = {"prompt_tokens": 100, "completion_tokens": 12, "total_tokens": 112}
THOUGHT = {
    "prompt_tokens": 100, "completion_tokens": 95, "total_tokens": 195,
    "completion_tokens_details": {"reasoning_tokens": 80},
}  # fmt: skip
GEMINI = {"promptTokenCount": 100, "candidatesTokenCount": 15, "thoughtsTokenCount": 80}
WORDS = {"role": "assistant", "content": "word " * 12}


def answer(**more) -> bytes:
    choice = {"index": 0, "message": WORDS | more.pop("message", {}), "finish_reason": "stop"}
    return json.dumps({"choices": [choice | more.pop("choice", {})], **more}).encode()


def whole(body: bytes, **more):
    usage = parse_answer(body).usage
    outcome = AttemptOutcome("finished", 200, usage, usage_final=True, answer=body)
    return api(outcome, max_tokens=200, bound_pusd=10**6, **more)


def event(value: dict) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(*, choice: dict | None = None, **more) -> bytes:
    return event({"choices": [{"index": 0, "delta": {}, **(choice or {})}], **more})


def outcome_of(relay: ByteRelay) -> AttemptOutcome:
    return AttemptOutcome(
        "finished", 200, relay.usage, usage_final=relay.usage_final, said_bytes=relay.said_bytes,
        earlier_usage=relay.earlier_usage, most_said_bytes=relay.most_said_bytes,
    )  # fmt: skip


def streamed(*events: bytes):
    relay = ByteRelay(hide_usage=False)
    for _ in range(12):
        relay.feed(chunk(choice={"delta": {"content": "word "}}))
    for each in events:
        relay.feed(each)
    relay.finish()
    return api(outcome_of(relay), max_tokens=200, bound_pusd=10**6, stream=True)


ENDS = {"finish_reason": "stop"}


@pytest.mark.parametrize("more", [THOUGHT, GEMINI], ids=["openai", "gemini"])
@pytest.mark.parametrize(
    "told",
    [
        lambda more: whole(answer(usage=LOW, x_groq={"usage": more})),
        lambda more: whole(answer(usage=LOW, choice={"usage": more})),
        lambda more: whole(answer(usage=LOW, message={"usage": more})),
        lambda more: whole(answer(usage=LOW, usageMetadata=more)),
        lambda more: whole(answer(choice={"usage": LOW}, usage_metadata=more)),
        lambda more: streamed(chunk(choice=ENDS, usage=LOW, x_groq={"usage": more})),
        lambda more: streamed(chunk(choice={**ENDS, "usage": more}, usage=LOW)),
        lambda more: streamed(chunk(choice={**ENDS, "usage": LOW}, x_groq={"usage": more})),
        lambda more: streamed(chunk(choice={**ENDS, "delta": {"usage": more}}, usage=LOW)),
        lambda more: streamed(
            chunk(choice=ENDS), event({"choices": [], "usage": LOW, "usageMetadata": more})
        ),
        lambda more: streamed(
            chunk(choice=ENDS), b"data: [DONE]\n\n" + event({"usage": LOW, "metrics": more})
        ),
    ],
)
def test_the_most_is_booked_and_disputed(told, more: dict) -> None:
    charged = told(more)
    assert (charged.tokens.output, charged.tokens.reasoning, charged.disputed) == (95, 80, True)
    assert charged.cost_pusd == 100 * 20 + 95 * 40


@pytest.mark.parametrize(
    "told",
    [
        lambda: whole(answer(usage=THOUGHT, x_groq={"usage": LOW})),
        lambda: whole(answer(usage=THOUGHT, x_groq={"usage": dict(THOUGHT)})),
        lambda: whole(answer(usage=THOUGHT, choice={"usage": THOUGHT}, message={"usage": GEMINI})),
        lambda: streamed(chunk(choice=ENDS, usage=THOUGHT, x_groq={"usage": THOUGHT})),
        lambda: streamed(chunk(choice={**ENDS, "usage": THOUGHT}, usageMetadata=GEMINI)),
    ],
)
def test_what_the_usage_covers_changes_nothing(told) -> None:
    charged = told()
    assert (charged.tokens.output, charged.disputed, charged.partly_read) == (95, False, False)


def test_a_figure_that_is_taken_back_by_its_own_name_is_booked_and_disputed() -> None:
    twice = b'{"prompt_tokens":100,"completion_tokens":95,"completion_tokens":12}'
    head = answer()[:-1] + b',"usage":'
    charged = whole(head + twice + b"}")
    assert (charged.tokens.output, charged.disputed) == (95, True)
    low = b'{"prompt_tokens":100,"completion_tokens":12}'
    charged = whole(head + twice + b',"usage":' + low + b"}")
    assert (charged.tokens.output, charged.disputed) == (95, True)
    charged = whole(head + twice + b',"usage":null}')
    assert charged.tokens.output == 95, "nothing is no other figure"
    charged = streamed(chunk(choice=ENDS), b'data: {"choices":[],"usage":' + twice + b"}\n\n")
    assert (charged.tokens.output, charged.disputed) == (95, True)
    once = head + low + b"}"
    assert not whole(once).disputed, "the control"


def test_what_was_told_and_cannot_be_is_claimed_when_it_is_taken_back() -> None:
    high = {**LOW, "completion_tokens": 150, "total_tokens": 250}
    for first, last in ((high, LOW), (LOW, high)):
        charged = streamed(chunk(usage=first), chunk(choice=ENDS, usage=last))
        assert (charged.tokens.output, charged.disputed) == (12, True), "the text has 60 bytes"
        assert charged.claimed_pusd == 100 * 20 + 150 * 40
        assert charged.plausible_pusd == 0, "the text speaks against it"
    assert streamed(chunk(usage=LOW), chunk(choice=ENDS, usage=LOW)).claimed_pusd is None


def test_what_is_beyond_the_hold_is_claimed() -> None:
    told = answer(usage=LOW, x_groq={"usage": {**THOUGHT, "completion_tokens": 50_095}})
    charged = whole(told, reasoning=True)
    assert charged.disputed
    assert charged.claimed_pusd is not None
    assert charged.claimed_pusd > charged.cost_pusd


def test_more_thoughts_than_completion_are_booked_and_claimed() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 80}}
    usage = {"prompt_tokens": 100, "completion_tokens": 15, **details}
    charged = whole(answer(usage=usage))
    assert charged.tokens == TokenCounts(100, output=95, reasoning=80)
    assert not charged.disputed
    usage["completion_tokens_details"] = {"reasoning_tokens": 9_980}
    charged = whole(answer(usage=usage))
    assert charged.tokens.output <= 200 + 9_980
    told = charged.claimed_pusd or charged.cost_pusd
    assert told == 100 * 20 + 9_995 * 40, "as much as the provider says"


def test_a_count_beside_that_nobody_knows_is_partly_read() -> None:
    charged = whole(answer(usage=THOUGHT, x_groq={"usage": {**LOW, "holograms": 5}}))
    assert charged.partly_read
    assert not whole(answer(usage=THOUGHT, x_groq={"usage": LOW})).partly_read


def test_streams_of_pictures_and_of_transcripts_keep_the_most_of_their_events() -> None:
    used = {"input_tokens": 10, "output_tokens": 1056, "total_tokens": 1066}
    pictures = PictureRelay(1)
    pictures.feed(
        event({"type": "image_generation.completed", "b64_json": "AAAA", "usage": used,
               "usageMetadata": {**GEMINI, "candidatesTokenCount": 1290}})
    )  # fmt: skip
    pictures.finish()
    with pytest.raises(ValueError, match="not alike") as told:
        KINDS[RequestKind.IMAGE_GENERATION].usage(pictures.usage)
    assert told.value.most == TokenCounts(100, output=1370, reasoning=80, image_output=1290,
                                          pictures=1)  # fmt: skip
    heard = TranscriptRelay()
    heard.feed(event({"type": "transcript.text.done", "text": "word", "usageMetadata": GEMINI}))
    heard.finish()
    tokens = KINDS[RequestKind.TRANSCRIPTION].usage(heard.usage)
    assert tokens == TokenCounts(audio_input=100, output=95, reasoning=80)
