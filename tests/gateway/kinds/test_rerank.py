"""What a reranking may cost: the bound holds for whatever a target may count."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.kinds.inference_request import IncomingBody, InferenceRequest
from gateway.kinds.input_media import FETCHED
from gateway.kinds.rerank import DOCUMENTS_LIMIT, SPEC
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, cost_pusd
from ledger.prices.bundled import bundled_seed
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

OUTPUT = OutputMoments(0, 150.0, 45_000.0, 300.0)
EXTENT = RequestUnits(longest=0.1, searches=1, searches_bound=4)
RANKING = RoutingRequest(RequestKind.RERANK, "m", 10_000, 40_000, 0, OUTPUT, extent=EXTENT)


def asked(**members: Any) -> InferenceRequest:
    text = json.dumps({"model": "m", "query": "q", "documents": ["a"], **members}).encode()
    return SPEC.paths["/v1/rerank"].reader.read(
        IncomingBody(text, "application/json", None, max_n=8)
    )


def test_no_bundled_price_charges_more_than_the_bound() -> None:
    units = SPEC.units
    assert units is not None
    uses = [
        TokenCounts(input=40_000), TokenCounts(searches=4), TokenCounts(input=40_000, searches=4),
        units.estimate(RANKING, 0), units.most(RANKING),
    ]  # fmt: skip
    checked = 0
    for version, draft in enumerate(bundled_seed().drafts, 1):
        price = Price(version, draft.name, draft.book, 0, draft.terms)
        limit = units.bound_pusd(price, RANKING, 0)
        for tokens in uses:
            assert cost_pusd(tokens, price) <= limit, (price.name, tokens)
            checked += bool(price.terms.second_pusd or price.terms.search_pusd)
    assert checked > 250  # the control: prices by searches are among them


def test_a_ranking_is_never_free_of_its_query() -> None:
    assert SPEC.units is not None
    assert SPEC.units.estimate(RANKING, 0) == TokenCounts(input=10_000, searches=1)
    assert SPEC.units.most(RANKING) == TokenCounts(input=40_000, searches=4)
    assert SPEC.units.exact(RANKING)


def test_the_query_is_read_with_every_document() -> None:
    item, three = asked(), asked(documents=["a"] * 3)
    assert three.prompt_bytes == 3 * item.prompt_bytes
    assert three.extent is not None
    assert three.extent.longest == pytest.approx(1 / 3)


def test_an_instruction_is_read_with_every_document() -> None:
    """A vendor's member, of whatever name; numbers and switches are no text."""
    plain, three = asked(documents=["a"] * 3), ["a"] * 3
    told = asked(documents=three, instruct="i" * 50, top_n=2, return_documents=True, user="u" * 9)
    assert told.prompt_bytes == plain.prompt_bytes + 3 * 52
    assert asked(documents=three, rules=["i"]).prompt_bytes == plain.prompt_bytes + 3 * 5


PICTURE = "https://a.example/b.png"


@pytest.mark.parametrize(
    ("change", "files", "features"),
    [
        ({}, 0, ()),
        ({"documents": ["a: b/c", {"text": PICTURE}]}, 0, ()),
        ({"documents": [{"image": PICTURE}] * 3}, 3, FETCHED),
        ({"documents": [PICTURE, "data:image/png;base64,AA"]}, 2, FETCHED),
        ({"documents": ["a"] * 3, "query": {"image": PICTURE}}, 3, FETCHED),
    ],
)
def test_files_are_held_for_as_such(change: dict[str, Any], files: int, features: Any) -> None:
    """Red before: pictures of a ranking were held at the bytes of their addresses."""
    found = asked(**change)
    assert (found.files, found.features) == (files, frozenset(features))
    escaped = b'{"model":"m","query":"q","documents":["\\u0064ata:image/png;base64,AA"]}'
    read = SPEC.paths["/v1/rerank"].reader.read(
        IncomingBody(escaped, "application/json", None, max_n=8)
    )
    assert read.files == 1


def test_a_search_has_a_hundred_documents() -> None:
    extents = [asked(documents=["a"] * count).extent for count in (100, 101)]
    assert [extent.searches for extent in extents if extent is not None] == [1, 2]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"query": ""}, "query"), ({"query": None}, "query"), ({"documents": []}, "documents"),
        ({"documents": ["a"] * (DOCUMENTS_LIMIT + 1)}, "documents"), ({"top_n": -1}, "top_n"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(change: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked(**change)
    assert caught.value.param == param
