"""Documents of a conversation leave its text, and only those that can be read in one way."""

import asyncio
import json
from typing import Any

import pytest

from gateway.http.body import decode_members
from gateway.kinds.chat import SPEC, read_chat
from gateway.kinds.chat_files import PAGE_BYTES, PAGES_LIMIT, measure_files
from gateway.kinds.inference_request import InferenceRequest
from gateway.request.prompt_estimate import estimate_prompt
from ledger.prices.modellimits import CONTEXT_UNSTATED
from router.token_ratio import TokenRatio

DATA = "AAAA" * 100_000
STATED = 1600


def file(data: str, **more: Any) -> dict[str, Any]:
    told = {"file_data": f"data:application/pdf;base64,{data}"}
    return {"type": "file", "file": {**told, **more}}


def asked(*parts: Any, text: bytes | None = None) -> InferenceRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": list(parts)}]}
    encoded = json.dumps(body).encode() if text is None else text
    return read_chat(decode_members(encoded), max_n=1, session=None)


def measured(request: InferenceRequest) -> InferenceRequest:
    return asyncio.run(measure_files(request))


def test_its_data_are_no_text_and_it_is_still_held_as_a_file() -> None:
    plain = asked(file(DATA))
    found = measured(plain)
    assert (found.picture_bytes, found.unread_pictures) == (len(DATA), 7)
    ratio, key = TokenRatio(), ("m", "t")
    before, _ = estimate_prompt(plain, ratio, key, STATED)
    estimate, bound = estimate_prompt(found, ratio, key, STATED)
    assert before > 60_000, "the control: as text it is longer than most contexts"
    assert estimate < 13_000
    assert bound >= CONTEXT_UNSTATED


def test_each_is_of_a_number_of_pages() -> None:
    assert measured(asked(file("AAAA"), file("A" * PAGE_BYTES * 2))).unread_pictures == 3
    assert measured(asked(file("A" * PAGE_BYTES * 500))).unread_pictures == PAGES_LIMIT


def test_escapes_are_bytes_too() -> None:
    text = json.dumps({"model": "m", "messages": [{"role": "user", "content": [file("//AA")]}]})
    escaped = text.replace("/", "\\/").encode()
    assert measured(asked(text=escaped)).picture_bytes == len("//AA") + 2


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": '"file_data"'},
        {"type": "file", "file": {"file_id": "f", "x": '"file_data"'}},
        {"type": "file", "file": {"file_data": "https://a.test/b.pdf"}},
        {"type": "file", "file": {"file_data": "data:application/pdf,plain"}},
        {"type": "file", "file": {"file_data": 5}},
        {"type": "file", "file": {"file_data": "data:é;base64,AAAA"}},
        {"type": "file", "file": ["file_data"]},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AAAA"},
    ],
)
def test_whatever_is_read_otherwise_stays_text(part: dict[str, Any]) -> None:
    assert measured(asked(part)).picture_bytes == 0


def test_a_name_that_stands_twice_leaves_all_as_text() -> None:
    text = json.dumps({"model": "m", "messages": [{"role": "user", "content": [file("AAAA")]}]})
    twice = text.replace('"file_data"', '"file_data": "x", "file_data"').encode()
    assert measured(asked(text=twice)).picture_bytes == 0


class NoSounds:
    async def decode(self, sound: bytes) -> None:
        raise AssertionError("a document is not sound")

    async def aclose(self) -> None: ...


def test_a_chat_is_measured_for_them() -> None:
    assert SPEC.measure is not None
    found = asyncio.run(SPEC.measure(asked(file(DATA)), NoSounds()))
    assert found.picture_bytes == len(DATA)
