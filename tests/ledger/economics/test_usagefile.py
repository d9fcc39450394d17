"""Usage exports: OpenAI's two shapes and ours; what cannot be read is refused with its line."""

import io
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics.cost import TokenBasis
from ledger.economics.usagefile import UsageFileError, parse_usage, priced
from ledger.exports.attempts import COLUMNS
from ledger.exports.delimited import csv_lines
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceBook, PriceTerms, TierRates, rates_from

BOTH = TokenBasis.INPUT_OUTPUT
HEAD = (
    "start_time,end_time,start_time_iso,end_time_iso,project_id,num_model_requests,user_id,"
    "api_key_id,model,batch,service_tier,input_tokens,output_tokens,input_cached_tokens,"
    "input_uncached_tokens"
)
HOUR_S = 3600


def row(start: int, model: str, given: int, output: int, cached: int = 0, **more: object) -> str:
    end, batch = more.get("end", start + HOUR_S), more.get("batch", "false")
    requests, tier = more.get("requests", 10), more.get("tier", "default")
    return (
        f"{start},{end},,,proj_1,{requests},,,{model},{batch},{tier},{given},{output},{cached},"
        f"{given - cached}"
    )


def file(*rows: str) -> bytes:
    return "\n".join([HEAD, *rows]).encode()


def book(**listed: int) -> PriceBook:
    base = rates_from({"input": 100, "cached": 10, "output": 400})
    dear = rates_from({"input": 200, "cached": 20, "output": 800})
    half = rates_from({"input": 50, "cached": 5, "output": 200})
    schedules = (TierRates("batch", 0, half), TierRates("standard", 1_000, dear))
    terms = PriceTerms(base, schedules, **listed)
    return PriceBook([Price(1, "openai/gpt-4o", "test", 0, terms)])


def test_openais_csv() -> None:
    found = parse_usage(file(row(7200, "gpt-4o", 1_000, 200, 300), ",,,,,,,,,,,,,,"), "u.csv")
    (named,) = found.used
    assert (found.shape, found.finest_us) == ("OpenAI usage (CSV)", HOUR_S * 10**6)
    assert (named.name, named.tokens) == (
        "openai/gpt-4o",
        TokenCounts(input=700, cached=300, output=200),
    )
    assert named.volume(BOTH) == 1_200
    assert named.volume(TokenBasis.OUTPUT) == 200


def test_openais_answers_are_the_same() -> None:
    result = {"model": "gpt-4o", "input_tokens": 1_000, "output_tokens": 200,
              "input_cached_tokens": 300, "num_model_requests": 10, "batch": False}  # fmt: skip
    bucket = {"start_time": 7200, "end_time": 7200 + HOUR_S, "results": [result]}
    empty = {"start_time": 10_800, "end_time": 14_400, "results": []}
    page = {"object": "page", "data": [bucket, empty], "has_more": False}
    found = parse_usage(json.dumps([page]).encode(), "u.json")
    assert found.used == parse_usage(file(row(7200, "gpt-4o", 1_000, 200, 300)), "u.csv").used


