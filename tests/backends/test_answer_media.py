"""Pictures and sound of an answer: what its model made, and not what its text speaks of."""

import json

import pytest

from backends.answer_media import (
    has_inline,
    has_part,
    has_picture_part,
    has_pictures,
    has_sound,
    is_inline,
)

DATA = "data:image/png;base64," + "A" * 400
ADDRESS = {"type": "image_url", "image_url": {"url": "https://e/a.png"}}


def answer(message: dict) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": message}]}).encode()


@pytest.mark.parametrize(
    ("message", "part", "shown"),
    [
        ({"content": "", "images": [ADDRESS]}, True, True),
        ({"content": "", "images": [{"index": 0}]}, True, True),
        ({"content": [ADDRESS]}, True, True),
        ({"content": [{"type": "output_image", "b64": "A"}]}, True, True),
        ({"content": [{"image": "https://e/a.png"}]}, True, True),
        ({"content": f"![a]({DATA})"}, False, True),
        ({"content": [{"type": "text", "text": f"![a]({DATA})"}]}, False, True),
        ({"content": 'the member "images", or "image_url"'}, False, False),
        ({"content": "ok;base64,"}, False, False),
        ({"content": "data:image/png;base64,AAAA is how it begins"}, False, False),
        ({"content": "image;base64," + "A" * 400}, False, False),
        ({"content": "a", "images": []}, False, False),
        ({"content": "a", "annotations": [ADDRESS]}, False, False),
    ],
)
def test_a_picture_is_a_part_or_all_of_an_address(message: dict, part: bool, shown: bool) -> None:
    assert (has_picture_part(answer(message)), has_pictures(answer(message))) == (part, shown)
    assert has_part(message) is part
    assert has_inline(message) is (shown and not part)


def test_names_in_escapes_are_names() -> None:
    body = answer({"images": [ADDRESS]}).replace(b"image", b"\\u0069mage")
    assert has_pictures(body)
    assert has_picture_part(body)


def test_a_completion_may_have_an_address_in_its_text() -> None:
    assert has_pictures(json.dumps({"choices": [{"text": DATA}]}).encode())
    assert is_inline(DATA)
    assert not has_pictures(b"image; no json")


def test_sound_is_a_member_of_the_message() -> None:
    assert has_sound(answer({"content": None, "audio": {"id": "a", "data": "AAAA"}}))
    assert not has_sound(answer({"content": "audio", "audio": None}))
    assert not has_sound(answer({"content": "no sound"}))
