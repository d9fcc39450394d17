"""Pictures: the bound covers every form that the request leaves open, by picture and by token."""

import json
from typing import Any

import pytest

from backends.errors import BackendError
from gateway.errors import RequestError
from gateway.kinds.image_generation import (
    LARGE_TOKENS,
    PICTURES_MOST,
    SPEC,
    PictureRelay,
    read_image_generation,
    write_events,
)
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, cost_pusd
from ledger.prices.bundled import bundled_seed
from ledger.prices.picture_forms import form_parts, priced_forms
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

OUTPUT = OutputMoments(0, 1.0, 1.0, 1.0)


def asked(**members: Any) -> InferenceRequest:
    body = {"model": "m", "prompt": "a cat", **members}
    return json_reader(read_image_generation).read(
        IncomingBody(json.dumps(body).encode(), "", None, max_n=8)
    )


def routed(request: InferenceRequest) -> RoutingRequest:
    extent = request.extent
    return RoutingRequest(RequestKind.IMAGE_GENERATION, "m", 10, 40, 0, OUTPUT, extent=extent)


@pytest.mark.parametrize("n", [1, PICTURES_MOST])
def test_no_bundled_price_charges_more_than_the_bound(n: int) -> None:
    """In every form that a price lists, asked for or left open, and told by the answer."""
    units = SPEC.units
    assert units is not None
    checked = 0
    for version, draft in enumerate(bundled_seed().drafts, 1):
        price = Price(version, draft.name, draft.book, 0, draft.terms)
        for name in ("", *priced_forms(price.terms)):
            quality, size = form_parts(name)
            for form in ({"quality": quality, "size": size}, {"size": size}, {}):
                request = routed(asked(n=n, **{key: word for key, word in form.items() if word}))
                bound = units.bound_pusd(price, request, 0)
                told = {"quality": quality, "size": size} if name else {}
                tier, most = units.tier_of(price, request, told), units.most(request)
                for tokens in (most, units.estimate(request, 0), TokenCounts(input=40, pictures=n)):
                    assert cost_pusd(tokens, price, tier=tier) <= bound, (draft.name, name, form)
                    checked += 1
    assert checked > 10_000


def test_tokens_of_a_picture_cover_the_prices_of_one() -> None:
    """gpt-image models state a price of a token and one of a picture: the bound has as many."""
    units, checked = SPEC.units, 0
    assert units is not None
    drafts = {draft.name: draft.terms for draft in bundled_seed().drafts}
    token = drafts["openai/gpt-image-2"].rates.image_output
    for name, terms in drafts.items():
        rate = token if name.startswith("fal_ai/openai/gpt-image-2") else terms.rates.image_output
        if "gpt-image" not in name or not rate or not priced_forms(terms):
            continue
        if "edit" in name or "2.5" in name:
            continue
        for form, pusd in priced_forms(terms).items():
            quality, size = form_parts(form)
            request = routed(asked(size=size, **({"quality": quality} if quality else {})))
            assert units.most(request).image_output * rate >= pusd, (name, form)
            checked += 1
    assert checked > 30


def test_what_an_answer_says_of_its_form_counts() -> None:
    units = SPEC.units
    assert units is not None
    (terms,) = (draft.terms for draft in bundled_seed().drafts if draft.name == "azure/dall-e-3")
    price, request = Price(1, "azure/dall-e-3", "t", 0, terms), routed(asked(size="1024x1024"))
    assert units.tier_of(price, request) == "standard/1024x1024"
    told = {"quality": "hd", "size": "1792x1024"}
    assert units.tier_of(price, request, told) == "hd/1792x1024"
    assert units.tier_of(price, request, {"quality": 5, "size": None}) == "standard/1024x1024"


def test_a_stream_holds_more_for_what_it_shows() -> None:
    plain, shown = asked(quality="low").extent, asked(quality="low", stream=True).extent
    assert plain is not None
    assert shown is not None
    assert plain.output_tokens_bound < shown.output_tokens_bound < LARGE_TOKENS


def picture(kind: str, **members: Any) -> bytes:
    return (
        b"data: " + json.dumps({"type": f"image_generation.{kind}", **members}).encode() + b"\n\n"
    )


