"""Pictures of a prompt, which an honest provider counts as its own documentation says."""

import struct
import zlib
from base64 import b64encode
from typing import Any

import msgspec
from adversary_answers import answered
from adversary_calls import AdversaryCall, AdversarySchedule
from adversary_picture_bills import BILLS, DEAREST
from adversary_prices import limit_pusd, terms
from adversary_usage import openai
from hypothesis import strategies as st

SIDES = st.integers(1, 9_000)
SIZES = st.sampled_from((60, 60, 60, 200_000, 400_000))  # bytes of data: of a drawing, of a photo
TAILS = st.sampled_from((b"", b"\n", b"\0" * 64 + b"SEFT", b"preview"))
# What cannot be measured here: formats, and members that cut a picture otherwise.
UNREAD = st.sampled_from(("avif", "cut", "lines"))


def png(width: int, height: int, size: int = 1) -> bytes:
    """A picture with as many pixels as are asked for, whatever its data are."""

    def chunk(name: bytes, body: bytes) -> bytes:
        ends = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + ends

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", b"x" * size) + chunk(b"IEND", b"")


def jpeg(width: int, height: int, size: int = 1) -> bytes:
    frame = b"\xff\xc0\x00\x0b\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\x00"
    scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + b"\x51\xff\x00\x93" * (size // 4)
    return b"\xff\xd8" + frame + scan + b"\xff\xd9"


def url(data: bytes, media: str = "png") -> str:
    return f"data:image/{media};base64,{b64encode(data).decode()}"


def picture_by_rule(asked: Any) -> Any:
    """Pictures of any size and weight, as phones and clients send them; one may be unmeasured."""

    @st.composite
    def made(draw: Any) -> AdversarySchedule:
        rule = draw(st.sampled_from(sorted(BILLS)))
        price = msgspec.structs.replace(draw(terms()), image_rule=rule)
        calls = draw(st.lists(pictured(rule, asked), min_size=1, max_size=2))
        part = None if draw(st.booleans()) else draw(st.floats(0, 1))
        return AdversarySchedule(price, limit_pusd(price, calls, part=part), tuple(calls))

    return made()


@st.composite
def pictured(draw: Any, rule: str, text_calls: Any) -> AdversaryCall:
    body, one = draw(text_calls)
    detail = draw(st.sampled_from(("low", "high", "auto")))
    sides = draw(st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=2))
    parts: list[dict[str, Any]] = [{"type": "text", "text": body["messages"][0]["content"]}]
    parts += [draw(measurable(width, height, detail)) for width, height in sides]
    read = sum(BILLS[rule](*size, detail) for size in sides)
    if draw(st.booleans()):
        parts.append(unread_part(draw(UNREAD), draw(SIZES)))
        read += draw(st.integers(1, DEAREST[rule]))
    asked = {**body, "messages": [{"role": "user", "content": parts}]}
    seen = msgspec.structs.replace(one, input=one.input + read)
    return answered(asked, seen, openai(seen))


@st.composite
def measurable(draw: Any, width: int, height: int, detail: str) -> dict[str, Any]:
    """A part as clients write it, with what phones leave behind a picture."""
    size, tail = draw(SIZES), draw(TAILS)
    if draw(st.booleans()):
        behind = jpeg(max(1, width // 9), max(1, height // 9), 40) if tail == b"preview" else tail
        address = url(jpeg(width, height, size) + behind, "jpeg")
    else:
        address = url(png(width, height, size) + (b"" if tail == b"preview" else tail))
    given = {"url": address, "detail": detail} | draw(
        st.sampled_from(({}, {"format": "image/png"}))
    )
    marks = draw(st.sampled_from(({}, {"cache_control": {"type": "ephemeral"}})))
    return {"type": "image_url", "image_url": given, **marks}


def unread_part(kind: str, size: int) -> dict[str, Any]:
    if kind == "avif":
        address = url(b"\0\0\0\x1cftypavif" + b"a" * size, "avif")
        return {"type": "image_url", "image_url": {"url": address}}
    if kind == "cut":
        return {"type": "image_url", "image_url": {"url": url(png(9, 9, size)), "max_pixels": 9}}
    return {"type": "image_url", "image_url": {"url": url(png(9, 9, size)) + "\n"}}
