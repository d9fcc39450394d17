"""Pictures of the simulated provider: whole and streamed, with tokens or without."""

import json
from base64 import b64decode

import pytest

from backends.simulator.dialect import RefusedError, SimulatedRules
from backends.simulator.pictures import (
    IMAGE_TOKENS,
    PNG,
    parse_edit,
    parse_pictures,
    picture_answer,
    picture_events,
)

RULES = SimulatedRules((), 1000, 16)


def order(**members):
    fields = {"model": "gpt-image-1", "prompt": "a cat", **members}
    return parse_pictures(json.dumps(fields).encode(), RULES)


def test_a_whole_answer_counts_or_has_addresses() -> None:
    counted = json.loads(picture_answer(order(n=2, quality="low"), 1))
    assert [b64decode(each["b64_json"]) for each in counted["data"]] == [PNG, PNG]
    assert counted["usage"]["output_tokens"] == 2 * 272
    plain = json.loads(picture_answer(order(model="flux"), 1))
    assert "usage" not in plain
    assert plain["data"][0]["url"].startswith("https://")


def test_a_picture_is_sent_where_it_is_asked_for_as_base64() -> None:
    """n8n asks so, and makes a file of it."""
    plain = json.loads(picture_answer(order(model="dall-e-3", response_format="b64_json"), 1))
    assert "usage" not in plain
    assert [b64decode(each["b64_json"]) for each in plain["data"]] == [PNG]


def test_a_stream_shows_pictures_while_they_are_made() -> None:
    events = list(picture_events(order(stream=True, partial_images=2, n=2), 1))
    kinds = [json.loads(event.partition(b"data: ")[2])["type"] for event in events]
    shown = ["image_generation.partial_image"] * 2 + ["image_generation.completed"]
    assert kinds == shown * 2
    assert b"usage" in events[-1]
    assert b"usage" not in events[2]


@pytest.mark.parametrize("change", [{"prompt": ""}, {"n": 11}, {"n": "2"}])
def test_what_is_wrong_is_refused(change: dict) -> None:
    with pytest.raises(RefusedError):
        order(**change)


def form(*files: str, **fields: str) -> bytes:
    parts = [f'name="{name}"\r\n\r\n{value}' for name, value in fields.items()]
    parts += [f'name="{name}"; filename="a"\r\n\r\nx' for name in files]
    head = "--b\r\ncontent-disposition: form-data; "
    return "".join(f"{head}{part}\r\n" for part in parts).encode() + b"--b--\r\n"


def test_an_edit_counts_what_it_reads() -> None:
    asked = {"model": "gpt-image-1", "prompt": "a cat", "n": "2", "stream": "true"}
    edit = parse_edit(form("image[]", "image[]", "mask", **asked, partial_images="1"), RULES)
    assert (edit.n, edit.stream, edit.partial, edit.images) == (2, True, 1, 3)
    assert edit.usage["input_tokens_details"]["image_tokens"] == 3 * IMAGE_TOKENS
    kinds = [event.split(b"\n")[0] for event in picture_events(edit, 1)]
    assert kinds == [b"event: image_edit.partial_image", b"event: image_edit.completed"] * 2
    with pytest.raises(RefusedError):
        parse_edit(form(**asked), RULES)
