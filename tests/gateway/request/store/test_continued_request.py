"""What a request goes on from: all of it is its input, as tight as its tightest part."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.request.store import continued_request, object_store
from gateway.request.store.compaction import seal_summary
from gateway.request.store.continued_request import (
    RequestContinuation,
    refuse_orphans,
    refuse_stored,
)
from router.types import Residency

NAME = "0123456789ab0123456789000001"


def members(**asked):
    return decode_members(json.dumps({"model": "m", **asked}).encode())


def user(text: str) -> dict:
    return {"type": "message", "role": "user", "content": text}


def listed(text: str, item_id: str) -> dict:
    """A message of the user as it is listed."""
    parts = [{"type": "input_text", "text": text}]
    return {**user(text), "content": parts, "id": item_id, "status": "completed"}


def response(name: str, status: str = "completed", **output) -> dict:
    return {
        "response": {"id": name, "status": status, "output": [{"id": f"msg_{name}", **output}]},
        "input": f"asked {name}", "keeps_ids": True,
    }  # fmt: skip


@pytest.fixture
def expand(open_store):
    """`expand(store, input=...)`: what the request is, and its input behind it."""

    async def work(objects, *, stores: bool = True, limit_bytes: int = 10**6, **asked):
        given = members(**asked)
        found = await RequestContinuation(objects, limit_bytes).expand(given, "a", stores=stores)
        return found, json.loads(bytes(given.get("input", b"null"))), given

    return work


async def test_a_request_that_goes_on_from_nothing_stays_as_it_is(open_store, expand) -> None:
    for asked in ("hi", [user("hi")], [{"id": "x", **user("hi")}]):
        found, given, sent = await expand(open_store(), input=asked)
        assert given == asked
        assert (found.stores, found.background, found.residency) == (True, False, Residency.ANY)
        assert json.loads(found.own_input) == asked
        assert bytes(sent["store"]) == b"true"


async def test_who_does_not_store_may_still_go_on(open_store, expand, document) -> None:
    store = open_store()
    await store.store([document("r1", response("r1"), kind="response", status="completed")])
    found, given, sent = await expand(store, store=False, input="next", previous_response_id="r1")
    assert not found.stores
    assert bytes(sent["store"]) == b"false"
    assert given == [listed("asked r1", "msg_r1_i0"), {"id": "msg_r1"}, user("next")]
    assert found.previous == "r1"
    counted, _, _ = await expand(store, stores=False, input="next", background=True)
    assert (counted.stores, counted.background) == (False, False)


async def test_a_chain_is_as_tight_as_its_tightest_member(open_store, expand, document) -> None:
    store = open_store()
    await store.store(
        [
            document("r1", response("r1"), kind="response", residency="internal_only"),
            document("r2", response("r2"), kind="response", parent="r1"),
        ]
    )
    found, given, _ = await expand(store, previous_response_id="r2")
    assert found.residency is Residency.INTERNAL_ONLY
    assert [item["id"] for item in given] == ["msg_r1_i0", "msg_r1", "msg_r2_i0", "msg_r2"]
    assert given[2] == listed("asked r2", "msg_r2_i0")


async def test_a_conversation_is_read_to_its_end(open_store, expand, document) -> None:
    store = open_store()
    await store.store([document("conv_1", kind="conversation")])
    items = [document(f"i{n:03}", user(f"say {n}"), parent="conv_1") for n in range(230)]
    items[170] = document("tight", user("say 170"), parent="conv_1", residency="internal_only")
    await store.store(items)
    found, given, sent = await expand(store, input="on", conversation="conv_1")
    assert [item["content"] for item in given] == [*(f"say {n}" for n in range(230)), "on"]
    assert found.residency is Residency.INTERNAL_ONLY
    assert json.loads(bytes(sent["conversation"])) == {"id": "conv_1"}
    same, _, _ = await expand(store, input="on", conversation={"id": "conv_1"})
    assert same.conversation == "conv_1"
    with pytest.raises(RequestError) as raised:
        await expand(store, limit_bytes=5_000, input="on", conversation="conv_1")
    assert raised.value.kind == "context"


async def test_references_stand_for_their_items(open_store, expand, document) -> None:
    store = open_store()
    content = {
        "response": {
            "id": f"resp_{NAME}",
            "output": [{"id": f"msg_{NAME}_0", "type": "message", "role": "assistant"}],
        },
        "input": [listed("asked", f"msg_{NAME}_i0")], "keeps_ids": True,
    }  # fmt: skip
    tight = document(f"resp_{NAME}", content, kind="response", residency="internal_only")
    await store.store([tight, document("msg_c", user("of a conversation"))])
    found, given, _ = await expand(
        store,
        input=[
            {"type": "item_reference", "id": f"msg_{NAME}_i0"},
            {"id": f"msg_{NAME}_0"},
            user("between"),
            {"type": "item_reference", "id": "msg_c"},
            {"type": "item_reference", "id": "msg_c"},
        ],
    )
    assert given == [
        content["input"][0], content["response"]["output"][0], user("between"),
        user("of a conversation"), user("of a conversation"),
    ]  # fmt: skip
    assert json.loads(found.own_input) == given
    assert found.residency is Residency.INTERNAL_ONLY
    loose, _, _ = await expand(store, input=[{"type": "item_reference", "id": "msg_c"}])
    assert loose.residency is Residency.ANY


async def test_references_make_no_more_than_a_body_may_have(
    open_store, expand, document, monkeypatch
) -> None:
    """Red before: a body of names of one long item filled the worker's memory."""
    store, reference = open_store(), {"type": "item_reference", "id": "msg_c"}
    long = [user("x" * 300), document("conv_1", kind="conversation")]
    await store.store([document("msg_c", long[0], parent="conv_1"), long[1]])

    async def refused(**members) -> None:
        with pytest.raises(RequestError) as raised:
            await expand(store, limit_bytes=5_000, **members)
        assert raised.value.kind == "context"

    with pytest.raises(RequestError, match="references"):
        await expand(store, input=[reference] * 1_001)
    encoded = []
    monkeypatch.setattr(continued_request, "encode_raw", encoded.append)
    await refused(input=[reference] * 20)
    assert encoded == []
    monkeypatch.setattr(object_store, "AT_ONCE_BYTES", 100)
    await refused(input=[reference])
    await refused(conversation="conv_1", input="a")


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary"])
async def test_a_compaction_stands_for_what_it_sums_up(open_store, expand, kind: str) -> None:
    store = open_store()
    sealed = await seal_summary(store, "a", "all of it", "internal_only")
    item = {"type": kind, "encrypted_content": sealed}
    found, given, _ = await expand(store, input=[item, user("on")])
    assert given[0]["content"][0]["text"].endswith("all of it")
    assert given[1] == user("on")
    assert found.residency is Residency.INTERNAL_ONLY
    assert json.loads(found.own_input)[0] == item
    of_another_team = await seal_summary(store, "b", "all of it", "any")
    for data in (of_another_team, "AAAA", "%", None, 5):
        with pytest.raises(RequestError) as raised:
            await expand(store, input=[{"type": "compaction", "encrypted_content": data}])
        assert raised.value.param == "input[0]"
        assert "Leave the item out" in raised.value.message, "red before: no fix was named"


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary"])
async def test_a_compaction_of_another_service_locks_no_session(
    open_store, expand, kind: str
) -> None:
    """Codex sends the compaction that OpenAI made with every turn; its user cannot remove it."""
    store = open_store()
    own = {"type": kind, "encrypted_content": await seal_summary(store, "a", "ours", "any")}
    theirs = {"type": kind, "encrypted_content": "gAAAAABp"}
    _, given, _ = await expand(store, input=[theirs, own, user("on")])
    assert given[0] == theirs
    assert given[1]["content"][0]["text"].endswith("ours")
    with pytest.raises(RequestError) as raised:
        await expand(store, input=[user("on"), theirs])
    assert raised.value.param == "input[1]"


