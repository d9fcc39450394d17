"""A client that lost the stream of an answer that is still made, and asks for the rest of it."""

import asyncio
import json
import threading

import pytest

from gateway.errors import RequestError
from gateway.request.store.stored_document import StoredDocument
from gateway.stored.followed_response import PING, FollowBounds, ResponseFollowers

RESPONSES = "/v1/responses"
ASK = {"model": "steady", "input": "hello there", "max_output_tokens": 30, "background": True}


def events_in(stream: str) -> list[dict]:
    lines = stream.splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def test_the_rest_of_an_answer_that_is_made_comes_with_its_end(hosts) -> None:
    """Red before: 400, so a client that had lost its connection could not go on."""
    here, there = hosts
    again: list[str] = []
    waiting: list[threading.Thread] = []
    live: list[dict] = []

    def follow(name: str) -> None:
        answer = there.get(f"{RESPONSES}/{name}?stream=true&starting_after=4")
        again.append(answer.text)

    asked = {**ASK, "stream": True}
    with here.client.stream("POST", here.url + RESPONSES, json=asked, headers=here.headers()) as s:
        for line in s.iter_lines():
            if not line.startswith("data: "):
                continue
            live.append(json.loads(line[6:]))
            if len(live) == 5:
                name = live[0]["response"]["id"]
                waiting.append(threading.Thread(target=follow, args=(name,)))
                waiting[0].start()
    waiting[0].join(20)
    assert live[-1]["type"] == "response.incomplete"
    assert again[0].startswith(": keep-alive"), "it had not ended yet"
    assert events_in(again[0]) == live[5:]


class StoreOfOne:
    """Has one answer, as it is set, or raises what is set."""

    def __init__(self) -> None:
        self.found: StoredDocument | RequestError | None = None

    def wall_us(self) -> int:
        return 1

    async def find(self, team_id: str, object_id: str) -> StoredDocument | None:
        if isinstance(self.found, RequestError):
            raise self.found
        return self.found


def document(status: str) -> StoredDocument:
    response = {"id": "resp_1", "status": status, "output": [], "error": None}
    return StoredDocument(
        team_id="t", id="resp_1", kind="response", content={"response": response},
        created_us=0, expires_us=9, status=status,
    )  # fmt: skip


@pytest.fixture
def store(monkeypatch) -> StoreOfOne:
    monkeypatch.setattr("gateway.stored.followed_response.LOOK_S", 0.01)
    return StoreOfOne()


def test_followers_are_bounded_and_give_their_place_back(store) -> None:
    followers = ResponseFollowers(store, FollowBounds(1, lambda: False))
    store.found = document("queued")

    async def run() -> None:
        stream = await followers.follow("t", "resp_1", None)
        with pytest.raises(RequestError, match="follows 1"):
            await followers.follow("t", "resp_1", None)
        assert await anext(stream) == PING
        await stream.aclose()  # its client left
        assert await followers.follow("t", "resp_1", None)

    asyncio.run(run())


@pytest.mark.parametrize("last", ["deleted", "drained"])
def test_a_stream_that_cannot_go_on_says_why(store, last: str) -> None:
    drains = [False]
    followers = ResponseFollowers(store, FollowBounds(1, lambda: drains[0]))
    store.found = RequestError("unavailable", "away")  # for a while

    async def run() -> list[bytes]:
        stream = await followers.follow("t", "resp_1", 6)
        told = [await anext(stream)]
        if last == "drained":
            drains[0] = True
        else:
            store.found = None
        return told + [part async for part in stream]

    ping, error = asyncio.run(run())
    assert ping == PING
    (told,) = events_in(error.decode())
    assert (told["type"], told["sequence_number"]) == ("error", 7)
    assert {"deleted": "deleted", "drained": "restarting"}[last] in told["message"]


def test_it_waits_while_the_database_is_away(store) -> None:
    followers = ResponseFollowers(store, FollowBounds(1, lambda: False))
    store.found = RequestError("unavailable", "away")

    async def run() -> list[dict]:
        stream = await followers.follow("t", "resp_1", None)
        assert await anext(stream) == PING
        rest = asyncio.create_task(anext(stream))
        await asyncio.sleep(0.05)
        assert not rest.done()
        store.found = document("cancelled")
        first = await rest
        return events_in((first + b"".join([part async for part in stream])).decode())

    names = [told["type"] for told in asyncio.run(run())]
    assert names == ["response.created", "response.in_progress", "response.cancelled"]