def test_our_own_export() -> None:
    names = [column.name for column in COLUMNS]
    values = dict.fromkeys(names)
    values |= {"opened_at": 90 * 10**6, "backend": "api", "target": "openai/gpt-4o",
               "input_tokens": 700, "cached_tokens": 300, "output_tokens": 200,
               "cost_usd": 153_000}  # fmt: skip
    own = {**values, "backend": "own", "target": "pool:x/0", "cost_usd": 1,
           "compared_with": "openai/gpt-4o-mini", "compared_usd": 77}  # fmt: skip
    rows = [[named[name] for name in names] for named in (values, own)]
    text = "".join(csv_lines(COLUMNS, rows))
    found = parse_usage(text.encode(), "ours.csv")
    assert found.shape == "breakeven ledger export"
    assert [(use.name, use.billed_pusd) for use in found.used] == [
        ("openai/gpt-4o", 153_000), ("openai/gpt-4o-mini", 77),
    ]  # fmt: skip
    assert {use.start_us for use in found.used} == {60 * 10**6}
    assert priced(found, book()).pusd == {"openai/gpt-4o": 153_000, "openai/gpt-4o-mini": 77}


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("text", ["2026-11-01 00:00:00", "2026-11-01T01:00:00+01:00"])
def test_our_times_are_in_utc_wherever_they_are_read(monkeypatch, zone: str, text: str) -> None:
    """A spreadsheet drops the Z of our export."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        titles = "opened_at,backend,target,input_tokens,output_tokens"
        data = f"{titles}\n{text},api,openai/gpt-4o,0,5\n"
        (used,) = parse_usage(data.encode(), "ours.csv").used
    finally:
        monkeypatch.undo()
        time.tzset()
    assert used.start_us == 1_793_491_200_000_000


def test_a_bucket_is_priced_by_its_mean_prompt_tier_and_fees() -> None:
    found = parse_usage(file(row(0, "gpt-4o", 5_000, 100, 1_000, requests=10)), "u.csv")
    assert priced(found, book()).pusd == {"openai/gpt-4o": 4_000 * 100 + 1_000 * 10 + 100 * 400}
    long = parse_usage(file(row(0, "gpt-4o", 5_000, 100, requests=2)), "u.csv")
    assert priced(long, book()).pusd == {"openai/gpt-4o": 5_000 * 200 + 100 * 800}
    batch = parse_usage(file(row(0, "gpt-4o", 5_000, 100, batch="true")), "u.csv")
    assert priced(batch, book()).pusd == {"openai/gpt-4o": 5_000 * 50 + 100 * 200}
    fee = priced(found, book(request_pusd=7)).pusd["openai/gpt-4o"]
    assert fee == priced(found, book()).pusd["openai/gpt-4o"] + 70


def test_what_has_no_price_is_named_and_never_free() -> None:
    rows = file(row(0, "gpt-4o", 10, 1), row(0, "unheard-of", 10, 1, tier="flex"))
    cost = priced(parse_usage(rows, "u.csv"), book())
    assert cost.unpriced == ("openai/unheard-of",)
    assert set(cost.pusd) == {"openai/gpt-4o"}
    odd = priced(parse_usage(file(row(0, "gpt-4o", 10, 1, tier="flex")), "u.csv"), book())
    assert odd.other_tier == ("openai/gpt-4o",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"a,b\n1,2\n", "no column `input_tokens`, `model`"),
        (file(row(0, "m", 5, 1, 9)), "line 2: more cached tokens than input tokens"),
        (file(row(0, "m", 5, 1, end=0)), "no row|its end|tokens"),
        (file(row(9, "m", 5, 1, end=3)), "line 2: its end is not after its start"),
        (file(row(0, "m", -5, 1)), "line 2, column `input_tokens`: `-5` is not a count"),
        (file(row(0, "", 5, 1)), "line 2: tokens without a model"),
        (file(row(0, "m", 0, 0)), "no row with tokens"),
        (b'{"data": 3}', "no `data`"),
        (b'{"data"', "it is not JSON"),
    ],
)
def test_what_is_no_usage_is_refused(data: bytes, said: str) -> None:
    if said.startswith("no row|"):  # an end of 0 is no end: a day is taken
        assert parse_usage(data, "u.csv").finest_us == 86_400 * 10**6
        return
    with pytest.raises(UsageFileError, match=said.replace("`", ".")):
        parse_usage(data, "u.csv")


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9_999), st.integers(0, 999),
                          st.sampled_from(("a", "b"))), min_size=1, max_size=20))  # fmt: skip
def test_every_token_is_in_one_minute(rows) -> None:
    lines = [row(hour * HOUR_S, model, i, o) for hour, i, o, model in rows]
    total = {m: sum(i + o for _, i, o, model in rows if model == m) for m in "ab"}
    if not sum(total.values()):
        return
    found = parse_usage(file(*lines), "u.csv")
    for names in ({"a"}, {"b"}, {"a", "b"}):
        wanted = frozenset(f"openai/{name}" for name in names)
        minutes = found.minutes(BOTH, wanted)
        assert sum(minutes) == sum(total[name] for name in names)
        assert min(minutes) >= 0


def test_a_file_is_read_whatever_wrote_it() -> None:
    text = io.StringIO()
    text.write("\ufeff" + HEAD.replace(",", ";") + "\r\n")
    text.write(row(0, "gpt-4o", 10, 1).replace(",", ";") + "\r\n")
    assert parse_usage(text.getvalue().encode(), "u.csv").used[0].tokens.input == 10
