"""A real client program of the official `anthropic` SDK: one check after the other, told as JSON.

    python messages_checks.py    reads ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY and POOR_KEY

Nothing of the product is imported. What a check saw goes to standard output, judged by the test
that started the program.
"""

import asyncio
import json
import os
import sys
import time
import traceback
from importlib.metadata import version

import anthropic

ASK = {
    "model": "chat",
    "max_tokens": 12,
    "messages": [{"role": "user", "content": "Name a machine."}],
}
TOOL = {
    "name": "weather",
    "description": "Weather of a town",
    "input_schema": {
        "type": "object",
        "properties": {"town": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["town", "days"],
    },
}
FORCED = {**ASK, "max_tokens": 100, "tools": [TOOL], "tool_choice": {"type": "any"}}


def seen(message) -> dict:
    usage = message.usage
    return {
        "type": message.type,
        "role": message.role,
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "calls": [
            {"id": block.id, "name": block.name, "input": block.input}
            for block in message.content
            if block.type == "tool_use"
        ],
        "stop": message.stop_reason,
        "usage": {
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cache_read_input_tokens,
            "output_tokens": usage.output_tokens,
        },
    }


def whole(client) -> dict:
    message = client.messages.create(**ASK, system="Be brief.")
    return {**seen(message), "request_id": message._request_id}


def streamed(client, **changes) -> dict:
    with client.messages.stream(**{**ASK, "system": "Be brief.", **changes}) as stream:
        texts = list(stream.text_stream)
        message = stream.get_final_message()
        return {**seen(message), "texts": texts, "request_id": stream.request_id}


def spilled(client) -> dict:
    return streamed(client, model="spilled")


def tools(client) -> dict:
    return seen(client.messages.create(**FORCED))


def tools_streamed(client) -> dict:
    with client.messages.stream(**FORCED) as stream:
        kinds = [event.type for event in stream]
        return {**seen(stream.get_final_message()), "parts": kinds.count("input_json")}


def results(client) -> dict:
    """A tool is called, its result goes back, the model goes on."""
    called = client.messages.create(**FORCED)
    use = called.content[0]
    turn = [
        {"role": "assistant", "content": called.content},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "rain"}],
        },
    ]
    asked = {**ASK, "messages": [*ASK["messages"], *turn], "tools": [TOOL]}
    return seen(client.messages.create(**asked))


def counted(client) -> dict:
    asked = {name: ASK[name] for name in ("model", "messages")}
    return {"tokens": client.messages.count_tokens(**asked, system="Be brief.").input_tokens}


def counted_with_tools(client) -> dict:
    asked = {name: FORCED[name] for name in ("model", "messages", "tools", "tool_choice")}
    return {"tokens": client.messages.count_tokens(**asked).input_tokens}


def raw(client) -> dict:
    """Heads beside bodies, whole and as lines."""
    answer = client.messages.with_raw_response.create(**ASK)
    with client.messages.with_streaming_response.create(**ASK, stream=True) as stream:
        lines = [line for line in stream.iter_lines() if line]
    return {
        "request_id": answer.headers["request-id"],
        "text": answer.parse().content[0].text,
        "first": lines[0],
        "last": lines[-1],
    }


def listed(client) -> dict:
    found = [item.id for item in client.models.list(limit=2)]
    return {"ids": found, "one": client.models.retrieve("chat").id}


def batched(client) -> dict:
    """Two requests, of which one asks for what cannot be."""
    bad = {**ASK, "messages": []}
    asked = [{"custom_id": name, "params": each} for name, each in (("good", ASK), ("bad", bad))]
    batch = client.messages.batches.create(requests=asked)
    until_s = time.monotonic() + 90
    while batch.processing_status != "ended" and time.monotonic() < until_s:
        time.sleep(0.2)
        batch = client.messages.batches.retrieve(batch.id)
    told = {item.custom_id: item.result for item in client.messages.batches.results(batch.id)}
    listed = [item.id for item in client.messages.batches.list(limit=1)]
    return {
        "counts": batch.request_counts.model_dump(),
        "results": {name: item.type for name, item in told.items()},
        "good": seen(told["good"].message),
        "bad": told["bad"].error.error.type,
        "listed": listed == [batch.id],
        "deleted": client.messages.batches.delete(batch.id).id == batch.id,
    }


