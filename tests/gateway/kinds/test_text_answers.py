"""Answers in texts: which relay a stream gets, and how their usage is read."""

import pytest

from gateway.http.body import decode_members
from gateway.kinds import KINDS
from gateway.kinds.chat import read_chat
from gateway.kinds.engine_relay import EventRelay
from gateway.kinds.relay import ByteRelay
from gateway.kinds.text_answers import chat_relay, chat_usage
from gateway.kinds.transcript_relay import TranscriptRelay
from ledger.journals.records import TokenCounts
from ledger.usage_figures import UsageError
from router.request_kinds import RequestKind

ASKED = read_chat(
    decode_members(b'{"model":"m","messages":[{"role":"user","content":"a"}],"n":2}'),
    max_n=8,
    session=None,
)
FINISHED = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'


def test_own_engines_are_read_by_event_and_apis_by_byte() -> None:
    assert type(chat_relay(ASKED, True)) is EventRelay
    assert type(chat_relay(ASKED, False)) is ByteRelay
    assert type(KINDS[RequestKind.TRANSCRIPTION].relay(ASKED, True)) is TranscriptRelay


def test_an_answer_ends_with_the_last_of_its_choices() -> None:
    relay = chat_relay(ASKED, False)
    relay.feed(FINISHED)
    assert not relay.is_ended
    relay.feed(FINISHED.replace(b'"index":0', b'"index":1'))
    assert relay.is_ended


def test_cached_tokens_are_part_of_the_prompt() -> None:
    usage = {
        "prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4},
    }  # fmt: skip
    assert chat_usage(usage) == TokenCounts(input=5, cached=4, output=3)
    with pytest.raises(UsageError):
        chat_usage({**usage, "prompt_tokens": -1})
