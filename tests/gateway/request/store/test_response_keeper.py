"""What becomes of an answer: a row, a turn of a conversation, or nothing."""

import json

from gateway.request.store import response_keeper
from gateway.request.store.continued_request import ContinuedRequest
from gateway.request.store.response_items import list_input
from gateway.request.store.response_keeper import ResponseKeeper
from ledger.stored_objects import ObjectQuery
from router.types import Residency

NAME = "0123456789ab0123456789000001"
RESPONSE = {
    "id": f"resp_{NAME}", "status": "completed", "store": True,
    "output": [{"id": f"msg_{NAME}_0", "type": "message"}],
}  # fmt: skip


def keeper(store, **asked) -> ResponseKeeper:
    given = ContinuedRequest(**{"stores": True, "own_input": b'"hi"', **asked})
    return ResponseKeeper(store, given, team_id="a", request_id=f"req_{NAME}")


async def test_an_answer_is_stored_with_its_own_input(open_store, now) -> None:
    store = open_store(days=1)
    kept = await keeper(store, previous="resp_0").keep(RESPONSE, Residency.INTERNAL_ONLY)
    assert kept == (RESPONSE, None)
    found = await store.find("a", RESPONSE["id"])
    assert found is not None
    assert found.content["response"] == RESPONSE
    (item,) = list_input(found.content)
    assert (item["id"], item["content"][0]["text"]) == (f"msg_{NAME}_i0", "hi")
    assert (found.parent, found.residency, found.status) == ("resp_0", "internal_only", "completed")
    assert (found.created_us, found.expires_us) == (now[0], now[0] + 86_400 * 10**6)
    assert found.lease_us is None


async def test_the_residency_of_what_it_goes_on_from_stays(open_store) -> None:
    store = open_store()
    made = keeper(store, residency=Residency.INTERNAL_ONLY)
    assert made.residency is Residency.INTERNAL_ONLY
    await made.keep(RESPONSE, Residency.ANY)
    found = await store.find("a", RESPONSE["id"])
    assert found is not None
    assert found.residency == "internal_only"


async def test_nothing_is_stored_that_nobody_wants_stored(open_store, tmp_path) -> None:
    kept = await keeper(open_store(), stores=False).keep(RESPONSE, Residency.ANY)
    assert kept == (RESPONSE, None)
    assert not (tmp_path / "stored.sqlite3").exists()


async def test_what_does_not_fit_says_so(open_store) -> None:
    store = open_store(object_bytes=1024)
    kept = await keeper(store, own_input=json.dumps("x" * 2000).encode()).keep(
        RESPONSE, Residency.ANY
    )
    assert kept == ({**RESPONSE, "store": False}, "too_large")
    assert await store.find("a", RESPONSE["id"]) is None


async def test_a_turn_goes_into_its_conversation(open_store, document) -> None:
    store = open_store()
    assert await store.store([document("conv_1", kind="conversation")]) is None
    own = [{"role": "user", "content": "hi", "id": "somebody's"}, {"role": "user", "content": "on"}]
    made = keeper(store, conversation="conv_1", own_input=json.dumps(own).encode())
    await made.keep(RESPONSE, Residency.INTERNAL_ONLY)
    query = ObjectQuery(team_id="a", kind="item", parent="conv_1", descending=False)
    page = await store.list_page(query)
    assert page is not None
    items = page.documents
    assert [item.id for item in items] == [f"msg_{NAME}_i0", f"msg_{NAME}_i1", f"msg_{NAME}_0"]
    assert {item.residency for item in items} == {"internal_only"}
    assert items[2].content == RESPONSE["output"][0]


async def test_an_answer_that_is_being_made_has_a_lease_and_is_no_turn(open_store, now) -> None:
    store = open_store()
    made = keeper(store, conversation="conv_1", background=True)
    assert (made.background, made.stores) == (True, True)
    assert await made.store({**RESPONSE, "status": "queued", "output": []}, Residency.ANY) is None
    found = await store.find("a", RESPONSE["id"])
    assert found is not None
    assert (found.status, found.lease_us) == ("queued", now[0] + response_keeper.LEASE_US)
    query = ObjectQuery(team_id="a", kind="item", parent="conv_1")
    page = await store.list_page(query)
    assert page is not None
    assert page.documents == []


async def test_what_was_cancelled_stays_so_when_its_answer_ends_after_all(
    open_store, document
) -> None:
    """The worker hears of it within a second, and the answer may be whole before."""
    store = open_store()
    assert await store.store([document("conv_1", kind="conversation")]) is None
    made = keeper(store, conversation="conv_1", background=True)
    assert await made.store({**RESPONSE, "status": "queued", "output": []}, Residency.ANY) is None
    assert await store.cancel("a", RESPONSE["id"])
    assert await made.keep(RESPONSE, Residency.INTERNAL_ONLY) == (RESPONSE, None)
    found = await store.find("a", RESPONSE["id"])
    assert found is not None
    told = found.content["response"]
    assert (found.status, told["status"], told["output"]) == ("cancelled", "cancelled", [])
    assert found.residency == "internal_only"
    page = await store.list_page(ObjectQuery(team_id="a", kind="item", parent="conv_1"))
    assert page is not None
    assert page.documents == [], "whoever cancelled a turn asks it again"
    assert not await store.cancel("a", RESPONSE["id"]), "it has ended"
