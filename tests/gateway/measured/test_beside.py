"""What rankings and transcripts may cost: the bound holds for whatever a target may count."""

import pytest

from gateway.measured.beside import bound, estimated, most
from ledger.journals.records import Tokens
from ledger.prices.book import Price, Terms, cost_pusd, rates_from
from ledger.prices.bundled import bundled_seed
from router.prompts import Extent
from router.request_kinds import Kind
from router.types import OutputMoments, Request

OUTPUT = OutputMoments(0, 150.0, 45_000.0, 300.0)


def request(kind: Kind, tokens: int, extent: Extent, *, most_tokens: int = 0) -> Request:
    return Request(kind, "m", tokens // 4, tokens, most_tokens, OUTPUT, extent=extent)


SOUND = request(
    Kind.TRANSCRIPTION,
    50 * 61 + 64,
    Extent(longest=0.0, audio_ms=60_000, audio_ms_bound=61_000, audio_known=True),
    most_tokens=20 * 61,
)
RANKING = request(Kind.RERANK, 40_000, Extent(longest=0.1, searches=1, searches_bound=4))


@pytest.fixture(scope="module")
def prices() -> list[Price]:
    drafts = bundled_seed().drafts
    return [
        Price(version, one.name, one.book, 0, one.terms) for version, one in enumerate(drafts, 1)
    ]


def test_no_bundled_price_charges_more_than_the_bound(prices) -> None:
    uses = {
        Kind.TRANSCRIPTION: [
            Tokens(audio_ms=61_000),
            Tokens(audio_input=50 * 61, output=1220),
            Tokens(input=64, audio_input=50 * 61, output=1220, audio_ms=61_000),
            estimated(SOUND, output=1220),
            most(SOUND),
        ],
        Kind.RERANK: [
            Tokens(input=40_000),
            Tokens(searches=4),
            Tokens(input=40_000, searches=4),
            estimated(RANKING),
            most(RANKING),
        ],
    }
    checked = 0
    for price in prices:
        for asked in (SOUND, RANKING):
            limit = bound(price, asked, asked.max_tokens)
            for tokens in uses[asked.kind]:
                assert cost_pusd(tokens, price) <= limit, (price.name, tokens)
                checked += bool(price.terms.second_pusd or price.terms.search_pusd)
    assert checked > 500  # the control: prices by seconds and searches are among them


def test_a_surcharge_is_in_the_bound() -> None:
    terms = Terms(rates_from({"input": 0, "output": 0}), uplift_ppm=100_001, second_pusd=7)
    price = Price(1, "a/b", "test", 0, terms)
    assert bound(price, SOUND, 0) >= cost_pusd(Tokens(audio_ms=61_000), price) > 61 * 7


def test_a_ranking_is_never_free_of_its_query() -> None:
    assert estimated(RANKING) == Tokens(input=10_000, searches=1)
    assert most(RANKING) == Tokens(input=40_000, searches=4)
