"""What the provider of hostile tests plays: failures, searches, silence, with what it bills."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from billing_provider import PROMPT, ProviderCall, Script, chunk_of

WHOLE = "application/json"


async def breaks_whole(call: ProviderCall) -> None:
    """Make all of an answer, and break off in the middle of it."""
    call.bill.input, call.bill.output = PROMPT, call.body["max_tokens"]
    call.head(200, WHOLE, content_length="5000")
    call.send('{"id": "c1", "choices": [{"index": 0, "message": {"content": "wo')
    await call.drop()


async def breaks_stream(call: ProviderCall) -> None:
    call.bill.input = PROMPT
    call.head()
    call.chunk(role="assistant", content="")
    await call.drop()


async def breaks_before_head(call: ProviderCall) -> None:
    """Of a stream nothing is made that is not sent."""
    call.bill.input = PROMPT
    call.bill.output = 0 if call.body.get("stream") else 50
    await call.drop()


async def lies_then_breaks(call: ProviderCall) -> None:
    """Claim what cannot be at the beginning of a stream."""
    call.bill.input = PROMPT
    call.head()
    usage = {"prompt_tokens": 10**7, "completion_tokens": 10**7, "total_tokens": 2 * 10**7}
    call.event({"id": "c", "choices": [], "usage": usage})
    await call.drop()


async def error_event(call: ProviderCall) -> None:
    call.bill.input, call.bill.output = PROMPT, 40
    call.head()
    error = {"message": "it broke", "type": "server_error", "code": 500}
    call.event({"error": error, "usage": call.usage()})


def counted_error(status: int) -> Script:
    """An error of a status, whose body counts what was made before."""

    async def fails(call: ProviderCall) -> None:
        call.bill.input, call.bill.output = PROMPT, 40
        call.answer({"error": {"message": "no", "type": "oops"}, "usage": call.usage()}, status)

    return fails


async def filtered(call: ProviderCall) -> None:
    """Refuse a prompt that a filter read, as Azure does, which bills it."""
    call.bill.input = PROMPT
    call.answer({"error": {"message": "filtered", "code": "content_filter"}}, 400)


async def own_deadline(call: ProviderCall) -> None:
    call.bill.input = PROMPT
    call.bill.output = 0 if call.body.get("stream") else 50
    call.answer({"error": {"message": "timed out", "code": "Timeout"}}, 408)


def breaks_media(pusd: int, media: str) -> Script:
    """Bill all of a file or a picture, and break off in it."""

    async def breaks(call: ProviderCall) -> None:
        call.bill.other_pusd = pusd
        call.head(200, media, content_length="3000")
        call.send(b"{" if media == WHOLE else b"\xff\xfb\x90\x00" * 10)
        await call.drop()

    return breaks


def makes_media(kind: str, pusd: int) -> Script:
    async def makes(call: ProviderCall) -> None:
        call.bill.other_pusd = pusd
        if kind == "speaks":
            call.head(200, "audio/mpeg", content_length="3000")
            call.send(b"\xff\xfb\x90\x00" * 750)
        elif kind == "draws":
            picture = {"url": "https://example.com/a.png"}
            call.answer({"created": 1, "data": [picture, picture]})
        else:
            call.answer({"text": "hello there"})

    return makes


def slow(words: int, pause_s: float, *, stops: bool) -> Script:
    """Say a word at a time, streamed or not; `stops`: no longer than its caller is there."""

    async def says(call: ProviderCall) -> None:
        call.bill.input = PROMPT
        if call.body.get("stream"):
            call.head()
            call.wrote.set()
            await call.words(words, pause_s, stops=stops)
            call.end()
            return
        call.wrote.set()
        for _ in range(words):
            if stops and call.gone.is_set():
                return
            await asyncio.sleep(pause_s)
            call.bill.output += 1
        call.answer(call.completion(words))

    return says


def framed(
    frame: Callable[[str], str],
    *,
    before: str = "",
    head: str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n",
    packed: Callable[[bytes], bytes] = bytes,
    piece: int = 0,
) -> Script:
    """Stream 20 words, each document in this frame; `piece`: in pieces of so many bytes."""

    async def play(call: ProviderCall) -> None:
        call.bill.input, call.bill.output = PROMPT, 20
        choice = {"index": 0, "delta": {"content": "word "}, "finish_reason": None}
        ending = {"index": 0, "delta": {}, "finish_reason": "stop"}
        documents = [
            *[chunk_of(choices=[choice])] * 20, chunk_of(choices=[ending]),
            chunk_of(choices=[], usage=call.usage()),
        ]  # fmt: skip
        words = [*map(json.dumps, documents), "[DONE]"]
        data = packed((before + "".join(map(frame, words))).encode())
        call.send(head + "\r\n")
        for start in range(0, len(data), piece or len(data)):
            call.send(data[start : start + (piece or len(data))])
            await asyncio.sleep(0)

    return play


async def counts_prompt(call: ProviderCall) -> None:
    """Answer, and count a token for four bytes of the conversation."""
    call.bill.input = sum(len(json.dumps(message)) for message in call.body["messages"]) // 4
    if call.body.get("stream"):
        call.head()
        await call.words(20)
        call.end()
        return
    call.bill.output = 20
    call.answer(call.completion(20))


def searches(*, stops: bool, ends: bool, pause_s: float = 0.0) -> Script:
    """Search three times in Anthropic's words, then write; `ends`: with usage, or broken off."""

    async def play(call: ProviderCall) -> None:
        call.bill.input = 200
        call.head()
        usage = {"input_tokens": 200, "output_tokens": 1}
        call.event({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": None, "usage": usage,
        }})  # fmt: skip
        for number in range(3):
            name = f"srvtoolu_{number}"
            block = {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}
            _block(call, 2 * number, block)
            call.bill.searches += 1
            call.bill.input += 3000
            call.bill.output += 5
            found = {"type": "web_search_tool_result", "tool_use_id": name, "content": []}
            _block(call, 2 * number + 1, found)
        call.event({"type": "content_block_start", "index": 9,
                    "content_block": {"type": "text", "text": ""}})  # fmt: skip
        call.wrote.set()
        for _ in range(10):
            await asyncio.sleep(pause_s)
            if stops and call.gone.is_set():
                return
            call.bill.output += 1
            delta = {"type": "text_delta", "text": "word "}
            call.event({"type": "content_block_delta", "index": 9, "delta": delta})
        if not ends:
            await call.drop()
            return
        usage = {
            "input_tokens": call.bill.input, "output_tokens": call.bill.output,
            "server_tool_use": {"web_search_requests": call.bill.searches},
        }  # fmt: skip
        call.event({"type": "content_block_stop", "index": 9})
        call.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
        call.event({"type": "message_stop"})

    return play


def _block(call: ProviderCall, index: int, block: dict[str, Any]) -> None:
    call.event({"type": "content_block_start", "index": index, "content_block": block})
    call.event({"type": "content_block_stop", "index": index})


def silent(pusd: int, *, says: bool, drops: bool) -> Script:
    """Read the prompt, which is billed, and say nothing of it; perhaps a word (`says`)."""

    async def play(call: ProviderCall) -> None:
        call.bill.other_pusd = pusd
        if says or drops:
            call.head()
        if says:
            call.chunk(content="word ")
            call.bill.output = 1
        elif drops:
            call.event({"type": "ping"})
        call.wrote.set()
        if drops:
            await call.drop()
        else:
            await asyncio.wait_for(call.gone.wait(), 10)

    return play
