"""One table of token kinds: the typed structs and the columns say the same as its entries."""

import msgspec
import pytest

from ledger.journals import token_kinds
from ledger.journals.token_kinds import (
    OUTPUT_KINDS,
    PER_TOKEN,
    PER_UNIT,
    PROMPT_KINDS,
    TOKEN_COLUMNS,
    TOKEN_KINDS,
    UNLISTED,
    Side,
    TokenCounts,
    TokenKind,
    TokenRates,
    UnitPrices,
)
from ledger.orm.books import AttemptRow
from ledger.prices.rates import STANDARD, Price, PriceTerms, cost_pusd, prompt_tokens, rates_from
from ledger.reports.charges import PriceGroup, charges

STORED = (
    "input", "cached", "cache_write", "cache_write_1h", "output", "reasoning", "audio_input",
    "audio_output", "audio_ms", "searches", "image_output", "characters", "pictures",
)  # fmt: skip


def test_the_structs_have_a_field_for_each_entry() -> None:
    assert TokenCounts.__struct_fields__ == tuple(kind.field for kind in TOKEN_KINDS)
    assert TokenRates.__struct_fields__ == tuple(kind.price for kind in PER_TOKEN)
    assert set(UnitPrices.__struct_fields__) == {kind.price for kind in PER_UNIT}
    assert PriceTerms.__struct_fields__[-len(PER_UNIT) :] == UnitPrices.__struct_fields__


def test_what_is_stored_by_place_keeps_its_place() -> None:
    assert TokenCounts.__struct_fields__ == STORED, "a new kind comes last, here too: append it"


def test_a_price_that_was_stored_before_a_kind_existed_is_read(monkeypatch) -> None:
    """The kind costs what it costs where no price of its own is listed."""
    later = TokenKind(
        "later", "later_tokens", Side.OUTPUT, price="later", charge="later", meter="Later Tokens",
        map_terms=(), price_as="output", part_of="output",
    )  # fmt: skip
    stored = msgspec.json.encode(rates_from({"input": 3, "output": 5}))
    monkeypatch.setattr(token_kinds, "PER_TOKEN", (*PER_TOKEN, later))
    fields = [("later", int, UNLISTED)]
    extended = msgspec.defstruct("Extended", fields, bases=(TokenRates,), frozen=True)
    assert msgspec.json.decode(stored, type=extended).later == 5
    listed = {**msgspec.json.decode(stored), "later": 7}
    assert msgspec.convert(listed, extended).later == 7


def test_names_are_given_once() -> None:
    for name in ("field", "column", "price", "charge", "meter"):
        said = [getattr(kind, name) for kind in TOKEN_KINDS]
        assert len(set(said)) == len(said), name
    terms = [term for kind in TOKEN_KINDS for term in (*kind.map_terms, *kind.genai_terms)]
    assert len(set(terms)) == len(terms)


def test_attempts_have_a_column_for_each_entry() -> None:
    columns = list(AttemptRow.__table__.columns.keys())
    assert columns[-len(TOKEN_KINDS) :] == list(TOKEN_COLUMNS.values())


@pytest.mark.parametrize("kind", TOKEN_KINDS, ids=lambda kind: kind.field)
def test_a_kind_names_others_that_are_there(kind) -> None:
    fields = {other.field: other for other in TOKEN_KINDS}
    assert (kind.side is Side.BESIDE) == (kind in PER_UNIT)
    for name in (kind.part_of, kind.price_as, kind.unless):
        assert name is None or name in fields
    if kind.part_of is not None:
        assert fields[kind.part_of].side is kind.side


@pytest.mark.parametrize("kind", TOKEN_KINDS, ids=lambda kind: kind.field)
def test_each_kind_is_charged_at_its_own_price(kind) -> None:
    """Alone in a request, and with what includes it: `cost_pusd` and the charges agree."""
    listed = {other.field: 1_000 + place for place, other in enumerate(PER_TOKEN)}
    units = {other.price: 7_000_000 * other.unit.counts for other in PER_UNIT}
    price = Price(1, "a/b", "book", 0, PriceTerms(rates_from(listed), **units))
    count = 3 * kind.unit.counts
    counts = {kind.field: count} | ({kind.part_of: count} if kind.part_of else {})
    tokens = TokenCounts(**counts)
    expected = count * listed[kind.field] if kind in PER_TOKEN else 3 * units[kind.price]
    assert cost_pusd(tokens, price) == expected
    group = PriceGroup(0, (), 1, STANDARD, prompt_tokens(tokens), 0, False, 1, tokens, expected)
    (charge,) = charges(group, price, None)
    assert (charge.kind, charge.unit, charge.cost_pusd) == (kind.charge, kind.unit, expected)
    assert charge.quantity == 3 if kind in PER_UNIT else charge.quantity == count


def test_sums_over_the_table() -> None:
    tokens = TokenCounts(*range(1, len(TOKEN_KINDS) + 1))
    assert prompt_tokens(tokens) == sum(getattr(tokens, kind.field) for kind in PROMPT_KINDS)
    text = [kind.field for kind in PROMPT_KINDS if not kind.is_sound]
    assert tokens.prompt == sum(getattr(tokens, name) for name in text)
    parts = [kind.field for kind in OUTPUT_KINDS if kind.part_of == "output"]
    assert tokens.plain_output == tokens.output - sum(getattr(tokens, name) for name in parts)
