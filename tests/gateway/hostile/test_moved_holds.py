"""What is held for a prompt: as long as a target may write it, and moved by no other team."""

import base64
import json
import struct
import zlib

from billing_provider import ProviderCall, honest

CHAT = "/v1/chat/completions"


def picture(side: int = 64) -> str:
    def part(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(side)) * side)
    made = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", rows) + part(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(made).decode()}"


PART = {"type": "image_url", "image_url": {"url": picture()}}
SEEN = {
    "model": "first", "max_tokens": 20, "messages": [{"role": "user", "content": [PART]}],
}  # fmt: skip


async def counts_much(call: ProviderCall) -> None:
    """Bill a picture at more than any rule gives it."""
    await honest_of(call, 45_000)


async def counts_a_little_more(call: ProviderCall) -> None:
    await honest_of(call, 9_000)


async def honest_of(call: ProviderCall, prompt: int) -> None:
    call.bill.input, call.bill.output = prompt, 20
    call.answer(call.completion(20))


def test_a_picture_of_one_team_raises_its_own_hold_and_others_as_far_as_two_saw(hostile) -> None:
    def holds(team: str, script=honest) -> int:
        hostile.play("first", script)
        assert hostile.post(team, CHAT, SEEN).status_code == 200
        return hostile.judged(team)[-1]["bound_pusd"]

    before = holds("sees nothing")
    assert holds("sees much", counts_much) == before
    assert holds("sees much") > 4 * before
    assert holds("sees nothing") == before
    assert holds("sees a little", counts_a_little_more) == before
    assert before < holds("sees nothing") == holds("sees a little") < holds("sees much")


async def counts_as_written(call: ProviderCall) -> None:
    """Bill a token for each character of the calls that Python's JSON writes anew."""
    written = [
        json.dumps(json.loads(made["function"]["arguments"]))
        for message in call.body["messages"]
        for made in message.get("tool_calls", [])
    ]
    await honest_of(call, sum(map(len, written)))


def test_arguments_that_a_target_writes_anew_are_held_as_long_as_they_come(hostile) -> None:
    """Red before: 1e15 has four characters here and 18 there, past any hard budget."""
    for arguments in (f"[{','.join(['1e15'] * 300)}]", json.dumps("é" * 900, ensure_ascii=False)):
        function = {"name": "f", "arguments": arguments}
        made = {"id": "c", "type": "function", "function": function}
        messages = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        ]
        hostile.play("first", counts_as_written)
        hostile.post("writes out", CHAT, {**SEEN, "messages": messages})
    rows = hostile.judged("writes out")
    bills = hostile.bills("writes out")
    assert [(row["cost_pusd"], row["claimed_pusd"]) for row in rows] == [
        (bill, None) for bill in bills
    ]
