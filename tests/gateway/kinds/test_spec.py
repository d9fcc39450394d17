"""The registry has an entry for every kind, and an entry is whole."""

from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.kinds import BATCH_PATHS, KIND_PATHS, KINDS
from gateway.kinds.spec import KindUnits, RequestKindSpec
from gateway.request.dialects.translated_paths import SPOKEN
from ledger.journals.records import TokenCounts
from ledger.journals.token_kinds import PER_TOKEN, PER_UNIT, TOKEN_KINDS, TokenKind
from ledger.prices import rates
from ledger.prices.rates import Price, PriceTerms, bound_pusd, cost_pusd, rates_from
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest


def test_every_kind_has_an_entry_of_its_own() -> None:
    assert list(KINDS) == list(RequestKind)
    assert all(spec.kind is kind for kind, spec in KINDS.items())


def test_no_path_is_served_by_two_kinds() -> None:
    assert len(KIND_PATHS) == sum(len(spec.paths) for spec in KINDS.values())
    assert set(KIND_PATHS).isdisjoint(SPOKEN)


def test_batches_take_what_openai_takes() -> None:
    assert BATCH_PATHS == ("/v1/chat/completions", "/v1/completions", "/v1/embeddings")


def test_a_fact_cannot_be_left_out() -> None:
    with pytest.raises(TypeError, match="missing"):
        RequestKindSpec(kind=RequestKind.CHAT)  # type: ignore[call-arg]  # that is what is tested
    with pytest.raises(TypeError, match="missing"):
        KindUnits(most=lambda _: TokenCounts())  # type: ignore[call-arg]  # as above


def test_spans_have_the_words_of_the_conventions() -> None:
    assert [spec.otel_operation for spec in KINDS.values()] == [
        "chat", "text_completion", "embeddings", "rerank", "transcription", "score",
        "moderation", "tokenize", "speech", "image_generation", "image_edit",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", RequestKind)
def test_answers_that_are_read_by_kind_have_units_of_their_own(kind: RequestKind) -> None:
    """Both come together today: `parse_answer` knows no searches and no seconds."""
    spec = KINDS[kind]
    assert (spec.units is None) == (spec.read_answer is None)


MOST = 1_000
OUTPUT = OutputMoments(0, 1.0, 1.0, 1.0)
UNITS = RequestUnits(
    searches=MOST, searches_bound=MOST, audio_ms=MOST, audio_ms_bound=MOST, characters=MOST,
    pictures=MOST, output_tokens=MOST, output_tokens_bound=MOST,
)  # fmt: skip


def bounds_of(kind: TokenKind, price: Price) -> list[tuple[int, int]]:
    """What so many of a kind cost, and its bound, for each kind of request that can have them."""
    if kind in PER_TOKEN:
        counts = {kind.field: MOST} | ({kind.part_of: MOST} if kind.part_of else {})
        bound = bound_pusd(price, prompt_tokens=MOST, output_tokens=MOST)
        return [(cost_pusd(TokenCounts(**counts), price), bound)]
    found = []
    for name, spec in KINDS.items():
        request = RoutingRequest(name, "m", MOST, MOST, MOST, OUTPUT, extent=UNITS)
        most = getattr(spec.units.most(request), kind.field) if spec.units is not None else 0
        if spec.units is not None and most:
            cost = cost_pusd(TokenCounts(**{kind.field: most}), price)
            found.append((cost, spec.units.bound_pusd(price, request, MOST)))
    return found


@pytest.mark.parametrize("kind", TOKEN_KINDS, ids=lambda kind: kind.field)
def test_each_kind_that_a_price_charges_for_raises_a_bound(kind: TokenKind) -> None:
    """One without would pass a hard budget: its cost would be beyond what is held."""
    listed = {other.field: 7 if other is kind else 0 for other in PER_TOKEN}
    amounts = {other.price: 7_000_000 if other is kind else 0 for other in PER_UNIT}
    price = Price(1, "a/b", "book", 0, PriceTerms(rates_from(listed), **amounts))
    bounds = bounds_of(kind, price)
    assert bounds, "no kind of request has any of it"
    assert all(0 < cost <= bound for cost, bound in bounds)


def test_control_a_kind_without_its_bound_costs_more(monkeypatch) -> None:
    monkeypatch.setattr(rates, "_of_prompt", attrgetter("input", "cached"))
    listed = dict.fromkeys((other.field for other in PER_TOKEN), 0) | {"audio_input": 7}
    price = Price(1, "a/b", "book", 0, PriceTerms(rates_from(listed)))
    (kind,) = (kind for kind in PER_TOKEN if kind.field == "audio_input")
    ((cost, bound),) = bounds_of(kind, price)
    assert cost > bound


AMOUNT = st.one_of(st.just(0), st.integers(0, 10**9))
RATES = st.fixed_dictionaries(
    {"input": AMOUNT, "output": AMOUNT},
    optional=dict.fromkeys(("cached", "audio_input", "audio_output", "image_output"), AMOUNT),
)
TERMS = st.builds(
    PriceTerms, RATES.map(rates_from), request_pusd=AMOUNT,
    uplift_ppm=st.sampled_from([0, 100_000, 123_457]),
    second_pusd=AMOUNT, search_pusd=AMOUNT, character_pusd=AMOUNT, picture_pusd=AMOUNT,
)  # fmt: skip
BY_UNITS = [kind for kind, spec in KINDS.items() if spec.units is not None]


@pytest.mark.parametrize("kind", BY_UNITS)
@given(terms=TERMS)
def test_whatever_a_price_lists_its_bound_has_all_of_it_and_its_fee_once(kind, terms) -> None:
    """Red before: seconds of a sound beside the tokens of its words, and a fee that stood twice."""
    units, price = KINDS[kind].units, Price(1, "a/b", "book", 0, terms)
    assert units is not None
    request = RoutingRequest(kind, "m", MOST, MOST, MOST, OUTPUT, extent=UNITS)
    bound, most = units.bound_pusd(price, request, MOST), units.most(request)
    uncounted = ({}, {"audio_input": 0}, {"output": 0, "audio_output": 0, "image_output": 0})
    for without in uncounted:
        assert cost_pusd(replace(most, **without), price) <= bound
    free = PriceTerms(rates_from({"input": 0, "output": 0}), request_pusd=terms.request_pusd)
    fee_pusd = units.bound_pusd(Price(1, "a/b", "book", 0, free), request, MOST)
    assert fee_pusd == terms.request_pusd