def test_a_stream_counts_its_pictures() -> None:
    relay = PictureRelay(2)
    assert relay.usage is None
    for kind in ("partial_image", "completed"):
        event = picture(kind, size="1024x1024", quality="low")
        assert relay.feed(event) == event
    last = picture("completed", usage={"output_tokens": 5, "input_tokens": 1, "total_tokens": 6})
    assert relay.feed(last) == b""
    assert relay.finish() == last
    assert relay.usage == {
        "output_tokens": 5, "input_tokens": 1, "total_tokens": 6, "generated_images": 2,
        "size": "1024x1024", "quality": "low",
    }  # fmt: skip
    assert SPEC.usage(relay.usage) == TokenCounts(input=1, output=5, image_output=5, pictures=2)
    with pytest.raises(BackendError):
        PictureRelay(1).finish()


def counted(output: int) -> dict[str, int]:
    return {"input_tokens": 1, "output_tokens": output, "total_tokens": output + 1}


def made(place: int) -> bytes:
    return picture("partial_succeeded", image_index=place, url="u", size="2048x2048")


FAILED = picture("partial_failed", image_index=1, error={"code": "x", "message": "sensitive"})


@pytest.mark.parametrize(
    ("figures", "output"),
    [
        ((272, 272), 544), ((272, 300), 572), ((300, 250), 550), ((272, 544), 544),
        ((272, 272, 272), 816), ((272, 544, 816), 816), ((0, 544), 544),
    ],
)  # fmt: skip
def test_usage_of_each_picture_adds_up(figures: tuple[int, ...], output: int) -> None:
    """Red before: all pictures of a stream cost what the dearest of them did."""
    relay = PictureRelay(len(figures))
    for figure in figures:
        relay.feed(picture("completed", b64_json="A", usage=counted(figure)))
    assert relay.usage_final
    assert relay.usage == {**counted(output), "generated_images": len(figures)}


@pytest.mark.parametrize(
    ("events", "pictures"),
    [((made(0), made(1)), 2), ((made(0), FAILED), 1), ((FAILED, made(1)), 1), ((made(0),), 1)],
)
def test_one_end_of_all_pictures_ends_them(events: tuple[bytes, ...], pictures: int) -> None:
    """Red before: two pictures cost one, and one that failed ended the stream and was free."""
    relay = PictureRelay(2)
    last = picture("completed", usage={**counted(9), "generated_images": pictures})
    assert b"".join(map(relay.feed, events)) == b"".join(events)
    assert not relay.is_ended
    assert relay.feed(last) + relay.finish() == last
    assert relay.usage is not None
    assert SPEC.usage(relay.usage).pictures == pictures


@pytest.mark.parametrize(
    "first",
    [picture("partial_image", usage=counted(9)), picture("completed", usage=counted(9))],
)
def test_usage_that_a_picture_came_behind_is_not_of_all(first: bytes) -> None:
    """Red before: the figure of a sketch, or of the first picture, was that of all."""
    relay = PictureRelay(2)
    relay.feed(first)
    while not relay.is_ended:
        relay.feed(picture("completed", b64_json="A"))
    assert (relay.usage_behind, relay.usage_final) == (True, False)


def test_pictures_that_all_fail_are_an_error() -> None:
    relay = PictureRelay(1)
    with pytest.raises(BackendError):
        relay.feed(FAILED)
    assert relay.usage is None


@pytest.mark.parametrize("event", [made(0), picture("completed", b64_json="A", usage=counted(9))])
def test_a_stream_that_breaks_off_tells_of_some_pictures_alone(event: bytes) -> None:
    relay = PictureRelay(2)
    relay.feed(event)
    assert (relay.usage_behind, relay.usage_final) == (True, False)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"prompt": ""}, "prompt"), ({"prompt": ["x"]}, "prompt"), ({"n": 0}, "n"),
        ({"n": PICTURES_MOST + 1}, "n"), ({"partial_images": 4}, "partial_images"),
        ({"image": "data:image/png;base64,AA"}, "image"), ({"image_urls": ["u"]}, "image_urls"),
        ({"messages": []}, "messages"), ({"size": 5}, "size"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(change: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked(**change)
    assert caught.value.param == param


def test_an_answer_in_one_piece_becomes_events() -> None:
    usage = {"input_tokens": 1, "output_tokens": 5, "total_tokens": 6}
    whole = {"created": 7, "size": "1024x1024", "data": [{"b64_json": "A"}, {"b64_json": "B"}],
             "usage": usage}  # fmt: skip
    relay = PictureRelay(2)
    text = write_events(json.dumps(whole).encode())
    assert relay.feed(text) + relay.finish() == text
    assert relay.usage == {**usage, "generated_images": 2, "size": "1024x1024"}
    assert b'"usage"' not in text.split(b"\n\n")[0]
    bare = json.dumps({"data": [{"url": "u"}]}).encode()
    assert json.loads(write_events(bare).partition(b"data: ")[2])["url"] == "u"
