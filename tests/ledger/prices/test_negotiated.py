"""Negotiated prices out of a spreadsheet: exact, or every fault with its line and column."""

from datetime import date

import pytest

from ledger.prices.drafts import APPROVED_RANK
from ledger.prices.negotiated import parse_price_csv
from ledger.prices.rates import KINDS, PriceError, PriceTerms, TierRates, rates_from

DAY_US = 86_400_000_000
NO_NUMBER = "is not a number: write digits and a decimal point, such as 0.15"
HEAD = "name,tier,above_tokens,input_usd_per_million,cached_usd_per_million,output_usd_per_million"


def parse(text: str):
    return parse_price_csv(text.encode(), book="deal.csv")


def faults(text: str) -> list[str]:
    with pytest.raises(PriceError) as caught:
        parse(text)
    return str(caught.value).removeprefix("deal.csv: ").split("\ndeal.csv: ")


def test_a_price_with_tiers_thresholds_and_dates():
    (draft,) = parse(
        f"{HEAD},usd_per_request,uplift_percent,from,until,source,source_date\n"
        "openai/gpt-5.5,,,4.5,0.45,27,0.001,10,2026-11-01,2027-10-31,contract 17,2026-10-30\n"
        "openai/gpt-5.5,Batch,,2.25,,13.5,,,2026-11-01,,,\n"
        "openai/gpt-5.5,,272000,9,0.9,,,,2026-11-01,,,\n"
    )
    base = {"input": 4_500_000, "cached": 450_000, "output": 27_000_000}
    assert draft.terms == PriceTerms(
        rates_from(base),
        (
            TierRates("batch", 0, rates_from(base | {"input": 2_250_000, "output": 13_500_000})),
            TierRates(
                "standard", 272_000, rates_from(base | {"input": 9 * 10**6, "cached": 900_000})
            ),
        ),
        request_pusd=10**9,
        uplift_ppm=100_000,
    )
    assert (draft.name, draft.book, draft.rank) == ("openai/gpt-5.5", "deal.csv", APPROVED_RANK)
    assert (draft.source, draft.source_date) == ("contract 17", "2026-10-30")
    assert draft.effective_from_us == 20_758 * DAY_US  # 2026-11-01
    assert draft.effective_until_us == 21_123 * DAY_US  # the day after 2027-10-31


def test_a_price_until_the_last_of_all_days():
    """31 December 9999 is written for no end; the day after it is none."""
    (draft,) = parse(f"{HEAD},until,source\nx/y,,,4.5,0.45,27,9999-12-31,contract 17\n")
    assert draft.effective_until_us > 2**57


def test_every_kind_and_unit():
    columns = [f"{kind}_usd_per_million" for kind in KINDS]
    cells = map(str, range(1, len(KINDS) + 1))
    (draft,) = parse(f"name,{','.join(columns)}\na/b,{','.join(cells)}\n")
    assert draft.terms.rates == rates_from({k: n * 10**6 for n, k in enumerate(KINDS, start=1)})
    units = "name,input_usd_per_thousand,output_usd_per_token,cached_usd_per_million\n"
    (draft,) = parse(units + "a/b,0.00015,6E-7,0.075\n")
    assert draft.terms.rates == rates_from({"input": 150_000, "output": 600_000, "cached": 75_000})
    assert draft.effective_from_us is None


def test_one_name_may_have_several_prices_in_time():
    drafts = parse(f"{HEAD},from\na/b,,,1,,2,\na/b,,,3,,4,2027-01-01\n")
    assert [draft.terms.rates.input for draft in drafts] == [10**6, 3 * 10**6]
    assert [draft.effective_from_us for draft in drafts] == [None, 20_819 * DAY_US]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("0,15", "`0,15` has a decimal comma: write `0.15`"),
        ("$0.15", f"`$0.15` {NO_NUMBER}"),
        ("1,000.00", f"`1,000.00` {NO_NUMBER}"),
        ("-1", "`-1` is negative"),
        ("nan", f"`nan` {NO_NUMBER}"),
        ("=A1*2", f"`=A1*2` {NO_NUMBER}"),
        ("0.0000001", "1E-7 USD per million is finer than a pico-USD per token"),
    ],
)
def test_numbers_that_are_none(cell, words):
    text = "name;output_usd_per_million;input_usd_per_million\na/b;1;" + cell
    assert faults(text) == [f"line 2, column `input_usd_per_million`: {words}"]


