"""A real client program of the Responses API with the official `openai` SDK, told as JSON.

    python responses_checks.py    reads OPENAI_BASE_URL, OPENAI_API_KEY and POOR_KEY

Nothing of the product is imported; every major of the SDK runs this very file.
"""

import asyncio
import json
import os
import sys
import traceback
from importlib.metadata import version

import openai
from pydantic import BaseModel

ASK = {"model": "chat", "input": "Name a machine.", "max_output_tokens": 12}
TOOL = {
    "type": "function",
    "name": "weather",
    "description": "Weather of a town",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"town": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["town", "days"],
        "additionalProperties": False,
    },
}
FORCED = {**ASK, "max_output_tokens": 100, "tools": [TOOL], "tool_choice": "required"}


class Part(BaseModel):
    name: str
    count: int


def seen(response) -> dict:
    usage = response.usage
    return {
        "object": response.object,
        "status": response.status,
        "text": response.output_text,
        "calls": [
            {"name": item.name, "arguments": json.loads(item.arguments), "call_id": item.call_id}
            for item in response.output
            if item.type == "function_call"
        ],
        "usage": {
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.input_tokens_details.cached_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        },
    }


def whole(client) -> dict:
    response = client.responses.create(**ASK, instructions="Be brief.")
    return {**seen(response), "request_id": response._request_id}


def streamed(client, **changes) -> dict:
    asked = {**ASK, "instructions": "Be brief.", **changes}
    events = client.responses.create(**asked, stream=True)
    request_id = events.response.headers["x-request-id"]
    kinds, text, last = [], "", None
    for event in events:
        kinds.append(event.type)
        if event.type == "response.output_text.delta":
            text += event.delta
        last = event
    return {**seen(last.response), "kinds": kinds, "deltas": text, "request_id": request_id}


def spilled(client) -> dict:
    return streamed(client, model="spilled")


def accumulated(client) -> dict:
    """The SDK's own folding of the events, which takes only an answer that came to its end."""
    with client.responses.stream(model=ASK["model"], input=ASK["input"]) as stream:
        return {
            "kinds": sorted({event.type for event in stream}),
            **seen(stream.get_final_response()),
        }


def tools(client) -> dict:
    return seen(client.responses.create(**FORCED))


def tools_streamed(client) -> dict:
    with client.responses.stream(**FORCED) as stream:
        kinds = [event.type for event in stream]
        deltas = kinds.count("response.function_call_arguments.delta")
        return {**seen(stream.get_final_response()), "parts": deltas}


def outputs(client) -> dict:
    """A function is called, its output goes back with all that was answered."""
    called = client.responses.create(**FORCED)
    call = called.output[0]
    turn = [{"type": "function_call_output", "call_id": call.call_id, "output": "rain"}]
    given = [{"role": "user", "content": ASK["input"]}, *called.output, *turn]
    return seen(client.responses.create(**{**ASK, "input": given, "tools": [TOOL]}))


def parsed(client) -> dict:
    answer = client.responses.parse(model="chat", input="A part?", text_format=Part)
    return {"document": answer.output_parsed.model_dump()}


def bad_key(client) -> dict:
    return refused(client.with_options(api_key="gw_0000000000000000_" + "0" * 64))


def bad_request(client) -> dict:
    return refused(client, max_output_tokens=0)


def kept(client) -> dict:
    return refused(client, previous_response_id="resp_1")


def unknown_model(client) -> dict:
    return refused(client, model="nowhere")


def over_budget(client) -> dict:
    """The SDK's own retries stay on: the gateway's header has to stop them."""
    return refused(client.with_options(api_key=os.environ["POOR_KEY"], max_retries=2))


def refused(client, **changes) -> dict:
    try:
        client.responses.create(**{**ASK, **changes})
    except openai.APIStatusError as error:
        return {
            "raised": type(error).__name__,
            "status": error.status_code,
            "code": error.code,
            "param": error.param,
            "request_id": error.request_id,
        }
    return {"raised": None}


def abort(client) -> dict:
    """Read some events of a long answer and leave."""
    long = {**ASK, "max_output_tokens": 4000, "extra_body": {"ignore_eos": True}}
    events = client.responses.create(**long, stream=True)
    kinds = [event.type for event, _ in zip(events, range(8), strict=False)]
    events.close()
    return {"kinds": kinds, "request_id": events.response.headers["x-request-id"]}


def asynchronous(_client) -> dict:
    async def one(client) -> str:
        events = await client.responses.create(**ASK, stream=True)
        return "".join([event.delta async for event in events if event.type.endswith(".delta")])

    async def all_of_them() -> list[str]:
        async with openai.AsyncOpenAI() as client:
            return await asyncio.gather(*(one(client) for _ in range(8)))

    return {"texts": asyncio.run(all_of_them())}


CHECKS = (
    whole, streamed, spilled, accumulated, tools, tools_streamed, outputs, parsed, bad_key,
    bad_request, kept, unknown_model, over_budget, abort, asynchronous,
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
