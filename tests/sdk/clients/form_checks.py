"""Judges answers by the types of the SDK that is installed: told as JSON.

    python form_checks.py    reads ANSWERS: a file of [{"client", "path", "text"}]

An answer is one document, or events of a stream. Nothing of the product is imported.
"""

# ruff: noqa: PLC0415  (it has the one SDK or the other)

import array
import base64
import json
import os
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError


def kinds() -> dict[str, tuple[Any, Any]]:
    """Types of a whole answer and of an event, by path."""
    try:
        from openai.types import CreateEmbeddingResponse
        from openai.types.chat import ChatCompletion, ChatCompletionChunk
        from openai.types.responses import Response, ResponseStreamEvent
    except ImportError:
        from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent
        from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent

        return {
            "/v1/messages": (
                BetaMessage | Message,
                RawMessageStreamEvent | BetaRawMessageStreamEvent,
            ),
            "/v1/messages/count_tokens": (MessageTokensCount, None),
        }
    return {
        "completions": (ChatCompletion, ChatCompletionChunk),
        "responses": (Response, ResponseStreamEvent),
        "embeddings": (CreateEmbeddingResponse, None),
    }


def documents(text: str) -> tuple[list[Any], bool]:
    """What an answer says, and whether it is a stream."""
    if text.lstrip().startswith("{"):
        return [json.loads(text)], False
    lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"], True


def decode_vectors(document: Any) -> None:
    """Puts numbers in place of vectors that were asked for as base64, as the SDK does."""
    for item in document.get("data") or []:
        if isinstance(item.get("embedding"), str):
            packed = base64.b64decode(item["embedding"], validate=True)
            item["embedding"] = array.array("f", packed).tolist()


def main() -> None:
    known = kinds()
    adapters: dict[Any, TypeAdapter] = {}
    wrong, judged = [], 0
    for given in json.loads(Path(os.environ["ANSWERS"]).read_text(encoding="utf-8")):
        path = given["path"]
        kind = known.get(path) or known[path.rstrip("/").rpartition("/")[2]]
        found, streams = documents(given["text"])
        if not found:
            wrong.append(f"{given['client']} {path}: empty")
        for document in found:
            judged += 1
            if document == {"type": "ping"}:  # not in the SDK's types, and its documents have it
                continue
            form = kind[streams]
            adapter = adapters.setdefault(str(form), TypeAdapter(form))
            try:
                if path.endswith("/embeddings"):
                    decode_vectors(document)
                adapter.validate_python(document)
            except ValidationError as error:
                wrong.append(f"{given['client']} {path}: {error.errors()[:3]}"[:600])
            except ValueError as error:  # neither base64 nor whole numbers of four bytes
                wrong.append(f"{given['client']} {path}: {error}"[:600])
    print(json.dumps({"judged": judged, "wrong": wrong}))


main()