def test_every_fault_is_told_at_once():
    text = (
        f"{HEAD},from,until,source_date\n"
        "a/b,,2k,1,,2,,,\n"
        ",,,x,,2,01/11/2026,2026-02-30,\n"
        "c/d,batch,,1,,2,,,yesterday\n"
    )
    with pytest.raises(ValueError, match="day") as no_day:  # each Python has its own words
        date.fromisoformat("2026-02-30")
    assert faults(text) == [
        "line 2, column `above_tokens`: `2k` is not a whole number of tokens, such as 200000",
        f"line 3, column `input_usd_per_million`: `x` {NO_NUMBER}",
        "line 3, column `name`: is empty",
        "line 3, column `from`: `01/11/2026` is not a date such as 2026-11-01",
        f"line 3, column `until`: `2026-02-30`: {no_day.value}",
        "line 4, column `source_date`: `yesterday` is not a date such as 2026-11-01",
    ]


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("name,input,output_usd_per_million", ("line 1, column `input`: the column names no unit: "
         "write `input_usd_per_million`")),
        ("name,inptu_usd_per_million,output_usd_per_million", ("line 1, column "
         "`inptu_usd_per_million`: the column is unknown; did you mean `input_usd_per_million`?")),
        ("model,input_usd_per_million", "line 1, column `model`: the column is unknown"),
        ("name,source", "line 1: no column has a price, such as `input_usd_per_million`"),
        ("name,input_usd_per_token,input_usd_per_million", ("line 1: `input` is stated in two"
         " units")),
    ],
)  # fmt: skip
def test_columns(head, words):
    assert words in faults(f"{head}\na/b,1,2\n")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("", "no prices: below the first line there is nothing"),
        ("a/b,batch,,1,,2", "line 2: `a/b` has no row of the standard tier"),
        ("a/b,,,1,,2\na/b,standard,,1,,2", "line 3: `a/b` has two standard rows"),
        ("a/b,,,1,,", "line 2: both `input` and `output` must be priced"),
        ("a/b,,,0,,0", ("line 2: every price is 0: a free model cannot be distinguished "
         "from a missing price")),
        ("ab,,,1,,2", "line 2: the name must be `provider/model`"),
        ("a/b,,,1,,2\na/b,flex,5,1,,2", "line 2: tier `flex` has no rates for short prompts"),
        ("a/b,,,1,,2\na/b,flex,,1,,2\na/b,flex,,1,,2",
         "line 2: schedules must ascend by tier and threshold, each once"),
        ("a/b,,,1000000000000,,2", ("line 2: the dearest possible request does not fit a 64-bit "
         "integer")),
    ],
)  # fmt: skip
def test_rows_that_make_no_price(rows, words):
    assert words in faults(f"{HEAD}\n{rows}\n")


def test_what_belongs_to_the_standard_row():
    text = "name,tier,input_usd_per_million,output_usd_per_million,usd_per_request\n"
    found = faults(f"{text}a/b,,1,2,\na/b,batch,1,2,0.1\n")
    assert found == ["line 3, column `usd_per_request`: belongs on line 2, the standard row"]


def test_a_tier_is_named_as_answers_name_it_and_its_threshold_is_over_its_own_rates() -> None:
    (draft,) = parse(
        "name,tier,above_tokens,input_usd_per_million,output_usd_per_million\n"
        "x/y,,,1,10\nx/y,Fast,,2,20\nx/y,priority,5,4,\n"
    )
    found = [(each.tier, each.above_tokens, each.rates.output) for each in draft.terms.schedules]
    assert found == [("priority", 0, 20 * 10**6), ("priority", 5, 20 * 10**6)]


def test_searches_have_a_price_and_a_limit() -> None:
    head = "name,input_usd_per_million,output_usd_per_million,usd_per_search,max_searches\n"
    (draft,) = parse(head + "x/y,1,10,0.005,30\n")
    assert (draft.terms.search_pusd, draft.terms.searches_limit) == (5 * 10**9, 30)
    assert faults(head + "x/y,1,10,0.005,many\n") == [
        "line 2, column `max_searches`: `many` is not a whole number of searches, such as 200000"
    ]
