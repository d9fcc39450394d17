"""Requests as clients send them, with the answers of an upstream in bytes, whole or streamed."""

import json
from typing import Any

from adversary_calls import AdversaryCall
from adversary_usage import Usage

from ledger.journals.records import TokenCounts

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
WORD = "word "
EVENTS = "text/event-stream"
# What providers quote, sign and ran beside an answer: no token of it was made.
QUOTED: dict[str, Any] = {
    "annotations": [{"type": "url_citation", "url_citation": {"content": "page " * 9_000}}],
    "context": {"citations": [{"content": "page " * 9_000}]},
    "executed_tools": [{"output": "page " * 9_000}],
    "thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "A" * 9_000}],
}


def answered(
    body: dict[str, Any],
    made: TokenCounts,
    usage: Usage | None,
    *,
    at: str = "last",
    path: str = CHAT,
    before: str = "",
    **call: Any,
) -> AdversaryCall:
    """The call whose upstream says what was made, with its usage where `at` says."""
    n = body.get("n", 1) * (len(body["prompt"]) if isinstance(body.get("prompt"), list) else 1)
    said = made.plain_output // n
    pieces, media = (whole(path, n, said, usage, at, before),), "application/json"
    if body.get("stream"):
        pieces, media = stream(path, n, said, usage, at, before), EVENTS
    call = {"made": made, "media_type": media, **call}
    return AdversaryCall(path, json.dumps(body).encode(), pieces, **call)


def whole(
    path: str, n: int, said: int, usage: Usage | None, at: str = "last", before: str = ""
) -> bytes:
    """`before`: text of the prompt that each answer begins with."""
    choices = [choice(path, index, "message", before + WORD * said, "stop") for index in range(n)]
    if at == "inside":
        choices[-1]["usage"] = usage
    if at in ("message", "quoted"):
        words = choices[-1].get("message", choices[-1])
        words |= {"usage": usage} if at == "message" else QUOTED
    groq = {"x_groq": {"id": "r", "usage": usage}} if at == "groq" else {}
    told = usage if at not in ("inside", "groq", "message", "metadata") else None
    groq |= {"usageMetadata": usage} if at == "metadata" else {}
    return json.dumps({"id": "c", "choices": choices, "usage": told, **groq}).encode()


