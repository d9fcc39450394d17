"""A picture is measured where its part can be read in one way, and no other is."""

import asyncio
import base64
import json
import struct
import zlib

import pytest

from gateway.http.body import decode_members
from gateway.kinds import chat_pictures
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
    text = base64_bytes(png()) + base64_bytes(data)
    assert (asked.picture_bytes, asked.media_parts) == (text, 2)


def test_a_short_form_is_measured_and_one_of_two_is_enough() -> None:
    short = {"type": "image_url", "image_url": url(png())}
    asked = measured(short, part(b"no picture"))
    assert (asked.pictures, asked.media_parts) == ((PictureSize(30, 20),), 2)


def base64_bytes(data: bytes) -> int:
    return len(base64.b64encode(data))


JPEG = b"\xff\xd8\xff\xdb\x00\x02\xff\xc0\x00\x08\x08\x00\x14\x00\x1e\x01\xff\xda\x00\x02a\xff\xd9"
UNREAD = {
    "no picture": part(b"no picture"),
    "two files": part(png() + png()),
    "more pixels": part(png(), max_pixels=99_999_999),
    "more pixels beside": {**part(png()), "min_pixels": 99_999_999},
    "another beside": {**part(png()), "image": url(png(9_000, 9_000))},
    "another spelling": {
        "type": "image_url",
        "image_url": {"url": url(png()), "URL": url(png(90, 9))},
    },
    "another behind": {"type": "image_url", "image_url": {"url": url(png()) + ",AAAA"}},
    "padding": {"type": "image_url", "image_url": {"url": url(png()) + "="}},
    "lines": {"type": "image_url", "image_url": {"url": url(png()) + "\n"}},
    "avif": part(b"\0\0\0\x1cftypavif" + b"a" * 90_000),
}


@pytest.mark.parametrize("name", UNREAD)
def test_data_of_unknown_size_are_no_text_either(name) -> None:
    """A photo's bytes were held as its tokens: a million of them."""
    asked = measured(UNREAD[name])
    assert (asked.pictures, asked.unread_pictures) == ((), 1)
    data = json.dumps(UNREAD[name]["image_url"]["url"].partition(";base64,")[2])
    assert abs(asked.picture_bytes - (len(data) - 2)) <= data.count("\\")


def test_an_address_has_no_data() -> None:
    asked = measured({"type": "image_url", "image_url": {"url": "https://a.example/b.png"}})
    assert (asked.pictures, asked.picture_bytes, asked.unread_pictures) == ((), 0, 0)


@pytest.mark.parametrize(
    "same",
    [
        {**part(png()), "cache_control": {"type": "ephemeral"}},
        part(png(), format="image/png"),
        part(JPEG + b"\n"),
        part(JPEG + b"\0\0SEFT"),
    ],
)
def test_what_changes_no_tokens_leaves_a_picture_its_size(same) -> None:
    assert measured(same).pictures == (PictureSize(30, 20),)


def test_a_second_picture_in_a_file_is_kept() -> None:
    asked = measured(part(JPEG + JPEG.replace(b"\x00\x14\x00\x1e", b"\x00\x02\x00\x03")))
    assert asked.pictures == (PictureSize(30, 20, "", ((3, 2),)),)


def test_escaped_slashes_of_the_data_are_no_text_either() -> None:
    """As PHP writes JSON."""
    body = {"model": "m", "messages": [{"role": "user", "content": [part(b"\xff" * 300)]}]}
    asked = measured_text(json.dumps(body).replace("/", "\\/").encode())
    assert asked.picture_bytes == 800
    plain = measured_text(json.dumps(body).encode())
    assert asked.prompt_bytes - asked.picture_bytes <= plain.prompt_bytes - plain.picture_bytes + 4


@pytest.mark.parametrize(
    "members",
    [
        {"vl_high_resolution_images": True},
        {"media_resolution": "MEDIA_RESOLUTION_HIGH"},
        {"parameters": {"min_pixels": 9}},
        {"acme": {"a": {"Size": 9}}},
    ],
)
def test_a_member_that_speaks_of_pictures_leaves_them_unmeasured(members) -> None:
    asked = measured(part(png()), **members)
    assert (asked.pictures, asked.picture_bytes) == ((), base64_bytes(png()))


@pytest.mark.parametrize("name", [b"min_\\u0070ixels", b"\\u0073ize", b"\\u0053IZE"])
def test_a_member_may_be_written_in_escapes(name) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [part(png())]}]})
    plain = body.encode()[:-1] + b', "acme": {"%b": 12845056}}'
    assert measured_text(plain % b"anything").pictures
    assert measured_text(plain % name).pictures == ()


@pytest.mark.parametrize(
    "members",
    [
        {"enable_thinking": False},
        {"chat_template_kwargs": {"enable_thinking": True}},
        {"reasoning_split": True},
        {"extra_body": {}},
        {"provider": {"order": ["a"]}},
    ],
)
def test_any_other_member_leaves_a_picture_its_size(members) -> None:
    assert measured(part(png()), **members).pictures == (PictureSize(30, 20),)


def test_sizes_are_read_up_to_a_limit(monkeypatch) -> None:
    monkeypatch.setattr(chat_pictures, "MEASURED_BYTES", 2 * base64_bytes(png()))
    asked = measured(*[part(png())] * 3)
    assert (len(asked.pictures), asked.unread_pictures) == (2, 1)
    assert asked.picture_bytes == 3 * base64_bytes(png())


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
    asked = measured_text(doubled)
    assert (asked.pictures, asked.picture_bytes) == ((), 0)


def test_a_file_with_a_second_head_has_no_size() -> None:
    lying = png().replace(head(30, 20), head(1, 1) + head(9_000, 9_000))
    asked = measured(part(lying))
    assert (asked.pictures, asked.unread_pictures, asked.media_parts) == ((), 1, 1)


def test_words_of_two_vendors_add_up() -> None:
    """A target may read a part without a type, and one of another vendor."""
    untyped = {"image_url": {"url": "https://a.example/b.png"}}
    other = {"type": "image", "image": "https://a.example/b.png"}
    assert measured(untyped, other).media_parts >= 2
