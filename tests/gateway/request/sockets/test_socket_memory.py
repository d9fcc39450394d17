"""What a worker remembers for its WebSockets: one conversation each, all within one bound."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.request.dialects.answer_keeper import KeptAnswer
from gateway.request.sockets.socket_memory import HeldConversation, SocketMemory, SocketStorage
from gateway.request.store.response_storage import NoStoredResponses
from router.types import Residency

SAID = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}


def held(name: str, size: int, residency: Residency = Residency.ANY) -> HeldConversation:
    return HeldConversation(name, (msgspec.Raw(b"1" * size),), residency)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 60)), max_size=30))
def test_the_bound_holds_and_the_newest_stay(steps: list[tuple[int, int]]) -> None:
    memory, order = SocketMemory(100), {}
    for step, (socket, size) in enumerate(steps):
        memory.hold(socket, held(f"r{step}", size))
        order.pop(socket, None)
        order[socket] = (f"r{step}", size)
        while sum(kept for _, kept in order.values()) > 100:
            del order[next(iter(order))]
        assert memory.size == sum(kept for _, kept in order.values())
        for name in range(5):
            found = memory.find(name, order.get(name, ("none", 0))[0])
            assert (found is not None) is (name in order)
    for name in range(5):
        memory.forget(name)
    assert memory.size == 0


def test_one_that_is_larger_than_all_may_be_is_not_kept() -> None:
    memory = SocketMemory(100)
    memory.hold("a", held("r1", 50))
    memory.hold("a", held("r2", 101))
    assert memory.find("a", "r1") is memory.find("a", "r2") is None
    assert memory.size == 0


class Behind:
    """What is stored for all; `refusal`: what it raises."""

    def __init__(self, keeper: Any = None) -> None:
        self.keeper, self.seen = keeper, {}

    async def open_request(self, members, team_id, request_id, *, purpose):
        self.seen = {name: json.loads(bytes(value)) for name, value in members.items()}
        return self.keeper

    def open_chat(self, asked, team_id, reply):
        return asked


class StoringKeeper:
    """Should store the answer, and cannot."""

    residency = Residency.ANY

    def __init__(self) -> None:
        self.own_members = {"input": msgspec.Raw(b'"hi bob"')}

    def allow(self, members) -> None:
        self.own_members |= members

    async def keep(self, document, residency):
        return KeptAnswer({**document, "store": False}, "unavailable")


def members(**asked: Any) -> Any:
    return decode_members(json.dumps({"model": "m", "store": False, **asked}).encode())


async def open_turn(memory: SocketMemory, behind: Any, limit: int = 10_000, **asked: Any) -> Any:
    storage, given = SocketStorage(memory, "socket", behind, limit), members(**asked)
    keeper = await storage.open_request(given, "team", "req_1", purpose="answer")
    return keeper, {name: json.loads(bytes(value)) for name, value in given.items()}


async def test_a_turn_goes_on_with_all_before_it_and_as_tight_as_that() -> None:
    memory, behind = SocketMemory(10_000), Behind()
    keeper, _ = await open_turn(memory, behind, input="hi")
    assert keeper.residency is Residency.ANY
    await keeper.keep({"id": "r1", "output": [SAID]}, Residency.INTERNAL_ONLY)
    keeper, sent = await open_turn(memory, behind, input="on", previous_response_id="r1")
    assert sent["previous_response_id"] == "r1"
    assert "previous_response_id" not in behind.seen  # nobody else knows of it
    assert [item["role"] for item in sent["input"]] == ["user", "assistant", "user"]
    assert keeper.residency is Residency.INTERNAL_ONLY
    await keeper.keep({"id": "r2", "output": [SAID]}, Residency.ANY)
    found = memory.find("socket", "r2")
    assert found is not None
    assert found.residency is Residency.INTERNAL_ONLY
    assert len(found.items) == 4


async def test_what_is_stored_is_not_remembered_and_what_could_not_be_is() -> None:
    memory = SocketMemory(10_000)
    for said, remembered in ((True, False), (msgspec.Raw(b"true"), False), (False, True)):
        keeper, _ = await open_turn(memory, Behind(), input="hi")
        await keeper.keep({"id": "r1", "output": [], "store": said}, Residency.ANY)
        assert (memory.find("socket", "r1") is not None) is remembered


async def test_what_was_masked_is_remembered_masked() -> None:
    memory = SocketMemory(10_000)
    keeper, _ = await open_turn(memory, Behind(), input="hi bob")
    (sent,) = json.loads(bytes(keeper.own_members["input"]))
    keeper.allow({"input": msgspec.Raw(json.dumps([{**sent, "content": "hi [x]"}]).encode())})
    await keeper.keep({"id": "r1", "output": [SAID]}, Residency.ANY)
    _, sent = await open_turn(memory, Behind(), input="on", previous_response_id="r1")
    assert [item["content"] for item in sent["input"]] == ["hi [x]", [], "on"]


async def test_what_should_be_stored_and_was_masked_is_not_remembered_as_it_was_sent() -> None:
    """The control without a mask is."""
    for allowed, remembered in (({}, True), ({"input": msgspec.Raw(b'"hi [x]"')}, False)):
        memory, inner = SocketMemory(10_000), StoringKeeper()
        keeper, _ = await open_turn(memory, Behind(inner), input="hi bob")
        keeper.allow(allowed)
        assert inner.own_members == {"input": msgspec.Raw(b'"hi bob"'), **allowed}
        await keeper.keep({"id": "r1", "output": [SAID]}, Residency.ANY)
        assert (memory.find("socket", "r1") is not None) is remembered


async def test_a_conversation_that_grew_too_long_is_refused() -> None:
    memory = SocketMemory(10_000)
    keeper, _ = await open_turn(memory, Behind(), input="x" * 500)
    await keeper.keep({"id": "r1", "output": []}, Residency.ANY)
    with pytest.raises(RequestError) as raised:
        await open_turn(memory, Behind(), 600, input="y" * 200, previous_response_id="r1")
    assert raised.value.kind == "context"


async def test_where_nothing_is_stored_an_unknown_answer_is_not_found() -> None:
    memory, nowhere = SocketMemory(10_000), NoStoredResponses(unasked=True)
    with pytest.raises(RequestError) as raised:
        await open_turn(memory, nowhere, input="on", previous_response_id="r1")
    assert raised.value.kind == "no_previous_response"
    with pytest.raises(RequestError) as raised:
        await open_turn(memory, nowhere, input="on", store=True)
    assert (raised.value.kind, raised.value.param) == ("unsupported", "store")
    keeper, _ = await open_turn(memory, nowhere, input="on")
    await keeper.keep({"id": "r1", "output": []}, Residency.ANY)
    assert memory.find("socket", "r1") is not None


@pytest.mark.parametrize(
    ("output", "refused"),
    [("call_1", False), ("call_2", True)],
)
async def test_an_output_needs_its_call(output: str, refused: bool) -> None:
    memory = SocketMemory(10_000)
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    keeper, _ = await open_turn(memory, Behind(), input="hi")
    await keeper.keep({"id": "r1", "output": [call]}, Residency.ANY)
    told = [{"type": "function_call_output", "call_id": output, "output": "x"}]
    work = open_turn(memory, Behind(), input=told, previous_response_id="r1")
    if not refused:
        await work
        return
    with pytest.raises(RequestError) as raised:
        await work
    assert raised.value.param == "input[0].call_id"
