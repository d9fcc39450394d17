"""A real client program of the official `openai` SDK: one check after the other, told as JSON.

    python checks.py        reads OPENAI_BASE_URL, OPENAI_API_KEY and POOR_KEY

Nothing of the product is imported; every major of the SDK runs this very file. What a check saw
goes to standard output, judged by the test that started the program.
"""

import asyncio
import json
import os
import sys
import traceback
from importlib.metadata import version

import openai

MODEL = "chat"
ASK = [{"role": "user", "content": "Name a machine."}]
LONG = {"max_tokens": 4000, "extra_body": {"ignore_eos": True}}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a town",
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["town", "days"],
        },
    },
}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "part",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["name", "count"],
            "additionalProperties": False,
        },
    },
}


def usage_of(answer) -> dict:
    usage = answer.usage
    return {
        "prompt": usage.prompt_tokens,
        "output": getattr(usage, "completion_tokens", 0),
        "total": usage.total_tokens,
    }


def chat(client) -> dict:
    answer = client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=12)
    choice = answer.choices[0]
    return {
        "object": answer.object,
        "role": choice.message.role,
        "text": choice.message.content,
        "finish": choice.finish_reason,
        "usage": usage_of(answer),
    }


def completion(client) -> dict:
    answer = client.completions.create(model=MODEL, prompt="Once upon", max_tokens=9)
    return {"object": answer.object, "text": answer.choices[0].text, "usage": usage_of(answer)}


def stream(client) -> dict:
    return read(client.chat.completions.create(**streamed()))


def stream_with_usage(client) -> dict:
    options = {"include_usage": True}
    return read(client.chat.completions.create(**streamed(), stream_options=options))


def stream_spilled(client) -> dict:
    """The same from an API target: the gateway asks for the usage and hides it again."""
    return read(client.chat.completions.create(**{**streamed(), "model": "spilled"}))


def streamed() -> dict:
    return {"model": MODEL, "messages": ASK, "max_tokens": 12, "stream": True}


def read(chunks) -> dict:
    """What a stream brought."""
    text, finishes, usages, objects, empty = "", [], [], set(), 0
    for chunk in chunks:
        objects.add(chunk.object)
        empty += not chunk.choices
        if chunk.usage is not None:
            usages.append(usage_of(chunk))
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finishes += [choice.finish_reason] if choice.finish_reason else []
    return {
        "text": text,
        "finishes": finishes,
        "usages": usages,
        "objects": sorted(objects),
        "chunks_without_choices": empty,
    }


def forced() -> dict:
    return {"model": MODEL, "messages": ASK, "tools": [TOOL], "tool_choice": "required"}


def tools(client) -> dict:
    answer = client.chat.completions.create(**forced())
    choice = answer.choices[0]
    call = choice.message.tool_calls[0]
    return {
        "finish": choice.finish_reason,
        "id": call.id,
        "type": call.type,
        "name": call.function.name,
        "arguments": json.loads(call.function.arguments),
    }


def tools_streamed(client) -> dict:
    arguments, names, ids, finish = "", [], [], None
    for chunk in client.chat.completions.create(**forced(), stream=True):
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or []:
                arguments += call.function.arguments or ""
                names += [call.function.name] if call.function.name else []
                ids += [call.id] if call.id else []
    return {"finish": finish, "names": names, "ids": ids, "arguments": json.loads(arguments)}


def several(client) -> dict:
    answer = client.chat.completions.create(model=MODEL, messages=ASK, n=2, max_tokens=8)
    return {"indexes": [choice.index for choice in answer.choices], "usage": usage_of(answer)}


def json_schema(client) -> dict:
    answer = client.chat.completions.create(model=MODEL, messages=ASK, response_format=SCHEMA)
    return {"document": json.loads(answer.choices[0].message.content)}


