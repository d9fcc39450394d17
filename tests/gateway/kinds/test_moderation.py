"""Moderations: the default model, inputs of each form, and a price of zero that is stated."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.moderation import DEFAULT_MODEL, INPUTS_LIMIT, SPEC, read_moderation
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, cost_pusd
from ledger.prices.bundled import bundled_seed
from router.request_kinds import RequestKind
from router.types import Feature, OutputMoments, RoutingRequest

PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
OUTPUT = OutputMoments(0, 1.0, 1.0, 1.0)


def asked(**members: Any) -> InferenceRequest:
    text = json.dumps(members).encode()
    return json_reader(read_moderation).read(IncomingBody(text, "application/json", None, max_n=8))


def test_a_request_that_names_no_model_means_openais_own() -> None:
    for members in ({"input": "x"}, {"input": "x", "model": None}):
        found = asked(**members)
        assert found.model == DEFAULT_MODEL
        assert json.loads(bytes(found.members["model"])) == DEFAULT_MODEL


def test_texts_and_parts_are_read() -> None:
    assert asked(model="m", input="hello").prompt_bytes == 7
    assert asked(model="m", input=["a", "b"]).prompt_bytes == len('["a", "b"]')
    shown = asked(model="m", input=[{"type": "text", "text": "x"}, PICTURE])
    assert shown.features == {Feature.IMAGES, Feature.MEDIA_URLS}
    assert (shown.media_parts, shown.files) == (1, 1)


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({}, "input"), ({"input": None}, "input"), ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [5]}, "input"), ({"input": ["x"] * (INPUTS_LIMIT + 1)}, "input"),
        ({"input": "x", "model": 5}, "model"), ({"input": "x", "messages": []}, "messages"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(members: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked(**members)
    assert caught.value.param == param


def test_a_stated_price_of_zero_is_a_price_and_bounds_hold() -> None:
    units = SPEC.units
    assert units is not None
    request = RoutingRequest(RequestKind.MODERATION, "m", 100, 400, 0, OUTPUT)
    free = 0
    for version, draft in enumerate(bundled_seed().drafts, 1):
        price = Price(version, draft.name, draft.book, 0, draft.terms)
        bound = units.bound_pusd(price, request, 0)
        for tokens in (units.estimate(request, 0), units.most(request), TokenCounts(input=400)):
            assert cost_pusd(tokens, price) <= bound
        free += draft.name.startswith("openai/omni-moderation") and bound == 0
    assert free >= 2
