"""Edits of pictures: what a form may say, what is held, and what is booked of the answer."""

import json
from typing import Any

import httpx
import pytest

from gateway.errors import RequestError
from gateway.kinds.image_edit import IMAGE_BYTES, IMAGES_MOST, SPEC
from gateway.kinds.inference_request import IncomingBody, InferenceRequest
from ledger.verify.checks import verify

PATH = "/v1/images/edits"
PNG = b"\x89PNG\r\n\x1a\n picture"
FIELDS = {"model": "gpt-image-1", "prompt": "a cat"}


def form(fields: dict[str, Any], *files: tuple[str, bytes]) -> httpx.Request:
    given: list[Any] = [(name, (None, str(value))) for name, value in fields.items()]
    sent = [(name, (f"{name}.png", data, "image/png")) for name, data in files]
    return httpx.Request("POST", "http://x/", files=[*given, *sent])


def read(fields: dict[str, Any], *files: tuple[str, bytes]) -> InferenceRequest:
    sent = form(fields, *files)
    body = IncomingBody(sent.read(), sent.headers["content-type"], None, 1)
    return SPEC.paths[PATH].reader.read(body)


def test_a_form_is_condensed() -> None:
    asked = read({**FIELDS, "n": 2, "size": "1024x1024", "quality": "low", "user": "u"},
                 ("image", PNG), ("mask", PNG))  # fmt: skip
    assert (asked.path, asked.model, asked.n, asked.stream) == (
        "/images/edits", "gpt-image-1", 2, False,
    )  # fmt: skip
    assert asked.media_parts == 2
    assert asked.prompt_bytes == len("a cat") + 2 * IMAGE_BYTES
    assert asked.extent is not None
    assert (asked.extent.pictures, asked.extent.picture_form) == (2, "low|1024x1024")
    assert asked.form is not None
    told = asked.form.body_for("other")
    assert b"\r\n\r\nother\r\n" in told
    assert told.count(PNG) == 2


def test_several_pictures_and_partial_ones_are_held_for() -> None:
    several = read(FIELDS, *[("image[]", PNG)] * IMAGES_MOST)
    assert several.media_parts == IMAGES_MOST
    whole = read({**FIELDS, "stream": "false"}, ("image", PNG)).extent
    shown = read({**FIELDS, "stream": "true", "partial_images": 3}, ("image", PNG)).extent
    assert whole is not None
    assert shown is not None
    assert shown.output_tokens_bound > whole.output_tokens_bound


@pytest.mark.parametrize(
    ("fields", "files", "param"),
    [
        ({}, [], "image"),
        ({}, [("image[]", PNG)] * (IMAGES_MOST + 1), "image"),
        ({}, [("image", b"")], "image"),
        ({"prompt": ""}, [("image", PNG)], "prompt"),
        ({"model": ""}, [("image", PNG)], "model"),
        ({"n": 11}, [("image", PNG)], "n"),
        ({"n": "-1"}, [("image", PNG)], "n"),
        ({"n": "01"}, [("image", PNG)], "n"),
        ({}, [("image", PNG), ("image[]", PNG)], "image"),
        ({"n": "two"}, [("image", PNG)], "n"),
        ({"stream": "maybe"}, [("image", PNG)], "stream"),
        ({"partial_images": 4}, [("image", PNG)], "partial_images"),
        ({"partial_images": "-1", "stream": "true"}, [("image", PNG)], "partial_images"),
        ({"image": "https://a.example/b.png"}, [], "image"),
        ({"image_url": "https://a.example/b.png"}, [("image", PNG)], "image_url"),
        ({"images": "[]"}, [("image", PNG)], "images"),
        ({"mask": "x"}, [("image", PNG)], "mask"),
        ({}, [("image", PNG), ("Image", PNG)], "Image"),
        ({}, [("image", PNG), ("attachment", PNG)], "attachment"),
        ({}, [("image", PNG), ("mask[]", PNG)], "mask[]"),
        ({}, [("image", PNG), ("image", PNG)], "image"),
        ({"n[a]": "9"}, [("image", PNG)], "n[a]"),
    ],
)
def test_what_is_no_edit_is_named(fields, files, param: str) -> None:
    with pytest.raises(RequestError) as raised:
        read({**FIELDS, **fields}, *files)
    assert raised.value.param == param


