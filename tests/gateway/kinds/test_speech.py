"""Speech: characters and tokens that are estimated, bounded by every price that there is."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.speech import CHARACTERS_MOST, SPEC, read_speech
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, cost_pusd
from ledger.prices.bundled import bundled_seed
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

OUTPUT = OutputMoments(0, 1.0, 1.0, 1.0)


def asked(**members: Any) -> InferenceRequest:
    body = {"model": "m", "input": "hello", "voice": "alloy", **members}
    return json_reader(read_speech).read(
        IncomingBody(json.dumps(body).encode(), "application/json", None, max_n=8)
    )


def routed(request: InferenceRequest) -> RoutingRequest:
    extent = request.extent
    return RoutingRequest(RequestKind.SPEECH, "m", 10, 40, 0, OUTPUT, extent=extent)


def test_no_bundled_price_charges_more_than_the_bound() -> None:
    units, request = SPEC.units, routed(asked(input="Ünicode " * 40))
    assert units is not None
    most = units.most(request)
    uses = [
        most, units.estimate(request, 0), units.estimate(request, most.output),
        TokenCounts(characters=most.characters),
        TokenCounts(input=40, output=most.output, audio_output=most.output),
    ]  # fmt: skip
    checked = 0
    for version, draft in enumerate(bundled_seed().drafts, 1):
        price = Price(version, draft.name, draft.book, 0, draft.terms)
        bound = units.bound_pusd(price, request, 0)
        assert all(cost_pusd(tokens, price) <= bound for tokens in uses), draft.name
        checked += bool(price.terms.character_pusd)
    assert checked > 20


def test_characters_are_counted_as_they_are_written() -> None:
    extent = asked(input="Grüße 👋").extent
    assert extent is not None
    assert extent.characters == 7
    slow, fast = asked(speed=0.5).extent, asked(speed=2.0).extent
    assert slow is not None
    assert fast is not None
    assert slow.output_tokens_bound == 2 * fast.output_tokens_bound


def test_streams_of_events_are_asked_for_by_their_format() -> None:
    assert asked(stream_format="sse").stream
    assert not asked(stream_format="audio").stream
    assert not asked().stream


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"input": ""}, "input"), ({"input": None}, "input"), ({"input": ["x"]}, "input"),
        ({"input": "x" * (CHARACTERS_MOST + 1)}, "input"),
        ({"stream_format": "ws"}, "stream_format"), ({"speed": 5}, "speed"),
        ({"speed": 0.1}, "speed"), ({"n": 2}, "n"), ({"model": ""}, "model"),
        ({"messages": []}, "messages"), ({"voice": 5}, "voice"),
        ({"response_format": ["mp3"]}, "response_format"), ({"instructions": {}}, "instructions"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(change: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked(**change)
    assert caught.value.param == param
