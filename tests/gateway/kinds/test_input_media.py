"""What of an embedding's or a ranking's inputs a model may open as a file."""

import pytest

from gateway.kinds.input_media import FETCHED, NO_MEDIA, InputMedia, media_of_inputs
from router.types import Feature

SENT = frozenset((Feature.IMAGES,))
PICTURE = "https://a.example/b.png"
DATA = "data:image/png;base64,AA"


@pytest.mark.parametrize(
    ("inputs", "features", "files"),
    [
        (["words", "more: words/of it"], (), 0),
        (["https://a.example/page", "https://b.example/other"], (), 1),  # they may be words
        ([PICTURE, " gs://bucket/film ", "files/abc"], FETCHED, 3),
        (["data:image/png;base64,AA", "Data:;base64,AA"], SENT, 2),
        ([{"text": "words"}, {"text": PICTURE, "title": "t"}], (), 0),
        ([{"image": PICTURE}, {"image": "data:image/png;base64,AA"}], FETCHED, 2),
        ([{"image": ""}, {"image": None}, {"content": "words"}], (), 0),
        ([{"content": [{"type": "text", "text": "words"}]}], (), 0),
        ([{"content": [{"type": "image_url", "image_url": {"url": PICTURE}}] * 3}], FETCHED, 3),
        ([{"content": [{"image": PICTURE}, {"video": PICTURE}]}], FETCHED, 2),
        ([{"content": [{"type": "image_url", "image_url": {"url": DATA}}] * 2}], SENT, 2),
        ([{"file": {"data": DATA, "url": PICTURE}}], FETCHED, 1),
        ([{"document": {"title": "words"}}], (), 0),
        ([[1, 2, 3], 7, None], (), 0),
    ],
)
def test_files_are_counted_one_by_one(inputs, features, files) -> None:
    assert media_of_inputs(inputs) == InputMedia(frozenset(features), files)


def test_what_is_too_deep_to_look_through_is_a_file() -> None:
    deep: object = "words"
    for _ in range(20):
        deep = {"a": deep}
    assert media_of_inputs([deep]) == InputMedia(FETCHED, 1)
    assert media_of_inputs([]) == NO_MEDIA


def test_members_that_are_counted_elsewhere_are_left_out() -> None:
    part = {"type": "image_url", "image_url": {"url": PICTURE}}
    counted = frozenset(("image_url",))
    assert media_of_inputs([{"content": [part]}], counted) == NO_MEDIA
    assert media_of_inputs([{"content": [part, {"image": PICTURE}]}], counted).files == 1