@pytest.mark.parametrize(
    ("asked", "kind", "param"),
    [
        ({"previous_response_id": "gone"}, "no_previous_response", "previous_response_id"),
        ({"previous_response_id": "running"}, "bad_request", "previous_response_id"),
        ({"previous_response_id": "conv_1"}, "no_previous_response", "previous_response_id"),
        (
            {"previous_response_id": "r1", "conversation": "conv_1"},
            "bad_request",
            "previous_response_id",
        ),
        ({"conversation": "gone"}, "not_found", "conversation"),
        ({"conversation": "r1"}, "not_found", "conversation"),
        ({"conversation": {"name": "x"}}, "bad_request", "conversation.id"),
        ({"conversation": 5}, "bad_request", "conversation"),
        ({"input": [user("x"), {"type": "item_reference", "id": "gone"}]}, "not_found", "input[1]"),
        ({"input": [{"id": f"x{n}"} for n in range(1001)]}, "bad_request", "input"),
        ({"input": "x", "background": True, "store": False}, "bad_request", "background"),
        ({"input": "x", "store": "yes"}, "bad_request", "store"),
        ({"input": "x" * 3000}, "context", "input"),
        ({"input": "x", "previous_response_id": "long"}, "context", "input"),
    ],
)  # fmt: skip
async def test_what_cannot_be_gone_on_from(
    open_store, expand, document, asked: dict, kind: str, param: str
) -> None:
    store = open_store()
    await store.store(
        [
            document("r1", response("r1"), kind="response"),
            document("long", response("long", text="y" * 4000), kind="response"),
            document("running", response("running"), kind="response", status="in_progress"),
            document("conv_1", kind="conversation"),
        ]
    )
    with pytest.raises(RequestError) as raised:
        await expand(store, limit_bytes=3_000, **asked)
    assert (raised.value.kind, raised.value.param) == (kind, param)