def stream(
    path: str, n: int, said: int, usage: Usage | None, at: str, before: str = ""
) -> tuple[bytes, ...]:
    """Words in up to four events a choice, finishes, usage, `[DONE]`."""
    events = [event(choice(path, index, "delta", before)) for index in range(n) if before]
    if at == "first":
        begun = {"completion_tokens": 1, "completion_tokens_details": None, "total_tokens": None}
        events.append(event(usage={**(usage or {}), **begun}))
    if at == "parts":
        begun = {name: count for name, count in (usage or {}).items() if "prompt" in name}
        events.append(event(usage={**begun, "completion_tokens": 1}))
    if at == "quoted":
        events.append(event({"index": 0, "delta": QUOTED, "finish_reason": None}))
    running = {"usage": usage} if at in ("running", "words") else {}
    for part in filter(None, [said // 4] * 3 + [said - 3 * (said // 4)]):
        said_now = [choice(path, index, "delta", WORD * part) for index in range(n)]
        events += [event(spoken_part, **running) for spoken_part in said_now]
    for index in range(n):
        last = index == n - 1
        end = choice(path, index, "delta", "", "stop")
        end |= {"usage": usage} if at == "inside" and last else {}
        end |= {"delta": {"usage": usage}} if at == "message" and last else {}
        events.append(event(end, **({"usage": usage} if at == "beside" and last else {})))
    if at == "groq":
        events.append(event(x_groq={"id": "r", "usage": usage}))
    if at == "metadata":
        events.append(event(usageMetadata=usage))
    if usage is not None and at in ("last", "running", "first", "twice", "quoted"):
        events.append(event(usage=usage))
    if at == "twice":
        events.append(event(usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}))
    if at == "parts":
        ended = {name: count for name, count in (usage or {}).items() if "completion" in name}
        events.append(event(usage=ended))
    if at == "unended":
        return (*events, event(usage=usage).rstrip())
    behind = (event(usage=usage),) if at == "behind" else ()
    return (*events, b"data: [DONE]\n\n", *behind)


def choice(path: str, index: int, member: str, text: str, finish: str | None = None) -> Usage:
    said = {"text": text} if path == COMPLETION else {member: {"content": text}}
    return {"index": index, **said, "finish_reason": finish}


def event(*choices: Usage, **members: Any) -> bytes:
    return b"data: " + json.dumps({"id": "c", "choices": choices, **members}).encode() + b"\n\n"


def embedding(words: int, usage: Usage, **call: Any) -> AdversaryCall:
    members = call.pop("members", {})
    body = {"model": "up/m", "input": WORD * words, **members}
    answer = {"object": "list", "data": [{"index": 0, "embedding": [0.5]}], "usage": usage}
    pieces = (json.dumps(answer).encode(),)
    return AdversaryCall("/v1/embeddings", json.dumps(body).encode(), pieces, **call)


def embeddings(words: list[int], usage: Usage, **call: Any) -> AdversaryCall:
    """A list of texts, each of so many words."""
    body = {"model": "up/m", "input": [WORD * count for count in words]}
    data = [{"index": index, "embedding": [0.5]} for index in range(len(words))]
    answer = {"object": "list", "data": data, "usage": usage}
    pieces = (json.dumps(answer).encode(),)
    return AdversaryCall("/v1/embeddings", json.dumps(body).encode(), pieces, **call)


def false_embedding(words: int, prompt: int, **call: Any) -> AdversaryCall:
    least = TokenCounts(input=words * len(WORD) // 128)
    return embedding(words, {"prompt_tokens": prompt}, made=None, is_lie=True, least=least, **call)


def ranking(
    documents: int, units: int, *, words: int = 0, usage: Usage | None = None, **call: Any
) -> AdversaryCall:
    """`words` of each document; `usage` stands in place of Cohere's `units`."""
    body = {"model": "up/m", "query": "q", "documents": [WORD * words or "a"] * documents}
    body |= call.pop("members", {})
    billed = {"meta": {"billed_units": {"search_units": units}}} if usage is None else {}
    answer = {
        "results": [{"index": 0, "relevance_score": 0.5}],
        **(billed or {"usage": usage}),
    }
    pieces = (json.dumps(answer).encode(),)
    return AdversaryCall("/v1/rerank", json.dumps(body).encode(), pieces, **call)


def transcript(seconds: int, claimed: float, **call: Any) -> AdversaryCall:
    usage = {"type": "duration", "seconds": claimed}
    return heard(seconds, {"text": "hi", "usage": usage}, **call)


def heard(
    seconds: int, answer: Usage, *, stream: tuple[bytes, ...] = (), **call: Any
) -> AdversaryCall:
    """Of a true WAV of mu-law at 50 Hz; `stream`: its events, in place of the `answer`."""
    size = seconds * 50
    head = b"RIFF" + (36 + size).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    head += bytes.fromhex("07000100") + (50).to_bytes(4, "little") * 2 + bytes.fromhex("01000800")
    sound = head + b"data" + size.to_bytes(4, "little") + b"\x7f" * size
    file = b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + sound
    model = b'\r\n--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nup/m\r\n--x'
    if stream:
        model += b'\r\ncontent-disposition: form-data; name="stream"\r\n\r\ntrue\r\n--x'
        call["media_type"] = EVENTS
    return AdversaryCall(
        "/v1/audio/transcriptions", file + model + b"--\r\n",
        stream or (json.dumps(answer).encode(),),
        content_type="multipart/form-data; boundary=x", **call,
    )  # fmt: skip
