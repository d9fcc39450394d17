"""A prompt's estimate and bound: text by its bytes, pictures of known size by their pixels."""

import json

from msgspec.structs import replace

from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.kinds.prompt_media import PictureSize, PromptMedia
from gateway.request.prompt_estimate import estimate_prompt, media_of
from ledger.prices.modellimits import CONTEXT_UNSTATED
from router.token_ratio import TokenRatio

KEY, STATED = ("m", "t"), 5_000


def asked(*parts, **members):
    content = [{"type": "text", "text": "a"}, *parts]
    body = {"model": "m", "messages": [{"role": "user", "content": content}], **members}
    return read_chat(decode_members(json.dumps(body).encode()), max_n=8, session=None)


def picture(length: int = 40_000) -> dict:
    data = "data:image/png;base64," + "A" * length
    return {"type": "image_url", "image_url": {"url": data}}


def test_the_data_of_a_measured_picture_are_no_text() -> None:
    ratio, raw = TokenRatio(), asked(picture())
    known = replace(raw, pictures=(PictureSize(750, 10),), picture_bytes=40_000)
    text, bound = ratio.estimate(KEY, raw.prompt_bytes)
    assert estimate_prompt(raw, ratio, KEY, STATED) == (text, bound + STATED)
    few = ratio.estimate(KEY, raw.prompt_bytes - 40_000)
    assert estimate_prompt(known, ratio, KEY, STATED) == (few[0] + 95, bound + STATED)
    assert media_of(raw, ratio, KEY, STATED) == PromptMedia(bound, (), 1, STATED, 0)
    sizes = (PictureSize(750, 10),)
    assert media_of(known, ratio, KEY, STATED) == PromptMedia(few[1], sizes, 0, STATED, 0)


def test_a_file_has_at_least_the_context_that_nobody_states() -> None:
    given = asked({"type": "file", "file": {"file_id": "f"}})
    assert estimate_prompt(given, TokenRatio(), KEY, STATED)[1] == CONTEXT_UNSTATED
    found = media_of(given, TokenRatio(), KEY, STATED)
    assert found is not None
    assert found.files > 0


def test_a_text_has_no_media_and_a_forecast_is_told() -> None:
    assert media_of(asked(), TokenRatio(), KEY, STATED) is None
    found = media_of(asked(prediction={"content": "word"}), TokenRatio(), KEY, STATED)
    assert found is not None
    assert found.predicted == len('{"content": "word"}')
