"""Frames on the desk's socket: whole and bounded."""

import asyncio

import pytest

from ledger.budgets import broker_protocol as wire

MESSAGES = [
    wire.ClientHello("w", "j", (wire.amount(("a@day", 5), 10**30),)),
    wire.LoanRequest(1, (wire.amount(("a@day", 5), 7),), 7),
    wire.LoanReturn((wire.amount(("a@day", 5), 7),), 3),
]


async def test_messages_come_out_as_they_went_in_however_they_are_cut():
    reader = asyncio.StreamReader()
    for byte in b"".join(wire.frame(message) for message in MESSAGES):
        reader.feed_data(bytes([byte]))
    reader.feed_eof()
    found = [wire.REQUESTS.decode(payload) async for payload in wire.payloads(reader)]
    assert found == MESSAGES
    assert found[0].granted[0].pusd == 10**30  # more than 64 bits


@pytest.mark.parametrize("data", [b"\x01", wire.frame(MESSAGES[0])[:-1], b"\xff\xff\xff\xff rest"])
async def test_a_cut_or_oversized_frame_ends_the_conversation(data):
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    assert [payload async for payload in wire.payloads(reader)] == []