def folded(client) -> dict:
    """Every event of the helper, and the snapshot that it keeps."""
    with client.messages.stream(**ASK) as stream:
        kinds = {event.type for event in stream}
        return {"kinds": sorted(kinds), "text": stream.get_final_text()}


def tool_runner(client) -> dict:
    """The SDK's own loop: it calls the function, and sends its result back."""
    calls: list[str] = []

    @anthropic.beta_tool
    def weather(town: str, days: int) -> str:
        """Weather of a town."""
        calls.append(town)
        return f"rain for {days} days"

    runner = client.beta.messages.tool_runner(
        model="chat", max_tokens=100, messages=ASK["messages"], tools=[weather],
        tool_choice={"type": "any"}, max_iterations=2,
    )  # fmt: skip
    return {"messages": len([message.id for message in runner]), "calls": len(calls)}


def cancelled(_client) -> dict:
    """Tasks that are cancelled in the middle of a stream leave their client usable."""
    long = {**ASK, "max_tokens": 4000, "extra_body": {"ignore_eos": True}}

    async def read(client, seen: list[str]) -> None:
        async with client.messages.stream(**long) as stream:
            async for text in stream.text_stream:
                seen.append(text)  # noqa: PERF401 - it ends in the middle

    async def work() -> dict:
        async with anthropic.AsyncAnthropic(max_retries=0) as client:
            seen: list[list[str]] = [[] for _ in range(3)]
            tasks = [asyncio.create_task(read(client, event)) for event in seen]
            while not all(len(event) > 2 for event in seen):  # noqa: ASYNC110 - many events
                await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            after = await client.messages.create(**ASK)
            return {
                "ended": [type(item).__name__ for item in ended],
                "after": after.content[0].text,
            }

    return asyncio.run(work())


def bearer(_client) -> dict:
    """As tools do that are given a token instead of a key."""
    token = os.environ["ANTHROPIC_API_KEY"]
    client = anthropic.Anthropic(api_key=None, auth_token=token)
    client.api_key = None
    return seen(client.messages.create(**ASK))


def bad_key(client) -> dict:
    return refused(client.with_options(api_key="gw_0000000000000000_" + "0" * 64))


def bad_request(client) -> dict:
    return refused(client, max_tokens=0)


def server_tool(client) -> dict:
    return refused(client, tools=[{"type": "web_search_20250305", "name": "web_search"}])


def unknown_model(client) -> dict:
    return refused(client, model="nowhere")


def over_budget(client) -> dict:
    """The SDK's own retries stay on: the gateway's header has to stop them."""
    return refused(client.with_options(api_key=os.environ["POOR_KEY"], max_retries=2))


def refused(client, **changes) -> dict:
    try:
        client.messages.create(**{**ASK, **changes})
    except anthropic.APIStatusError as error:
        return {
            "raised": type(error).__name__,
            "status": error.status_code,
            "type": error.body["error"]["type"],
            "message": error.body["error"]["message"],
            "request_id": error.request_id,
        }
    return {"raised": None}


def abort(client) -> dict:
    """Read some events of a long answer and leave."""
    long = {**ASK, "max_tokens": 4000, "extra_body": {"ignore_eos": True}}
    events = client.messages.create(**long, stream=True)
    kinds = [event.type for event, _ in zip(events, range(5), strict=False)]
    events.close()
    return {"kinds": kinds, "request_id": events.response.headers["request-id"]}


def asynchronous(_client) -> dict:
    async def one(client) -> str:
        async with client.messages.stream(**ASK) as stream:
            return await stream.get_final_text()

    async def all_of_them() -> list[str]:
        async with anthropic.AsyncAnthropic() as client:
            return await asyncio.gather(*(one(client) for _ in range(8)))

    return {"texts": asyncio.run(all_of_them())}


CHECKS = (
    whole, streamed, spilled, tools, tools_streamed, results, counted, counted_with_tools, raw,
    listed, batched, folded, tool_runner, cancelled, bearer, bad_key, bad_request, server_tool,
    unknown_model, over_budget, abort, asynchronous,
)  # fmt: skip


def main() -> None:
    client = anthropic.Anthropic()  # base URL and key from the environment, as people do
    wanted = sys.argv[1:] or [check.__name__ for check in CHECKS]
    found = {"sdk": version("anthropic")}
    for check in CHECKS:
        if check.__name__ in wanted:
            try:
                found[check.__name__] = check(client)
            except Exception:  # noqa: BLE001  (one broken check must not hide the others)
                found[check.__name__] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()
