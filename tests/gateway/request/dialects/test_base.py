"""What every dialect has in common."""

import json

import pytest

from gateway.errors import TABLE, RequestError, body
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.dialects.base import DecodedRequest
from gateway.request.dialects.translated_paths import SPOKEN

TURN = {"role": "user", "content": "hi"}


@pytest.mark.parametrize("path", SPOKEN)
def test_what_is_heard_is_a_chat_request(path: str) -> None:
    dialect = SPOKEN[path]
    prompt = (
        {"input": "hi"}
        if path.startswith("/v1/responses")
        else {"messages": [TURN], "max_tokens": 5}
    )
    heard = dialect.decode_request(decode_members(json.dumps({"model": "m", **prompt}).encode()))
    assert isinstance(heard, DecodedRequest)
    asked = read_chat(heard.members, max_n=1, session=None)
    assert asked.model == "m"
    assert asked.prompt_bytes > 0
    assert heard.voice("req_1", 0).request_id == "req_1"


@pytest.mark.parametrize("path", SPOKEN)
@pytest.mark.parametrize("kind", TABLE)
def test_every_error_can_be_told(path: str, kind: str) -> None:
    error = RequestError(kind, "What is wrong.")
    told = SPOKEN[path].translate_error(body(error), error.row.status, "req_1")
    assert b"What is wrong." in told
