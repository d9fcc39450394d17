"""A request makes as many pictures as `n` says, whatever else a vendor would read."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.kinds.picture_counts import refuse_other_counts, stated_form


def refuse(**members: Any) -> None:
    refuse_other_counts((name, json.dumps(value).encode()) for name, value in members.items())


@pytest.mark.parametrize(
    "members",
    [
        {"batch_size": 4},
        {"batchSize": "4"},
        {"num_images": 4},
        {"num_images_per_prompt": 4},
        {"num_outputs": 4},
        {"samples": 4},
        {"n_iter": 4},
        {"parameters": {"sampleCount": 4}},
        {"parameters": {"n": 4}},
        {"options": [{"number_of_images": 4}]},
        {"sequential_image_generation": "auto"},
        {"sequential_image_generation_options": {"max_images": 15}},
        {"num_samples": 4},
    ],
    ids=str,
)
def test_other_words_for_it_are_refused(members: dict[str, Any]) -> None:
    """Red before: four pictures were made and billed on the hold of one, and narrowed nothing."""
    (name,) = members
    with pytest.raises(RequestError) as refused:
        refuse(**members)
    assert refused.value.param == name


@pytest.mark.parametrize(
    "members",
    [
        {"n": 4, "size": "1024x1024", "quality": "high", "seed": 4, "steps": 30, "user": "x"},
        {"batch_size": 1, "num_images": None, "samples": "1"},
        {"sequential_image_generation": "disabled"},
        {"parameters": {"n": 1, "seed": 9}, "loras": [{"path": "x", "scale": 2}]},
    ],
    ids=str,
)
def test_what_asks_for_one_or_for_something_else_passes(members: dict[str, Any]) -> None:
    refuse(**members)


def test_fields_of_forms_are_texts() -> None:
    refuse_other_counts([("background", b"auto"), ("batch_size", b"1"), ("x", b"\xff")])
    with pytest.raises(RequestError):
        refuse_other_counts([("batch_size", b"4")])


@pytest.mark.parametrize("name", ["image_size", "width", "imageResolution", "aspect_ratio"])
def test_a_form_that_is_stated_twice_is_left_open(name: str) -> None:
    """Red before: a picture of 4096x4096 was held and booked as one of 1024x1024."""
    assert stated_form(("n", name), "standard", "1024x1024") == ("", "")
    assert stated_form(("n", "style"), "standard", "1024x1024") == ("standard", "1024x1024")
