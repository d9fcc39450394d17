"""More of what programs do with the official `openai` SDK: raw answers, helpers, pages, tasks.

    python uses_checks.py    reads OPENAI_BASE_URL and OPENAI_API_KEY

Nothing of the product is imported; every major of the SDK runs this very file.
"""

import asyncio
import io
import json
import traceback
from importlib.metadata import version

import openai
from pydantic import BaseModel

ASK = {
    "model": "chat",
    "messages": [{"role": "user", "content": "Name a machine."}],
    "max_tokens": 12,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["town", "days"],
            "additionalProperties": False,
        },
    },
}
LONG = {**ASK, "max_tokens": 4000, "extra_body": {"ignore_eos": True}}


class Part(BaseModel):
    name: str
    count: int


def lines_of_a_raw_stream(client) -> dict:
    """The answer as it comes, line by line: proxies and loggers read it so."""
    asked = client.chat.completions.with_streaming_response.create(**ASK, stream=True)
    with asked as answer:
        lines = [line for line in answer.iter_lines() if line]
        return {
            "status": answer.status_code,
            "type": answer.headers["content-type"],
            "request_id": answer.request_id,
            "first": lines[0][:6],
            "last": lines[-1],
        }


def parsed_late(client) -> dict:
    """The head first, the body when it is wanted."""
    with client.chat.completions.with_streaming_response.create(**ASK) as answer:
        backend = answer.headers["x-breakeven-backend"]
        return {"backend": backend, "text": answer.parse().choices[0].message.content}


def raw_stream(client) -> dict:
    raw = client.chat.completions.with_raw_response.create(**ASK, stream=True)
    text = "".join(c.choices[0].delta.content or "" for c in raw.parse() if c.choices)
    return {"request_id": raw.headers["x-request-id"], "text": text}


def structured(client) -> dict:
    answer = client.chat.completions.parse(
        model="chat", messages=ASK["messages"], response_format=Part
    )
    return {"document": answer.choices[0].message.parsed.model_dump()}


def helper_stream(client) -> dict:
    """The SDK's own folding of a chat stream, with a tool and a typed answer."""
    forced = {"tools": [TOOL], "tool_choice": "required"}
    with client.chat.completions.stream(**{**ASK, "max_tokens": 100}, **forced) as stream:
        kinds = [event.type for event in stream]
        call = stream.get_final_completion().choices[0].message.tool_calls[0]
    with client.chat.completions.stream(
        model="chat", messages=ASK["messages"], response_format=Part
    ) as stream:
        document = stream.until_done().get_final_completion().choices[0].message.parsed
    return {
        "kinds": sorted(set(kinds)),
        "arguments": sorted(call.function.parsed_arguments or json.loads(call.function.arguments)),
        "document": document.model_dump(),
    }


def tool_loop(client) -> dict:
    """Call, result, answer; the message of the first answer is sent back as it came."""
    forced = {"tools": [TOOL], "tool_choice": "required"}
    first = client.chat.completions.create(**{**ASK, "max_tokens": 100}, **forced)
    message = first.choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"}
    turns = [*ASK["messages"], message, result]
    last = client.chat.completions.create(**{**ASK, "messages": turns}, tools=[TOOL])
    return {"text": last.choices[0].message.content}


def given_besides(client) -> dict:
    """Headers, query and members that the SDK has no names for."""
    answer = client.chat.completions.with_raw_response.create(
        **{**ASK, "user": "somebody", "metadata": {"job": "x"}},
        extra_headers={"x-session-id": "s-1", "x-own": "1"}, extra_query={"api-version": "1"},
        extra_body={"min_tokens": 3}, timeout=openai.Timeout(30.0, connect=5.0),
    )  # fmt: skip
    return {"status": answer.status_code, "text": answer.parse().choices[0].message.content}


def once_and_impatient(client) -> dict:
    """No retries and a time limit: one try, and what it raises."""
    impatient = client.with_options(max_retries=0, timeout=0.3)
    try:
        impatient.chat.completions.create(**LONG)
    except openai.APITimeoutError as error:
        return {"raised": type(error).__name__, "tries": 1}
    return {"raised": None}


def pages(client) -> dict:
    """Lists are read page by page, by both kinds of paging."""
    text = json.dumps(
        {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": ASK}
    )
    made = [
        client.files.create(file=(f"{n}.jsonl", io.BytesIO(text.encode())), purpose="batch")
        for n in range(3)
    ]
    listed = [item.id for item in client.files.list(limit=2)]
    first = client.files.list(limit=2, order="asc", purpose="batch")
    after = first.get_next_page() if first.has_next_page() else None
    with client.files.with_streaming_response.content(made[0].id) as answer:
        content = b"".join(answer.iter_bytes(16))
    batches = [
        client.batches.create(
            input_file_id=made_value.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        for made_value in made
    ]
    found = [item.id for item in client.batches.list(limit=2)]
    processed = client.files.wait_for_processing(made[0].id, poll_interval=0.1)
    return {
        "files": len(set(listed)) >= 3 and {made_value.id for made_value in made} <= set(listed),
        "next": None if after is None else len(after.data) > 0,
        "content": content.decode() == text,
        "batches": {batch.id for batch in batches} <= set(found) and len(found) == len(set(found)),
        "processed": processed.status,
        "models": [item.id for item in client.models.list()][:1],
    }


def cancelled(_client) -> dict:
    """Tasks that are cancelled in the middle of a stream leave nothing behind on their client."""

    async def read(client, seen: list[str]) -> None:
        async for chunk in await client.chat.completions.create(**LONG, stream=True):
            seen.append(chunk.id)  # noqa: PERF401 - it ends in the middle

    async def work() -> dict:
        async with openai.AsyncOpenAI(max_retries=0) as client:
            seen: list[list[str]] = [[] for _ in range(4)]
            tasks = [asyncio.create_task(read(client, event)) for event in seen]
            while not all(len(event) > 2 for event in seen):  # noqa: ASYNC110 - many events
                await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            answer = await client.chat.completions.create(**ASK)
            return {
                "ended": [type(item).__name__ for item in ended],
                "after": answer.choices[0].message.content,
            }

    return asyncio.run(work())


CHECKS = (
    lines_of_a_raw_stream, parsed_late, raw_stream, structured, helper_stream, tool_loop,
    given_besides, once_and_impatient, pages, cancelled,
)  # fmt: skip


def main() -> None:
    client = openai.OpenAI()
    found = {"sdk": version("openai")}
    for check in CHECKS:
        try:
            found[check.__name__] = check(client)
        except Exception:  # noqa: BLE001  (one broken check must not hide the others)
            found[check.__name__] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()
