"""A source is a picture's where its data begin as one, or its address may be one."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kinds.picture_sources import has_media_ending, is_picture, speaks_of_another

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
# As phones and browsers send them.
FILES = {
    "png": PNG,
    "jpeg": b"\xff\xd8\xff\xe0" + b"\0" * 40,
    "gif": b"GIF89a" + b"\0" * 29,
    "webp": b"RIFF\x10\0\0\0WEBPVP8 " + b"\0" * 20,
    "heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
    "avif": b"\0\0\0\x1cftypavif\0\0\0\0mif1avif",
    "bmp": b"BM" + b"\0" * 40,
    "tiff": b"II*\0" + b"\0" * 40,
}
OTHERS = {
    "pdf": b"%PDF-1.7" + b"x" * 40,
    "mp4": b"\0\0\0\x18ftypisom\0\0\0\0isommp42",
    "wav": b"RIFF\x10\0\0\0WAVEfmt " + b"\0" * 20,
    "text": b"word " * 20,
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'>",
}


def data(file: bytes, media: str = "image/png") -> str:
    return f"data:{media};base64,{base64.b64encode(file).decode()}"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("media", ["image/jpeg", "image/heic", "IMAGE/PNG", "image", "image/*"])
def test_data_that_begin_as_a_picture_are_one_whatever_format_they_name(name, media) -> None:
    assert is_picture(data(FILES[name], media))
    assert is_picture(base64.b64encode(FILES[name]).decode())  # without a head


@pytest.mark.parametrize("name", OTHERS)
def test_data_that_begin_otherwise_are_none(name) -> None:
    assert not is_picture(data(OTHERS[name]))
    assert not is_picture(base64.b64encode(OTHERS[name]).decode())


@pytest.mark.parametrize(
    "source",
    [
        data(PNG, "application/pdf"),
        data(PNG, "video/mp4"),
        data(PNG, "image/svg+xml"),
        data(PNG, "image/png;x=application/pdf"),
        data(PNG) + "gs://bucket/film.mp4",
        "data:image/png,plain",
        "data:image/png;base64,",
        "",
        "file-1",
        "files/abc",
        "gs://bucket/a.png",
        "s3://bucket/a.png",
        "file:///a.png",
    ],
)
def test_another_type_place_or_name_is_none(source) -> None:
    assert not is_picture(source)


@given(st.binary(max_size=60))
def test_any_data_are_judged(file: bytes) -> None:
    assert not is_picture(data(file, "video/mp4"))
    assert is_picture(data(PNG + file))


@pytest.mark.parametrize(
    "address",
    [
        "https://a.example/b.png",
        "HTTP://a.example/b.JPEG?sig=1.2",
        "https://a.example/photos/17",
        "https://a.example/v1.2/picture?w=100",
        "https://cdn.example/photo.jpg!large",
        "https://cdn.example/photo.jpg@200w.webp",
        "https://img.youtube.com/vi/x/0.jpg",
        "https://proxy.example/https://a.example/b.png",
        "https://a.example/photo.php?id=5",
    ],
)
def test_an_address_of_the_web_may_be_a_picture(address) -> None:
    assert is_picture(address)


@pytest.mark.parametrize(
    "address",
    [
        "https://a.example/film.mp4",
        "https://a.example/film.mp4?x=.png",
        "https://a.example/film.mp4#.png",
        "https://a.example/film.mp4;a.png",
        "https://a.example/film.mp%34",
        "https://a.example/FILM.MKV",
        "https://a.example/paper.pdf!large",
        "https://a.example/get?file=film.mp4",
        "https://a.example/get?file=film%2Emp4",
        "https://www.youtube.com/watch?v=x",
        "https://youtu.be/x",
        "https://vimeo.com/1",
        "https://generativelanguage.googleapis.com/v1beta/files/abc",
        "https://a.example/b.png?gs://bucket/film.mp4",
        "https://a.example/b c.png",
        "https://[::1",
    ],
)
def test_an_address_of_a_film_or_a_file_is_none(address) -> None:
    assert not is_picture(address)


@pytest.mark.parametrize(
    "members",
    [
        {"format": "application/pdf"},
        {"format": "mp4"},
        {"format": 5},
        {"mime_type": "video/mp4"},
        {"any": "Application/pdf"},
        {"video_metadata": {"fps": 24}},
    ],
)
def test_members_that_state_another_medium(members) -> None:
    assert speaks_of_another(members, "image")


@pytest.mark.parametrize(
    "members",
    [{}, {"format": None}, {"format": "image/heic"}, {"format": "PNG"}, {"detail": "high"}],
)
def test_members_that_do_not(members) -> None:
    assert not speaks_of_another(members, "image")


def test_sounds_have_words_of_their_own() -> None:
    assert not speaks_of_another({"format": "wav"}, "audio")
    assert not speaks_of_another({"format": "audio/wav"}, "audio")
    assert speaks_of_another({"format": "video/mp4"}, "audio")


@pytest.mark.parametrize(
    ("address", "has_one"),
    [
        ("https://a/b.mp4", True),
        ("https://a/b.png", True),
        ("https://a/b.html", False),
        ("https://a/b", False),
        ("https://a.org/b?c=d.mp4", False),
        ("https://[::1", True),
    ],
)
def test_endings_of_media(address, has_one) -> None:
    assert has_media_ending(address) is has_one
