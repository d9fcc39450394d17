"""Images without a model: one grey pixel each, with matching token counts or an address.

A model with `gpt-image` in its name counts tokens and streams partial images. Any other answers
with an address, or with base64 if requested, and counts nothing.
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from backends.simulator import words
from backends.simulator.dialect import RefusedError, SimulatedRules, decode, model_of
from backends.simulator.transcripts import read_form

TOKENS: Final = {"low": 272, "medium": 1056, "high": 4160}
PARTIAL_TOKENS: Final = 100
IMAGE_TOKENS: Final = 323  # of a picture that is sent
MOST: Final = 10
PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c63f80f00010101001bb6ee56"
    "0000000049454e44ae426082"
)


@dataclass(frozen=True, slots=True)
class PictureOrder:
    model: str
    prompt: str
    n: int
    quality: str
    size: str
    stream: bool
    partial: int
    as_base64: bool = False  # instead of an address
    images: int = 0  # that were sent
    event: str = "image_generation"

    @property
    def counts_tokens(self) -> bool:
        return "gpt-image" in self.model

    @property
    def usage(self) -> dict[str, Any]:
        text, seen = words.count(self.prompt.encode()), self.images * IMAGE_TOKENS
        read = text + seen
        shown = self.partial if self.stream else 0
        made = self.n * (TOKENS[self.quality] + shown * PARTIAL_TOKENS)
        return {
            "input_tokens": read,
            "input_tokens_details": {"text_tokens": text, "image_tokens": seen},
            "output_tokens": made,
            "total_tokens": read + made,
        }


def parse_pictures(body: bytes, rules: SimulatedRules) -> PictureOrder:
    fields = decode(body)
    prompt, n = fields.get("prompt"), fields.get("n") or 1
    if not isinstance(prompt, str) or not prompt:
        raise RefusedError("validation", "Field required: prompt", "prompt")
    if not isinstance(n, int) or not 1 <= n <= MOST:
        raise RefusedError("validation", f"n must be between 1 and {MOST}", "n")
    quality, size = fields.get("quality"), fields.get("size")
    return PictureOrder(
        model=model_of(fields, rules),
        prompt=prompt,
        n=n,
        quality=quality if quality in TOKENS else "high",
        size="1024x1024" if size in (None, "auto") else str(size),
        stream=fields.get("stream") is True,
        partial=fields.get("partial_images") or 0,
        as_base64=fields.get("response_format") == "b64_json",
    )


def parse_edit(body: bytes, rules: SimulatedRules) -> PictureOrder:
    """Read a form, whose boundary is taken from its first line."""
    boundary = body[2 : max(2, body.find(b"\r\n"))].decode("latin-1")
    fields, files = read_form(body, f'multipart/form-data; boundary="{boundary}"')
    if not files:
        raise RefusedError("validation", "Field required: image", "image")
    members: dict[str, Any] = {
        **fields,
        "n": int(fields.get("n") or 1),
        "stream": fields.get("stream") == "true",
        "partial_images": int(fields.get("partial_images") or 0),
    }
    order = parse_pictures(msgspec.json.encode(members), rules)
    return replace(order, images=body.count(b"filename="), event="image_edit")


def picture_answer(order: PictureOrder, created: int) -> bytes:
    data = b64encode(PNG).decode()
    if not order.counts_tokens:
        shown = [
            {"b64_json": data}
            if order.as_base64
            else {"url": f"https://example.invalid/{place}.png"}
            for place in range(order.n)
        ]
        return msgspec.json.encode({"created": created, "data": shown})
    answer = {
        "created": created,
        "background": "opaque",
        "output_format": "png",
        "quality": order.quality,
        "size": order.size,
        "data": [{"b64_json": data} for _ in range(order.n)],
        "usage": order.usage,
    }
    return msgspec.json.encode(answer)


def picture_events(order: PictureOrder, created: int) -> Iterator[bytes]:
    shared = {
        "b64_json": b64encode(PNG).decode(), "created_at": created, "size": order.size,
        "quality": order.quality, "background": "opaque", "output_format": "png",
    }  # fmt: skip
    for place in range(order.n):
        for index in range(order.partial):
            yield _event(f"{order.event}.partial_image", {**shared, "partial_image_index": index})
        last = {"usage": order.usage} if place == order.n - 1 else {}
        yield _event(f"{order.event}.completed", {**shared, **last})


def _event(kind: str, value: dict[str, Any]) -> bytes:
    return (
        f"event: {kind}\ndata: ".encode() + msgspec.json.encode({"type": kind, **value}) + b"\n\n"
    )