def with_editors(found: dict[str, Any], ports: dict[str, int]) -> None:
    """Providers that edit, of which one knows tokens, and one for texts alone."""
    for name, priced, features in (
        ("flux", "azure/dall-e-3", ["images"]),
        ("gpt", "openai/gpt-image-1", ["images"]),
        ("blind", "azure/dall-e-3", ["tools"]),
    ):
        found["providers"][name] = {
            "base_url": f"http://127.0.0.1:{ports['alpha']}/v1", "simulated": True,
            "prices_as": priced, "kinds": ["image_edit"], "features": features,
        }  # fmt: skip
    found["models"] |= {
        "dall-e-3": {"targets": ["flux/dall-e-3"], "compare_with": ["azure/dall-e-3"]},
        "gpt-image-1": {"targets": ["gpt/gpt-image-1"]},
        "blind": {"targets": ["blind/dall-e-3"]},
    }


@pytest.fixture(scope="module")
def stack(running, tmp_path_factory):
    budgets = [{"scope": "team:poor", "usd": "0.000001", "hard": True}]
    folder = tmp_path_factory.mktemp("host")
    with running(folder, adjust=with_editors, budgets=budgets) as found:
        yield found


def edit(stack, fields: dict[str, Any], *files: tuple[str, bytes], token=None) -> httpx.Response:
    sent = form({**FIELDS, **fields}, *(files or [("image", PNG)]))
    headers = {**stack.headers(token), "content-type": sent.headers["content-type"]}
    return stack.client.post(stack.url + PATH, content=sent.read(), headers=headers)


@pytest.mark.parametrize("stream", [False, True])
def test_an_edit_is_booked_by_what_was_counted(stack, stream: bool) -> None:
    asked = {"quality": "medium", "stream": "true", "partial_images": 2} if stream else {}
    answer = edit(stack, {"quality": "medium", **asked}, ("image[]", PNG), ("image[]", PNG))
    assert answer.status_code == 200, answer.text
    if stream:
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line[:6] == "data: "]
        assert [event["type"] for event in events] == [
            "image_edit.partial_image", "image_edit.partial_image", "image_edit.completed",
        ]  # fmt: skip
    (row,) = stack.settled(answer)
    made = 1056 + 200 * stream
    assert (row["kind"], row["status"], row["basis"]) == ("image_edit", "finished", "reported")
    assert (row["pictures"], row["image_output_tokens"]) == (1, made)
    assert row["input_tokens"] > 2 * 300
    assert row["cost_pusd"] >= row["input_tokens"] * 5_000_000 + made * 40_000_000


def test_pictures_by_the_piece_and_a_stream_written_here(stack) -> None:
    answer = edit(stack, {"model": "dall-e-3", "n": 2, "size": "1024x1792", "quality": "hd"})
    assert answer.status_code == 200, answer.text
    (row,) = stack.settled(answer)
    assert (row["pictures"], row["tier"]) == (2, "hd/1024x1792")
    assert row["cost_pusd"] == 2 * 132_000_015_974
    streamed = edit(stack, {"model": "dall-e-3", "stream": "true"})
    assert "event: image_edit.completed" in streamed.text


def test_who_reads_no_pictures_and_who_has_no_money_is_refused(stack) -> None:
    refused = edit(stack, {"model": "blind"})
    assert refused.status_code == 400, refused.text
    assert "image" in refused.json()["error"]["message"]
    poor = stack.key("poor", team="poor").token
    answer = edit(stack, {"model": "dall-e-3"}, token=poor)
    assert answer.status_code == 429, answer.text
    # Its list charges pictures that are read apart: no budget can hold what nobody states here.
    unknown = edit(stack, {"model": "gpt-image-1"}, token=poor)
    assert (unknown.status_code, "partly known" in unknown.text) == (400, True)
    assert stack.post(PATH, {"model": "dall-e-3", "prompt": "x"}).status_code == 415
    other = stack.post("/v1/images/variations", {})
    assert (other.status_code, "images/edits" in other.text) == (404, True)
    azure = f"{stack.url}/openai/deployments/dall-e-3/images/edits"
    sent = form({"prompt": "a cat", "model": "none"}, ("image", PNG))
    headers = {**stack.headers(), "content-type": sent.headers["content-type"]}
    assert stack.client.post(azure, content=sent.read(), headers=headers).status_code == 200


def test_the_books_add_up(stack) -> None:
    stack.booked()
    with stack.reader.connect() as connection:
        assert verify(connection).findings == ()
