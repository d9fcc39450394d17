"""Pictures of the simulated provider: whole and streamed, with tokens or without."""

import json
from base64 import b64decode

import pytest

from backends.simulator.dialect import RefusedError, SimulatedRules
from backends.simulator.pictures import PNG, parse_pictures, picture_answer, picture_events

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
