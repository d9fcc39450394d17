"""What an answer repeats of its request, as sent and as it may be."""

import json

import msgspec

from gateway.http.body import decode_members
from gateway.request.dialects.responses_echo import WORDED, echo_of
from gateway.request.dialects.responses_encoder import ResponsesEncoder

ASKED = {
    "model": "m", "input": "hi", "instructions": "be [x]", "metadata": {"a": "b"}, "user": None,
    "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
    "text": {"format": {"type": "json_schema", "name": "s", "schema": {}}},
    "reasoning": {"effort": "low"}, "service_tier": "auto",
}  # fmt: skip


def told(echo) -> dict:
    return json.loads(msgspec.json.encode(echo))


def test_members_are_repeated_with_all_that_their_schemas_require() -> None:
    schema = {"type": "json_schema", "name": "s", "schema": {}}
    assert told(echo_of(decode_members(json.dumps(ASKED).encode()))) == {
        "instructions": "be [x]",
        "metadata": {"a": "b"},
        "reasoning": {"effort": "low", "summary": None},
        "text": {"format": {**schema, "description": None, "strict": False}},
        "tools": [
            {"type": "function", "name": "f", "description": None, "parameters": None,
             "strict": False},
            {"type": "web_search"},
        ],
    }  # fmt: skip


def test_words_that_may_be_told_stand_in_place_of_those_that_were_sent() -> None:
    sent = decode_members(json.dumps({**ASKED, "instructions": "be bob"}).encode())
    voice = ResponsesEncoder("req_1", 0, echo=echo_of(sent))
    allowed = decode_members(json.dumps(ASKED).encode())
    voice.repeat({name: allowed[name] for name in WORDED if name in allowed})
    document = told(voice.document())
    assert (document["instructions"], document["metadata"]) == ("be [x]", {"a": "b"})
    assert document["tools"][0]["strict"] is False