def logprobs(client) -> dict:
    answer = client.chat.completions.create(
        model=MODEL, messages=ASK, max_tokens=4, logprobs=True, top_logprobs=2
    )
    found = answer.choices[0].logprobs.content
    return {"tokens": len(found), "alternatives": [len(each.top_logprobs) for each in found]}


def models(client) -> dict:
    return {"ids": [model.id for model in client.models.list()]}


def model(client) -> dict:
    found = client.models.retrieve(MODEL)
    return {"id": found.id, "object": found.object, "owner": found.owned_by}


def embeddings(client) -> dict:
    """The SDK asks for base64 by itself and decodes it."""
    answer = client.embeddings.create(model="embed", input=["a machine", "a ledger"])
    return {
        "sizes": [len(entry.embedding) for entry in answer.data],
        "numbers": all(isinstance(x, float) for entry in answer.data for x in entry.embedding),
        "usage": usage_of(answer),
    }


def headers(client) -> dict:
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=ASK, max_tokens=4)
    answer = raw.parse()
    return {
        "request_id": answer._request_id,
        "backend": raw.headers["x-breakeven-backend"],
        "cost": raw.headers["x-breakeven-cost-usd"],
    }


def bad_key(client) -> dict:
    return refused(client.with_options(api_key="gw_0000000000000000_" + "0" * 64))


def bad_request(client) -> dict:
    return refused(client, n=100)


def unknown_model(client) -> dict:
    return refused(client, model="nowhere")


def unknown_model_retrieved(client) -> dict:
    return caught(lambda: client.models.retrieve("nowhere"))


def over_budget(client) -> dict:
    """The SDK's own retries stay on: the gateway's header has to stop them."""
    poor = client.with_options(api_key=os.environ["POOR_KEY"], max_retries=2)
    return refused(poor)


def timeout(client) -> dict:
    impatient = client.with_options(timeout=0.4, max_retries=0)
    return refused(impatient, **LONG)


def refused(client, **changes) -> dict:
    given = {"model": MODEL, "messages": ASK, **changes}
    return caught(lambda: client.chat.completions.create(**given))


def caught(call) -> dict:
    """The class of what the SDK raised, and what it understood of the answer."""
    try:
        call()
    except openai.APIError as error:
        return {
            "raised": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "code": error.code,
            "type": error.type,
            "param": error.param,
            "request_id": getattr(error, "request_id", None),
        }
    return {"raised": None}


def abort(client) -> dict:
    """Read three chunks of a long answer and leave."""
    chunks = client.chat.completions.create(model=MODEL, messages=ASK, stream=True, **LONG)
    seen = 0
    for _ in chunks:
        seen += 1
        if seen == 3:
            break
    chunks.close()
    return {"seen": seen, "request_id": chunks.response.headers["x-request-id"]}


def asynchronous(_client) -> dict:
    """The async client, several streams at once on one connection pool."""

    async def one(client) -> int:
        chunks = await client.chat.completions.create(**streamed())
        return len([chunk async for chunk in chunks])

    async def all_of_them() -> list[int]:
        async with openai.AsyncOpenAI() as client:
            return await asyncio.gather(*(one(client) for _ in range(8)))

    return {"chunks": asyncio.run(all_of_them())}


CHECKS = (
    chat, completion, stream, stream_with_usage, stream_spilled, tools, tools_streamed, several,
    json_schema, logprobs, models, model, embeddings, headers, bad_key, bad_request, unknown_model,
    unknown_model_retrieved, over_budget, timeout, abort, asynchronous,
)  # fmt: skip


def main() -> None:
    client = openai.OpenAI()  # base URL and key from the environment, as people do
    wanted = sys.argv[1:] or [check.__name__ for check in CHECKS]
    found = {"sdk": version("openai")}
    for check in CHECKS:
        if check.__name__ in wanted:
            try:
                found[check.__name__] = check(client)
            except Exception:  # noqa: BLE001  (one broken check must not hide the others)
                found[check.__name__] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()
