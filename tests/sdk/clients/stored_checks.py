"""A real client program of stored answers with the official `openai` SDK, told as JSON.

    python stored_checks.py    reads OPENAI_BASE_URL and OPENAI_API_KEY

Each check opens a connection of its own for every request, so that any worker may answer the next.
"""

import json
import sys
import time
import traceback

import httpx
import openai

ASK = {"model": "chat", "input": "Name a machine.", "max_output_tokens": 16}
WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
PATCH = {"type": "custom", "name": "patch", "description": "Edit files."}
TURNS = 12


def chain(client) -> dict:
    response, sizes = client.responses.create(**ASK), []
    for _ in range(TURNS):
        response = client.responses.create(
            **{**ASK, "input": "Another."}, previous_response_id=response.id
        )
        sizes.append(response.usage.input_tokens)
    return {"grows": sizes == sorted(sizes) and sizes[0] < sizes[-1], "turns": len(sizes)}


def streamed_chain(client) -> dict:
    events = list(client.responses.create(**ASK, stream=True))
    first = events[-1].response
    with client.responses.stream(**ASK, previous_response_id=first.id) as stream:
        second = list(stream)[-1].response
    return {"store": first.store, "previous": second.previous_response_id == first.id}


def references(client) -> dict:
    first = client.responses.create(
        **{**ASK, "max_output_tokens": 100}, tools=[WEATHER], tool_choice="required"
    )
    call = next(item for item in first.output if item.type == "function_call")
    second = client.responses.create(
        model="chat",
        max_output_tokens=16,
        input=[
            {"type": "item_reference", "id": call.id},
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
        ],
    )
    third = client.responses.create(
        model="chat",
        max_output_tokens=16,
        previous_response_id=second.id,
        input="And?",
    )
    return {"status": third.status}


def retrieved(client) -> dict:
    made = client.responses.create(**ASK, metadata={"a": "b"})
    found = client.responses.retrieve(made.id)
    items = list(client.responses.input_items.list(made.id))
    events = list(client.responses.retrieve(made.id, stream=True))
    client.responses.delete(made.id)
    try:
        client.responses.retrieve(made.id)
        gone = False
    except openai.NotFoundError:
        gone = True
    return {
        "same": found == made,
        "items": [item.content[0].text for item in items],
        "last": events[-1].type,
        "gone": gone,
    }


def conversation(client) -> dict:
    made = client.conversations.create(
        metadata={"topic": "x"}, items=[{"type": "message", "role": "user", "content": "I am Ada."}]
    )
    client.responses.create(**ASK, conversation=made.id)
    items = [item.id for item in client.conversations.items.list(made.id, order="asc", limit=2)]
    one = client.conversations.items.retrieve(items[0], conversation_id=made.id)
    client.conversations.items.create(
        made.id, items=[{"type": "message", "role": "user", "content": "More."}]
    )
    client.conversations.items.delete(items[0], conversation_id=made.id)
    changed = client.conversations.update(made.id, metadata={"topic": "y"})
    left = len(list(client.conversations.items.list(made.id)))
    deleted = client.conversations.delete(made.id).deleted
    return {
        "items": len(items), "first": one.content[0].text, "left": left,
        "topic": changed.metadata["topic"], "deleted": deleted,
    }  # fmt: skip


def background(client) -> dict:
    made = client.responses.create(**ASK, background=True)
    first = made.status
    while made.status in ("queued", "in_progress"):
        time.sleep(0.05)
        made = client.responses.retrieve(made.id)
    long = client.responses.create(model="chat", input="x", max_output_tokens=4000, background=True)
    cancelled = client.responses.cancel(long.id)
    return {"first": first, "last": made.status, "cancelled": cancelled.status}


def compacted(client) -> dict:
    first = client.responses.create(**ASK)
    short = client.responses.compact(model="chat", previous_response_id=first.id)
    output = [item.model_dump(exclude_none=True) for item in short.output]
    client.responses.create(**{**ASK, "input": [*output, {"role": "user", "content": "On."}]})
    return {"object": short.object, "types": [item.type for item in short.output]}


def counted(client) -> dict:
    alone = client.responses.input_tokens.count(model="chat", input="Another.")
    first = client.responses.create(**ASK)
    more = client.responses.input_tokens.count(
        model="chat", input="Another.", previous_response_id=first.id
    )
    return {"grows": more.input_tokens > alone.input_tokens, "object": alone.object}


def custom_tools(client) -> dict:
    asked = {**ASK, "max_output_tokens": 100, "tools": [PATCH], "tool_choice": "required"}
    whole = client.responses.create(**asked)
    events = list(client.responses.create(**asked, stream=True))
    call = next(item for item in whole.output if item.type == "custom_tool_call")
    told = "".join(e.delta for e in events if e.type == "response.custom_tool_call_input.delta")
    output = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "done"}
    after = client.responses.create(
        **{**ASK, "input": [output]}, previous_response_id=whole.id, tools=[PATCH]
    )
    return {"name": call.name, "same": told == call.input, "after": after.status}


def chat(client) -> dict:
    messages = [{"role": "user", "content": "Name a machine."}]
    made = client.chat.completions.create(
        model="chat", messages=messages, max_tokens=8, store=True, metadata={"a": "b"}
    )
    found = client.chat.completions.retrieve(made.id)
    asked = list(client.chat.completions.messages.list(made.id))
    listed = [item.id for item in client.chat.completions.list(metadata={"a": "b"})]
    changed = client.chat.completions.update(made.id, metadata={"a": "c"})
    deleted = client.chat.completions.delete(made.id).deleted
    return {
        "text": found.choices[0].message.content == made.choices[0].message.content,
        "asked": asked[0].content, "listed": made.id in listed,
        "changed": changed.metadata, "deleted": deleted,
    }  # fmt: skip


CHECKS = (
    chain, streamed_chain, references, retrieved, conversation, background, compacted, counted,
    custom_tools, chat,
)  # fmt: skip


def main() -> None:
    limits = httpx.Limits(max_keepalive_connections=0)
    client = openai.OpenAI(max_retries=0, http_client=httpx.Client(limits=limits, trust_env=False))
    told = {}
    for check in CHECKS:
        try:
            told[check.__name__] = check(client)
        except Exception:  # noqa: BLE001  (whatever breaks is told)
            told[check.__name__] = {"failed": traceback.format_exc()[-2000:]}
    json.dump(told, sys.stdout)


main()