@pytest.mark.parametrize(
    ("asked", "unasked", "param"),
    [
        ({"store": True}, False, "store"),
        ({"store": True}, True, "store"),
        ({}, True, "store"),
        ({"store": None}, True, "store"),
        ({"store": False, "previous_response_id": "r"}, True, "previous_response_id"),
        ({"conversation": "c"}, False, "conversation"),
        ({"background": True}, False, "background"),
    ],
)
def test_nothing_that_needs_a_stored_answer_where_there_are_none(asked, unasked, param) -> None:
    with pytest.raises(RequestError) as raised:
        refuse_stored(members(**asked), unasked=unasked)
    assert (raised.value.kind, raised.value.param) == ("unsupported", param)
    assert ("a batch keeps no answers" in raised.value.message) is not unasked


def test_what_needs_none_goes_on() -> None:
    refuse_stored(members(background=False, previous_response_id=None), unasked=False)
    refuse_stored(members(store=False), unasked=True)


def test_an_item_whose_type_is_no_word_answers_no_call() -> None:
    """Red before: a list has no hash, and the request was a 500."""
    refuse_orphans([], [{"type": []}])
    with pytest.raises(RequestError, match="No tool call found"):
        refuse_orphans([], [{"type": "function_call_output", "call_id": "c"}])


async def test_an_output_without_its_call_spoils_no_conversation(
    open_store, expand, document
) -> None:
    """Stored, it would stand in each later turn, and most targets refuse it."""
    store = open_store()
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    await store.store([
        document("conv_1", {"id": "conv_1"}, kind="conversation"),
        document("fc_1", {**call, "id": "fc_1"}, kind="item", parent="conv_1"),
    ])  # fmt: skip
    output = {"type": "function_call_output", "output": "x"}
    _, given, _ = await expand(store, conversation="conv_1", input=[{**output, "call_id": "c"}])
    assert [item["type"] for item in given] == ["function_call", "function_call_output"]
    with pytest.raises(RequestError, match="No tool call found") as raised:
        await expand(store, conversation="conv_1", input=[{**output, "call_id": "d"}])
    assert raised.value.param == "input[0].call_id"
    named = [{"id": "fc_1"}, {**output, "call_id": "c"}]
    _, given, _ = await expand(store, input=named)
    assert given[0]["call_id"] == "c"


async def test_an_id_that_a_client_chose_names_nothing(open_store, expand, document) -> None:
    """Red before: beside an item of its response such a name was a 500."""
    name, other = f"resp_{NAME}", NAME.replace("a", "b")
    made = {**response(name), "input": [listed("own", "chosen"), listed("own", f"msg_{other}_0")]}
    made["response"]["output"] = [{"id": f"msg_{NAME}_0", "type": "message"}]
    stored = document(name, made, kind="response")
    store = open_store()
    await store.store([stored])
    reference = {"id": f"msg_{NAME}_0"}
    _, given, _ = await expand(store, input=[reference])
    assert given == made["response"]["output"]
    for chosen in ("chosen", f"msg_{other}_0"):
        with pytest.raises(RequestError) as raised:
            await expand(store, input=[reference, {"id": chosen}])
        assert (raised.value.kind, raised.value.param) == ("not_found", "input[1]")


async def test_an_item_is_its_own_responses_whatever_another_calls_its_input(
    open_store, expand, document
) -> None:
    theirs, ours = f"resp_{NAME}", f"resp_{NAME.replace('a', 'b')}"
    item = f"msg_{NAME}_0"
    true = {**response(theirs), "input": "asked"}
    true["response"]["output"] = [{"id": item, "type": "message", "role": "assistant"}]
    false = {**response(ours), "input": [listed("false", item)]}
    mine = f"msg_{ours.removeprefix('resp_')}_0"
    false["response"]["output"] = [{"id": mine, "type": "message", "role": "assistant"}]
    store = open_store()
    await store.store([document(theirs, true, kind="response")])
    await store.store([document(ours, false, kind="response")])
    _, given, _ = await expand(store, input=[{"id": item}, {"id": mine}])
    assert given[0] == true["response"]["output"][0]
