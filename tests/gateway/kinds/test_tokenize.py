"""Tokens and texts: read, refused, and free of engine time."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.kinds.inference_request import IncomingBody, json_reader
from gateway.kinds.tokenize import SPEC, read_detokenization, read_tokenization
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, rates_from
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

CHAT = [{"role": "user", "content": "x"}]
SHOWN = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:a"}}]}]


def body(**members: Any) -> IncomingBody:
    return IncomingBody(json.dumps({"model": "m", **members}).encode(), "", None, max_n=8)


def test_prompts_conversations_and_tokens_are_read() -> None:
    for read, members, path in (
        (read_tokenization, {"prompt": "x"}, "/tokenize"),
        (read_tokenization, {"messages": CHAT, "add_generation_prompt": True}, "/tokenize"),
        (read_detokenization, {"tokens": [1, 2]}, "/detokenize"),
    ):
        found = json_reader(read).read(body(**members))
        assert (found.path, found.prompt_bytes, found.max_tokens) == (path, 0, 0)


@pytest.mark.parametrize(
    ("read", "members", "param"),
    [
        (read_tokenization, {}, "prompt"),
        (read_tokenization, {"prompt": "x", "messages": CHAT}, "prompt"),
        (read_tokenization, {"prompt": ["x"]}, "prompt"),
        (read_tokenization, {"messages": "x"}, "messages"),
        (read_tokenization, {"messages": []}, "messages"),
        (read_tokenization, {"messages": SHOWN}, "messages"),
        (read_tokenization, {"prompt": "x", "model": ""}, "model"),
        (read_detokenization, {}, "tokens"),
        (read_detokenization, {"tokens": [-1]}, "tokens"),
        (read_detokenization, {"tokens": [2**32]}, "tokens"),
        (read_detokenization, {"tokens": ["x"]}, "tokens"),
    ],
)
def test_what_is_wrong_is_named(read, members: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        json_reader(read).read(body(**members))
    assert caught.value.param == param


def test_nothing_is_counted_and_only_a_fee_is_charged() -> None:
    units = SPEC.units
    assert units is not None
    assert not units.engine_work
    output = OutputMoments(0, 1.0, 1.0, 1.0)
    request = RoutingRequest(RequestKind.TOKENIZE, "m", 0, 0, 0, output)
    terms = PriceTerms(rates_from({"input": 5, "output": 5}), request_pusd=7)
    assert units.estimate(request, 9) == units.most(request) == TokenCounts()
    assert units.bound_pusd(Price(1, "a/b", "t", 0, terms), request, 0) == 7
    assert SPEC.usage({"prompt_tokens": 5}) == TokenCounts()
