"""A client that lost the stream of an answer that is still made, and asks for the rest of it."""

import asyncio
import json
import threading

import pytest

from gateway.errors import RequestError
from gateway.request.store.stored_document import StoredDocument
from gateway.stored.followed_response import PING, FollowBounds, ResponseFollowers
from ledger.stored_progress import ObjectProgress

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
        self.reads = 0  # of what an answer says

    def wall_us(self) -> int:
        return 1

    async def find(self, team_id: str, object_id: str) -> StoredDocument | None:
        if isinstance(self.found, RequestError):
            raise self.found
        self.reads += 1
        return self.found

    async def find_progress(self, team_id: str, object_id: str) -> ObjectProgress | None:
        if isinstance(self.found, RequestError):
            raise self.found
        return None if self.found is None else self.found.progress


def document(status: str, **state: int | None) -> StoredDocument:
    response = {"id": "resp_1", "status": status, "output": [], "error": None}
    return StoredDocument(
        team_id="t", id="resp_1", kind="response", content={"response": response},
        created_us=0, expires_us=9, status=status, **state,
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
    assert (told["type"], told["sequence_number"]) == ("error", 6), "its next request skips nothing"
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


@pytest.mark.parametrize("had", [1, 2, 3, 4, 50])
@pytest.mark.parametrize("end", [{"cancel_us": 1}, {"lease_us": 0}], ids=["cancelled", "left"])
def test_of_an_answer_that_broke_off_each_follower_hears_the_end(store, end, had: int) -> None:
    """Red before: one that had as many events as are known of it got an empty stream."""
    followers = ResponseFollowers(store, FollowBounds(1, lambda: False))
    store.found = document("in_progress")

    async def run() -> list[dict]:
        rest = asyncio.create_task(_all_of(await followers.follow("t", "resp_1", had - 1)))
        await asyncio.sleep(0.05)
        assert (rest.done(), store.reads) == (False, 0), "what it says is read once, at its end"
        store.found = document("in_progress", **end)
        return events_in(await rest)

    told = asyncio.run(run())
    assert store.reads == 1
    assert told[-1]["type"] == f"response.{'cancelled' if 'cancel_us' in end else 'failed'}"
    assert told[0]["sequence_number"] == had


async def _all_of(stream) -> str:
    return b"".join([part async for part in stream]).decode()
