"""Embeddings: bounds of their inputs, and another kind's prompt beside them."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.kinds import KIND_PATHS
from gateway.kinds.embedding import INPUTS_LIMIT
from gateway.kinds.inference_request import IncomingBody, InferenceRequest
from gateway.request.request_parser import body_for
from router.types import Feature

MESSAGES = [{"role": "user", "content": "hello"}]


def asked(path: str = "/v1/chat/completions", **members: Any) -> InferenceRequest:
    if path == "/v1/chat/completions":
        members.setdefault("messages", MESSAGES)
    text = json.dumps({"model": "m", **members}).encode()
    return KIND_PATHS[path].read(IncomingBody(text, "application/json", None, max_n=8))


def test_embeddings_have_a_limit_of_their_own() -> None:
    most = ["a"] * INPUTS_LIMIT
    assert asked("/v1/embeddings", input=most).prompts == 1  # inputs are no answers
    assert asked("/v1/embeddings", input=[1] * 5000).prompts == 1  # one input of 5,000 tokens
    for many in ([*most, "a"], [[1]] * (INPUTS_LIMIT + 1)):
        with pytest.raises(RequestError, match="2049 items; one request may have 2048") as caught:
            asked("/v1/embeddings", input=many)
        assert caught.value.param == "input"


def test_an_object_as_input_is_told_what_an_input_is() -> None:
    """Jina's form; the words spoke of a whole number."""
    with pytest.raises(RequestError, match=r"`input\[0\]` must be a string, not an object"):
        asked("/v1/embeddings", input=[{"text": "a"}])


def test_of_a_list_of_embeddings_the_longest_must_fit() -> None:
    assert asked("/v1/embeddings", input="one").extent is None
    assert asked("/v1/embeddings", input=[1, 2, 3]).extent is None  # one input of three tokens
    listed = asked("/v1/embeddings", input=["a" * 8, "b" * 28]).extent  # with their quotes
    assert listed is not None
    assert listed.longest == 0.75
    ids = asked("/v1/embeddings", input=[[1, 2], [3]]).extent
    assert ids is not None
    assert ids.longest > 0.6


def test_without_the_look_it_would_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    monkeypatch.setattr("gateway.kinds.text_members._PROMPT_MEMBERS", ())
    both = asked("/v1/embeddings", input="a", messages=MESSAGES)
    body = body_for(both, upstream_model="u", own=True, max_tokens_cap=None, salt=None)
    assert json.loads(body)["messages"] == MESSAGES


SENT = "data:video/mp4;base64,AAAA"
FETCHED = {Feature.IMAGES, Feature.MEDIA_URLS}


@pytest.mark.parametrize(
    ("given", "features", "files"),
    [
        (SENT, {Feature.IMAGES}, 1),
        (SENT.upper().replace("AAAA", "AAAA"), {Feature.IMAGES}, 1),
        ("gs://bucket/movie.mp4", FETCHED, 1),
        ("s3://bucket/movie", FETCHED, 1),
        ("files/abc", FETCHED, 1),
        (" https://x.example/y.mp4 ", FETCHED, 1),
        (["a", "https://x.example/y.PDF?sig=1", SENT], FETCHED, 2),
        # An address may be meant as words: it asks nothing of a target.
        ("https://x.example/page", set(), 1),
        (["https://x.example/page.html", "a"], set(), 1),
    ],
)
def test_inputs_that_are_files_or_addresses(given, features, files) -> None:
    request = asked("/v1/embeddings", input=given)
    assert (request.features, request.files) == (features, files)
    assert request.has_sound
    assert not request.text_prompt


@pytest.mark.parametrize(
    "given",
    [
        "data: the new oil", "see https://x.example/y.mp4 for more", "note: a/b", "files/ and more",
        "https://x.example/y.mp4 is a film", [1, 2, 3], [[1], [2]], ["a: b", "c/d"],
    ],
)  # fmt: skip
def test_words_about_files_are_words(given) -> None:
    request = asked("/v1/embeddings", input=given)
    assert (request.features, request.files, request.has_sound) == (set(), 0, False)


@pytest.mark.parametrize("name", ["images", "image", "inputs", "content", "video"])
def test_a_vendors_member_for_media_counts_as_a_file(name) -> None:
    request = asked("/v1/embeddings", input="a", **{name: ["x"]})
    assert (request.features, request.files) == (FETCHED, 1)
    assert asked("/v1/embeddings", input="a", **{name: None}).files == 0
