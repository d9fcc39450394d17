"""A picture is measured where its part can be read in one way, and no other is."""

import asyncio
import base64
import json
import struct
import zlib

import pytest

from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.kinds.chat_pictures import measure_pictures
from gateway.kinds.prompt_media import PictureSize


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def head(width: int, height: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))


def png(width: int = 30, height: int = 20) -> bytes:
    ends = chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + head(width, height) + ends


def url(data: bytes, media: str = "png") -> str:
    return f"data:image/{media};base64,{base64.b64encode(data).decode()}"


def part(data: bytes, **more) -> dict:
    return {"type": "image_url", "image_url": {"url": url(data), **more}}


def measured(*parts, **members):
    content = [{"type": "text", "text": "a"}, *parts]
    body = {"model": "m", "messages": [{"role": "user", "content": content}], **members}
    return measured_text(json.dumps(body).encode())


def measured_text(text: bytes):
    read = read_chat(decode_members(text), max_n=8, session=None)
    return asyncio.run(measure_pictures(read))


def test_pictures_have_their_size_detail_and_bytes() -> None:
    data = png(8, 9)
    asked = measured(part(png(), detail="low"), part(data))
    assert asked.pictures == (PictureSize(30, 20, "low"), PictureSize(8, 9))
    text = len(base64.b64encode(png())) + len(base64.b64encode(data))
    assert (asked.picture_bytes, asked.media_parts) == (text, 2)


def test_a_short_form_is_measured_and_one_of_two_is_enough() -> None:
    short = {"type": "image_url", "image_url": url(png())}
    asked = measured(short, part(b"no picture"))
    assert (asked.pictures, asked.media_parts) == ((PictureSize(30, 20),), 2)


@pytest.mark.parametrize(
    "other",
    [
        {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
        part(png() + png()),
        part(png(), max_pixels=99_999_999),
        {**part(png()), "min_pixels": 99_999_999},
        {**part(png()), "image": url(png(9_000, 9_000))},
        {"type": "image_url", "image_url": {"url": url(png()), "URL": url(png(9_000, 9_000))}},
        {"type": "image_url", "image_url": {"url": url(png()) + ",AAAA"}},
        {"type": "image_url", "image_url": {"url": url(png()) + "="}},
    ],
)
def test_what_may_be_read_in_two_ways_is_not_measured(other) -> None:
    assert measured(other).pictures == ()


@pytest.mark.parametrize("name", ["vl_high_resolution_images", "media_resolution", "acme"])
def test_a_member_that_may_change_how_a_picture_is_cut_leaves_it_unmeasured(name) -> None:
    assert measured(part(png())).pictures
    assert measured(part(png()), **{name: True}).pictures == ()


@pytest.mark.parametrize(
    "twice",
    [
        b'"image_url": {"url": "https://a/b.png"}, ',
        b'"\\u0069mage_url": {"url": "https://a/b.png"}, ',
    ],
)
def test_of_a_member_that_is_there_twice_nobody_knows_which_counts(twice) -> None:
    text = json.dumps({"model": "m", "messages": [{"role": "user", "content": [part(png())]}]})
    assert measured_text(text.encode()).pictures
    doubled = text.encode().replace(b'"image_url": {', twice + b'"image_url": {')
    assert measured_text(doubled).pictures == ()


def test_a_file_with_a_second_head_keeps_its_bytes() -> None:
    lying = png().replace(head(30, 20), head(1, 1) + head(9_000, 9_000))
    asked = measured(part(lying))
    assert (asked.pictures, asked.picture_bytes, asked.media_parts) == ((), 0, 1)


def test_words_of_two_vendors_add_up() -> None:
    """A target may read a part without a type, and one of another vendor."""
    untyped = {"image_url": {"url": "https://a.example/b.png"}}
    other = {"type": "image", "image": "https://a.example/b.png"}
    assert measured(untyped, other).media_parts >= 2
