"""Pictures of a prompt, which an honest provider counts by the public rule of its price."""

import struct
import zlib
from base64 import b64encode
from typing import Any

import msgspec
from adversary_answers import answered
from adversary_calls import AdversaryCall, AdversarySchedule
from adversary_prices import limit_pusd, terms
from adversary_usage import openai
from hypothesis import strategies as st

from ledger.prices.picture_tokens import RULES, most_picture_tokens, picture_tokens

SIDES = st.integers(1, 9_000)


def png(width: int, height: int) -> str:
    """A picture of one colour, whose few bytes have as many pixels as are asked for."""

    def chunk(name: bytes, body: bytes) -> bytes:
        ends = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + ends

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", b"x") + chunk(b"IEND", b"")
    return f"data:image/png;base64,{b64encode(data).decode()}"


def picture_by_rule(asked: Any) -> Any:
    """Pictures of any size, counted as the price's rule says; one beside may have no known size."""

    @st.composite
    def made(draw: Any) -> AdversarySchedule:
        rule = draw(st.sampled_from(sorted(RULES)))
        price = msgspec.structs.replace(draw(terms()), image_rule=rule)
        calls = draw(st.lists(pictured(rule, asked), min_size=1, max_size=3))
        part = None if draw(st.booleans()) else draw(st.floats(0, 1))
        return AdversarySchedule(price, limit_pusd(price, calls, part=part), tuple(calls))

    return made()


@st.composite
def pictured(draw: Any, rule: str, text_calls: Any) -> AdversaryCall:
    body, one = draw(text_calls)
    sides = draw(st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=3))
    detail = draw(st.sampled_from(("low", "high", "auto")))
    parts: list[dict[str, Any]] = [{"type": "text", "text": body["messages"][0]["content"]}]
    parts += [
        {"type": "image_url", "image_url": {"url": png(*size), "detail": detail}} for size in sides
    ]
    read = sum(picture_tokens(rule, *size, detail=detail) for size in sides)
    if draw(st.booleans()):  # in a format that is not read here: of any size that its rule knows
        unread = {"type": "image_url", "image_url": {"url": "data:image/avif;base64,AAAA"}}
        parts.append(unread)
        read += most_picture_tokens(rule) or draw(st.integers(1, 5_000))
    asked = {**body, "messages": [{"role": "user", "content": parts}]}
    seen = msgspec.structs.replace(one, input=one.input + read)
    return answered(asked, seen, openai(seen))
