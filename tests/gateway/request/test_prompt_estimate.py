"""A prompt's estimate and bound: text by its bytes, pictures of known size by their pixels."""

import asyncio
import json
from types import SimpleNamespace

from msgspec.structs import replace

from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.kinds.chat_pictures import measure_pictures
from gateway.kinds.embedding import read_embedding
from gateway.kinds.prompt_media import PictureSize, PromptMedia
from gateway.request.prompt_estimate import estimate_prompt, prompt_media
from ledger.prices.modellimits import CONTEXT_UNSTATED
from router.filters import context
from router.token_ratio import TokenRatio
from router.types import OutputMoments, RoutingRequest

KEY, STATED = ("m", "t"), 5_000


def asked(*parts, **members):
    content = [{"type": "text", "text": "a"}, *parts]
    body = {"model": "m", "messages": [{"role": "user", "content": content}], **members}
    return read_chat(decode_members(json.dumps(body).encode()), max_n=8, session=None)


def picture(length: int = 40_000) -> dict:
    sign = "iVBORw0KGgoA"
    data = "data:image/png;base64," + sign + "A" * (length - len(sign))
    return {"type": "image_url", "image_url": {"url": data}}


def test_the_data_of_pictures_are_no_text_whatever_is_known_of_their_size() -> None:
    ratio, raw = TokenRatio(), asked(picture())
    text, bound = ratio.estimate(KEY, raw.prompt_bytes - 40_000)
    size = (PictureSize(750, 10),)
    known = replace(raw, pictures=size, picture_bytes=40_000)
    assert estimate_prompt(known, ratio, KEY, STATED) == (text + 95, bound + STATED)
    assert prompt_media(known, ratio, KEY, STATED) == PromptMedia(bound, size, 0, STATED, 0)
    unread = replace(raw, unread_pictures=1, picture_bytes=40_000)
    assert estimate_prompt(unread, ratio, KEY, STATED) == (text + 1_600, bound + STATED)
    assert prompt_media(unread, ratio, KEY, STATED) == PromptMedia(bound, (), 1, STATED, 0)


def test_a_photo_of_unknown_size_fits_a_context_without_any_budget() -> None:
    """Of 3 MB: it was refused at a context of a million tokens."""
    photo = asyncio.run(measure_pictures(asked(picture(4_000_000))))
    estimate, bound = estimate_prompt(photo, TokenRatio(), KEY, STATED)
    moments = OutputMoments(50, 1.0, 1.0, 1.0)
    request = RoutingRequest(photo.kind, "m", estimate, bound, 50, moments, 1, photo.features)
    small = SimpleNamespace(context_tokens=8_000, open_end=False, name="x")
    assert context(request, None, small) is None


def test_a_file_has_at_least_the_context_that_nobody_states() -> None:
    given = asked({"type": "file", "file": {"file_id": "f"}})
    assert estimate_prompt(given, TokenRatio(), KEY, STATED)[1] == CONTEXT_UNSTATED
    found = prompt_media(given, TokenRatio(), KEY, STATED)
    assert found is not None
    assert found.files > 0


def test_the_files_of_a_list_are_read_one_by_one() -> None:
    films = ["https://a.example/b.mp4", "data:video/mp4;base64,AA"]
    body = decode_members(json.dumps({"model": "m", "input": films}).encode())
    found = prompt_media(read_embedding(body, session=None), TokenRatio(), KEY, STATED)
    assert found is not None
    assert (found.files, found.apart) == (2, True)
    chat = prompt_media(
        asked({"type": "file", "file": {"file_id": "f"}}), TokenRatio(), KEY, STATED
    )
    assert chat is not None
    assert not chat.apart


def test_a_text_has_no_media_and_a_forecast_is_told() -> None:
    assert prompt_media(asked(), TokenRatio(), KEY, STATED) is None
    found = prompt_media(asked(prediction={"content": "word"}), TokenRatio(), KEY, STATED)
    assert found is not None
    assert found.predicted == len('{"content": "word"}')
