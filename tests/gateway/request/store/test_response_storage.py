"""Both sources of keepers: answers are stored, or refused at the first turn."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.request.store.response_storage import NoStoredResponses, StoredResponses


def members(**asked):
    return decode_members(json.dumps({"model": "m", "input": "hi", **asked}).encode())


async def test_answers_are_stored_unless_their_request_says_otherwise(open_store) -> None:
    storage = StoredResponses(open_store(), 10**6)
    for asked, purpose, stores in (
        ({}, "answer", True),
        ({"store": False}, "answer", False),
        ({}, "count", False),
    ):
        keeper = await storage.open_request(members(**asked), "a", "req_1", purpose=purpose)
        assert keeper is not None
        assert keeper.stores is stores


async def test_the_switch_refuses_the_first_turn() -> None:
    off = NoStoredResponses(unasked=True)
    assert await off.open_request(members(store=False), "a", "req_1", purpose="answer") is None
    assert await off.open_request(members(), "a", "req_1", purpose="count") is None
    for asked in ({}, {"store": True}, {"store": False, "previous_response_id": "resp_1"}):
        with pytest.raises(RequestError, match="`store: false`"):
            await off.open_request(members(**asked), "a", "req_1", purpose="answer")
    assert await NoStoredResponses(unasked=False).open_request(
        members(), "a", "req_1", purpose="answer"
    ) is None  # fmt: skip
