"""A chat server that makes its client run a tool, and then says what the tool said.

It answers an API's chat completions and embeddings by the request alone, so that whatever client
comes has the same two turns: after a user's words it calls the first tool that it knows how to
use, after a tool's result it tells the result. Its counts are figures of the bytes it got, told in
`usage`, and `asked` keeps what came, for tests that want to see it.
"""

import base64
import json
import re
import struct
from typing import Any

from backends.simulator.scripts import instance
from deploy.upstream_server import UpstreamServer

SAID = "The tool said: "
MARK = "breakeven-loop"  # what the tool is made to say
PLAIN = "Nothing to run here."
CACHED = 16
# Tools of clients that are made to say the mark; the first that is offered is used.
SHELL = re.compile(
    r"(?i)(bash|shell|execute_command|exec_command|run_commands?|terminal|cmd|__exec$)"
)
WEATHER = re.compile(r"(?i)weather")
TOLD_AS_TEXT = "Observation:"  # how a client that has no role for a result begins it
COMMAND = f"echo {MARK}"
ANSWERS = re.compile(r"(?i)(final_?answer|final_result|return_|structured_?output|submit|Part$)")


def decide(body: dict[str, Any]) -> tuple[str | None, str]:
    """Name of the tool and its arguments, or None and the text."""
    messages = body.get("messages") or []
    tools = {
        tool["function"]["name"]: tool["function"].get("parameters") or {}
        for tool in body.get("tools") or [] if tool.get("type") == "function"
    }  # fmt: skip
    results = results_of(messages)
    chosen = body.get("tool_choice")
    if isinstance(chosen, dict):
        name = (chosen.get("function") or {}).get("name")
        if name in tools:
            return name, json.dumps(arguments_of(name, tools[name], results))
    if chosen != "none" and tools:
        usable = [name for name in tools if WEATHER.search(name)]
        usable += [name for name in tools if SHELL.search(name)]
        ends = [name for name in tools if ANSWERS.search(name)]
        wanted = ends[:1] if results or not usable else usable[:1]
        wanted = wanted or (list(tools)[:1] if chosen == "required" else [])
        if wanted:
            return wanted[0], json.dumps(arguments_of(wanted[0], tools[wanted[0]], results))
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        return None, json.dumps(instance(form["json_schema"].get("schema") or {}))
    if form.get("type") == "json_object":
        return None, json.dumps({"name": "simulated", "count": 0})
    return None, f"{SAID}{results[-1]}" if results else PLAIN


def results_of(messages: list[dict]) -> list[str]:
    """What tools said since the last words of the user."""
    found: list[str] = []
    for message in messages:
        text = text_of(message.get("content")).strip()
        if message.get("role") == "tool" or text.startswith(TOLD_AS_TEXT):
            found.append(text.removeprefix(TOLD_AS_TEXT).strip()[:400])
    return found


def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content or ""


def arguments_of(name: str, schema: dict, results: list[str]) -> dict[str, Any]:
    """What its schema requires; a command is one that says the mark."""
    made = instance(schema) if schema.get("properties") else {}
    properties = schema.get("properties") or {}
    for key, form in properties.items():
        if key in {"command", "shell_command", "cmd", "script", "code"}:
            listed = form.get("type") == "array"
            made[key] = ["bash", "-c", COMMAND] if listed else COMMAND
        elif key == "commands":
            made[key] = [COMMAND] if form.get("type") == "array" else COMMAND
        elif key in {"answer", "final_answer", "result"} and results:
            made[key] = f"{SAID}{results[-1]}"
        elif key in {"timeout", "timeout_ms", "yield_time_ms"} and key in made:
            made[key] = 10000
        elif key == "town":
            made[key] = "Ghent"
        elif key == "input" and name.endswith("exec"):
            made[key] = f'text("{MARK}")'  # Codex' tool runs JavaScript
    return made


def usage_of(body: dict[str, Any], answer: str) -> dict[str, Any]:
    prompt = 2 * CACHED + len(json.dumps(body.get("messages"))) // 4
    output = 1 + len(answer) // 4
    return {
        "prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": CACHED},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip


def whole(body: dict[str, Any], number: int) -> dict[str, Any]:
    tool, text = decide(body)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if tool is not None:
        call = {"id": f"call_{number}", "type": "function",
                "function": {"name": tool, "arguments": text}}  # fmt: skip
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "logprobs": None,
              "finish_reason": "stop" if tool is None else "tool_calls"}  # fmt: skip
    return {
        "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "choices": [choice],
        "model": body["model"], "usage": usage_of(body, text),
    }  # fmt: skip


def streamed(body: dict[str, Any], answer: dict[str, Any]) -> list[bytes]:
    """The same answer in pieces, with what follows it."""
    message, reason = answer["choices"][0]["message"], answer["choices"][0]["finish_reason"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for call in message.get("tool_calls") or []:
        text = call["function"]["arguments"]
        head = {**call, "index": 0, "function": {"name": call["function"]["name"], "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": text[at : at + 9]}}]}
            for at in range(0, len(text), 9)
        ]
    text = message["content"] or ""
    deltas += [{"content": text[at : at + 9]} for at in range(0, len(text), 9)]
    head = {key: answer[key] for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
              for delta in deltas]  # fmt: skip
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": answer["usage"]})
    return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]


def embedded(body: dict[str, Any]) -> dict[str, Any]:
    given = body["input"] if isinstance(body["input"], list) else [body["input"]]
    given = [given] if given and isinstance(given[0], int) else given
    vectors: list[Any] = [[0.5, 0.25, -0.125, 1.0] for _ in given]
    if body.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack("<4f", *vector)).decode() for vector in vectors]
    data = [{"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)]  # fmt: skip
    tokens = 8 * len(given)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}


class LoopUpstream(UpstreamServer):
    """The server, in a thread of its own, at `port`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []
        self.billed: list[tuple[int, int]] = []  # tokens of prompt and answer, by request

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        data, more = b"", True
        while more:
            event = await receive()
            data, more = data + event.get("body", b""), event.get("more_body", False)
        body = json.loads(data)
        self.asked.append(body)
        kind, answer = (
            b"application/json",
            whole(body, len(self.asked)) if "messages" in body else {},
        )
        if scope["path"].endswith("/embeddings"):
            answer = embedded(body)
            pieces = [json.dumps(answer).encode()]
        elif body.get("stream"):
            kind, pieces = b"text/event-stream", streamed(body, answer)
        else:
            pieces = [json.dumps(answer).encode()]
        usage = answer["usage"]
        self.billed.append((usage["prompt_tokens"], usage.get("completion_tokens", 0)))
        await send({"type": "http.response.start", "status": 200,
                    "headers": [(b"content-type", kind)]})  # fmt: skip
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
