"""Scores: what is read is how often each text is read; what is wrong is named."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.pair_units import MARK_BYTES, PAIRS_LIMIT
from gateway.kinds.score import NAMES, SPEC, read_scores


def asked(**members: Any) -> InferenceRequest:
    text = json.dumps({"model": "m", **members}).encode()
    return json_reader(read_scores).read(IncomingBody(text, "application/json", None, max_n=8))


@pytest.mark.parametrize(("first", "second"), NAMES)
def test_each_pair_of_names_is_read_alike(first: str, second: str) -> None:
    found = asked(**{first: "abc", second: ["de", "f"]})
    assert found.prompt_bytes == (5 + MARK_BYTES) * 2 + 4 + 3
    assert found.path == "/score"
    assert found.extent is not None
    assert found.extent.longest == pytest.approx(9 / 17)
    assert SPEC.paths.keys() == {"/v1/score", "/score"}


def test_lists_of_one_length_are_read_pair_by_pair() -> None:
    found = asked(text_1=["a", "bb"], text_2=["ccc", "dddd"])
    assert found.prompt_bytes == (3 + 5) + (4 + 6) + 2 * MARK_BYTES
    assert found.extent is not None
    assert found.extent.longest == pytest.approx(10 / 18)


def test_one_text_with_one_is_a_pair() -> None:
    assert asked(text_1="a", text_2="b").prompt_bytes == 6 + MARK_BYTES


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({}, "text_1"),
        ({"text_1": "a"}, "text_1"),
        ({"text_1": "a", "documents": ["b"]}, "documents"),
        ({"text_1": "a", "text_2": "b", "queries": "c"}, "queries"),
        ({"text_1": ["a", "b"], "text_2": ["c"]}, "text_1"),
        ({"text_1": ["a", "b"], "text_2": ["c", "d", "e"]}, "text_1"),
        ({"text_1": "a", "text_2": []}, "text_2"),
        ({"text_1": "", "text_2": "b"}, "text_1"),
        ({"text_1": 5, "text_2": "b"}, "text_1"),
        ({"text_1": "a", "text_2": ["b"] * (PAIRS_LIMIT + 1)}, "text_2"),
        ({"text_1": "a", "text_2": [{"type": "image_embeds"}]}, "text_2"),
    ],
)
def test_what_is_wrong_is_named(members: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked(**members)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("sides", "files"),
    [
        ({"text_1": {"image": "https://a/b"}, "text_2": ["x"] * 3}, 3),
        ({"text_1": {"image_url": {"url": "https://a/b"}}, "text_2": ["x"] * 3}, 3),
        ({"text_1": "x", "text_2": [{"image": "https://a/b"}, "y"]}, 1),
        ({"text_1": ["data:image/png;base64,AA", "x"], "text_2": ["y", {"video": "z"}]}, 2),
        ({"text_1": "x", "text_2": ["y"]}, 0),
    ],
)
def test_files_of_a_pair_are_held_as_often_as_they_are_read(sides, files) -> None:
    assert asked(**sides).files == files


@pytest.mark.parametrize(
    ("sides", "named"),
    [
        ({"text_1": {"image": "data:image/png;base64,AA"}, "text_2": "x"}, "text_1"),
        ({"queries": "x", "documents": [{"image": "data:image/png;base64,AA"}]}, "documents"),
        ({"data_1": {"image": "https://a/b"}, "data_2": {"image": "https://a/b"}}, "data_1"),
    ],
)
def test_a_refused_picture_is_named_by_the_member_that_has_it(sides, named) -> None:
    request = asked(**sides)
    assert {request.asked_by[feature] for feature in request.features} == {named}
