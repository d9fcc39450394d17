from datetime import UTC, datetime

import pytest

from ledger.journals.records import TokenCounts
from ledger.prices.book import PriceBook
from ledger.prices.drafts import diff
from ledger.prices.files import load_price_file, parse_price_file
from ledger.prices.rates import PriceError, PriceTerms, bound_pusd, cost_pusd

FILE = """
source: contract 2026-17
source_date: 2026-11-01
aliases: {openai/our-deployment: openai/gpt-4o-mini}
prices:
  openai/gpt-4o-mini:
    - usd_per_million: {input: 0.12, cached: 0.06, output: 0.48}
      tiers: {batch: {input: 0.06, output: 0.24}}
      above: [{tokens: 200000, usd_per_million: {input: 0.24, output: 0.96}}]
      until: 2026-11-30
    - usd_per_million: {input: 0.10, output: 0.40}
      from: 2026-12-01
  stand-in/chat:
    usd_per_million: {input: 1, reasoning: 3, output: 2}
    tiers: {flex: {output: 1}}
    above: [{tokens: 10, tier: flex, usd_per_million: {input: 5}}]
    usd_per_request: 0.005
    uplift_ppm: 100_000
    inclusive: true
    simulated: true
    source: made up for the demonstration
    source_date: 2026-11-20
"""


def us(*day):
    return int(datetime(*day, tzinfo=UTC).timestamp()) * 1_000_000


def book(text=FILE):
    parsed = parse_price_file(text, book="deal.yaml", rank=1)
    return PriceBook(diff([], parsed.drafts, at_us=0).prices(1), parsed.aliases)


def test_decimals_are_read_as_written():
    mini = book().find("openai/our-deployment", us(2026, 11, 15))
    assert cost_pusd(TokenCounts(input=1, cached=1, output=1), mini) == 120_000 + 60_000 + 480_000
    assert (mini.source, mini.source_date) == ("contract 2026-17", "2026-11-01")
    assert (mini.book, mini.rank, mini.simulated) == ("deal.yaml", 1, False)


def test_open_kinds_of_a_schedule_are_as_in_the_standard_rates():
    mini = book().find("openai/gpt-4o-mini", 0)
    assert cost_pusd(TokenCounts(input=1, cached=1), mini, tier="batch") == 60_000 + 60_000
    assert cost_pusd(TokenCounts(input=200_001), mini) == 200_001 * 240_000


def test_dates_are_utc_days_and_until_is_inclusive():
    prices = book()
    last = us(2026, 12, 1) - 1
    assert prices.find("openai/gpt-4o-mini", last).terms.rates.input == 120_000
    assert prices.find("openai/gpt-4o-mini", last + 1).terms.rates.input == 100_000


def test_everything_a_price_can_say():
    stand_in = book().find("stand-in/chat", 0)
    assert stand_in.simulated
    assert stand_in.source == "made up for the demonstration"
    assert stand_in.source_date == "2026-11-20"
    fee = 5_000_000_000
    # At the threshold itself the input costs 5; what is left open is as in the tier's own rates.
    long = cost_pusd(TokenCounts(input=10, output=4, reasoning=4), stand_in, tier="flex")
    assert long == (fee + 10 * 5_000_000 + 4 * 1_000_000) * 11 // 10
    # A stated output price is also the price of reasoning.
    short = cost_pusd(TokenCounts(output=4, reasoning=4), stand_in, tier="flex")
    assert short == (fee + 4 * 1_000_000) * 11 // 10
    assert bound_pusd(stand_in, prompt_tokens=1, output_tokens=1, tiers=("standard",)) == (
        (fee + 1_000_000 + 3_000_000) * 11 // 10
    )


def price(body):
    return f"prices:\n  a/b: {{{body}}}"


USD = "usd_per_million: {input: 1, output: 1}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[]", "must be a mapping"),
        ("{", "not YAML"),
        ("source_date: 2026-13-01", "not YAML: is no timestamp: month must be"),
        ("[" * 4000, "nested more than 100 deep"),
        ("prices: {? !!float snan : {}}", "is no float"),
        ("prices: {a/b: {usd_per_million: {input: 1:20.5, output: 1}}}", "not YAML"),
        ("rates: {}", "unknown key rates"),
        ("prices: 3", "prices: must be a mapping"),
        ("{}", "prices: must be a mapping"),
        ("aliases: 3\nprices: {}", "aliases: must be a mapping"),
        (price("usd_per_million: {input: 1}"), "must be priced"),
        (price("usd_per_million: {input: cheap, output: 1}"), "'cheap' is not a number"),
        (price("usd_per_million: {input: true, output: 1}"), "not a number"),
        (price("usd_per_million: {input: 0.0000001, output: 1}"), "finer"),
        (price("usd_per_million: {input: 1, output: 1, video: 1}"), "video"),
        (price(f"{USD}, since: 2026-01-01"), "unknown key since"),
        (price(f"{USD}, from: next year"), "is not a date"),
        (price(f"{USD}, source_date: spring"), "is not a date"),
        (price(f"{USD}, uplift_ppm: 1.1"), "not a whole number"),
        (price(f"{USD}, above: 5"), "must be a list"),
        (price(f"{USD}, above: [{{tokens: many, {USD}}}]"), "not a whole number"),
        (price(f"{USD}, tiers: [batch]"), "tiers: must be a mapping"),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_place(text, fault):
    with pytest.raises(PriceError, match=fault):
        parse_price_file(text, book="deal.yaml", rank=1)


def test_all_faulty_prices_are_named_together():
    text = "prices: {a/b: {usd_per_million: {input: 1}}, c/d: 3}"
    with pytest.raises(PriceError, match=r"deal.yaml: prices.a/b: .*; deal.yaml: prices.c/d: "):
        parse_price_file(text, book="deal.yaml", rank=1)


def test_a_file_is_named_by_its_last_part(tmp_path):
    path = tmp_path / "deal.yaml"
    path.write_text(FILE, encoding="utf-8")
    assert {draft.book for draft in load_price_file(path, rank=1).drafts} == {"deal.yaml"}
    with pytest.raises(PriceError, match="No such file"):
        load_price_file(tmp_path / "none.yaml", rank=1)


def test_searches_and_seconds_need_no_price_of_tokens():
    text = (
        "prices: {a/r: {usd_per_search: 0.002}, a/s: {usd_per_second: 0.0001},"
        " a/t: {usd_per_second: 0.0001, usd_per_million: {input: 2.5, output: 10}}}"
    )
    found = {draft.name: draft.terms for draft in parse_price_file(text, book="b", rank=1).drafts}
    assert (found["a/r"].search_pusd, found["a/r"].rates.output) == (2_000_000_000, 0)
    assert (found["a/s"].second_pusd, found["a/s"].rates.input) == (100_000_000, 0)
    assert found["a/t"].rates.audio_input == 2_500_000
    with pytest.raises(PriceError, match="usd_per_million: must be a mapping"):
        parse_price_file("prices: {a/n: {usd_per_request: 1}}", book="b", rank=1)
    with pytest.raises(PriceError, match="usd_per_search: 'x' is not a number"):
        parse_price_file("prices: {a/n: {usd_per_search: x}}", book="b", rank=1)


def test_a_file_says_that_it_is_complete_and_how_often_a_request_may_search():
    stated = "{usd_per_million: {input: 1, output: 2}, usd_per_search: 0.005, max_searches: 60}"
    plain = "{usd_per_million: {input: 1, output: 2}, complete: true}"
    file = parse_price_file(f"prices: {{a/x: {stated}, a/y: {plain}}}", book="b", rank=1)
    found = {draft.name: draft.terms for draft in file.drafts}
    assert (found["a/x"].search_pusd, found["a/x"].searches_limit) == (5 * 10**9, 60)
    assert [found[name].complete for name in ("a/x", "a/y")] == [False, True]
    with pytest.raises(PriceError, match="max_searches: 'x' is not a whole number"):
        parse_price_file(f"prices: {{a/x: {stated.replace('60', 'x')}}}", book="b", rank=1)


def test_a_file_says_whether_thoughts_are_billed_beside_the_limit() -> None:
    def terms(more: str) -> PriceTerms:
        text = f"prices: {{a/x: {{usd_per_million: {{input: 1, output: 2}}{more}}}}}"
        (draft,) = parse_price_file(text, book="b", rank=1).drafts
        return draft.terms

    read = [
        (terms(more).reasoning_outside, terms(more).reasoning_limit)
        for more in ("", ", reasoning: inside", ", reasoning: outside, max_reasoning: 65536")
    ]
    assert read == [(False, 0), (False, 0), (True, 65_536)]
    with pytest.raises(PriceError, match="reasoning: 'beside' is neither `inside` nor `outside`"):
        terms(", reasoning: beside")


def test_a_file_says_how_pictures_are_counted() -> None:
    def rule(more: str) -> str:
        text = f"prices: {{a/x: {{usd_per_million: {{input: 1, output: 2}}{more}}}}}"
        (draft,) = parse_price_file(text, book="b", rank=1).drafts
        return draft.terms.image_rule

    assert (rule(""), rule(", image_tokens: qwen-28")) == ("", "qwen-28")
    for wrong in ("acme", "5", "[qwen-28]"):
        with pytest.raises(PriceError, match=r"image_tokens: .* is none of openai-tiles"):
            rule(f", image_tokens: {wrong}")


@pytest.mark.parametrize(("word", "tier"), [("fast", "priority"), ("Priority", "priority")])
def test_a_tier_is_named_as_answers_name_it(word, tier) -> None:
    stated = f"usd_per_million: {{input: 1, output: 10}}, tiers: {{{word}: {{input: 2}}}}"
    (draft,) = parse_price_file(price(stated), book="b", rank=1).drafts
    assert [schedule.tier for schedule in draft.terms.schedules] == [tier]
    step = f", above: [{{tokens: 5, tier: {word}, usd_per_million: {{input: 4}}}}]"
    (draft,) = parse_price_file(price(stated + step), book="b", rank=1).drafts
    assert {schedule.tier for schedule in draft.terms.schedules} == {tier}


def test_a_long_prompt_of_a_tier_is_never_cheaper_than_a_short_one_by_what_is_left_open() -> None:
    stated = (
        "usd_per_million: {input: 1, output: 10}, tiers: {priority: {input: 2, output: 20}},"
        " above: [{tokens: 5, tier: priority, usd_per_million: {input: 4}}]"
    )
    (draft,) = parse_price_file(price(stated), book="b", rank=1).drafts
    assert [schedule.rates.output for schedule in draft.terms.schedules] == [20 * 10**6] * 2


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("tiers: {default: {input: 2}}", "tiers: `default` is the standard one"),
        ("tiers: {fast: {input: 2}, Priority: {input: 3}}", "tiers: `Priority` is stated twice"),
        ("inclusive: 'true'", "inclusive: 'true' is neither `true` nor `false`"),
        ("complete: 'yes'", "complete: 'yes' is neither `true` nor `false`"),
        ("simulated: 1", "simulated: 1 is neither `true` nor `false`"),
        ("complete: null", "complete: None is neither `true` nor `false`"),
    ],
)
def test_words_that_would_count_for_nothing_are_refused(more, fault) -> None:
    with pytest.raises(PriceError, match=fault):
        parse_price_file(price(f"{USD}, {more}"), book="b", rank=1)


def test_pictures_have_prices_by_form_and_speech_by_the_character() -> None:
    def stated(body: str) -> PriceTerms:
        (draft,) = parse_price_file(price(body), book="f", rank=1).drafts
        return draft.terms

    found = stated("usd_per_picture: 0.12, pictures: {1024x1024: 0.04, hd/1024x1792: 0.12}")
    assert [(step.tier, step.picture_pusd) for step in found.schedules] == [
        ("1024x1024", 40_000_000_000), ("hd/1024x1792", 120_000_000_000),
    ]  # fmt: skip
    assert found.picture_pusd == 120_000_000_000
    assert stated("usd_per_character: 0.000015").character_pusd == 15_000_000


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("usd_per_picture: 1, pictures: {1024-x-1024: 0.04}", "is written `1024x1024`"),
        ("usd_per_million: {input: 1, output: 1}, pictures: {hd: 0.04}", "`usd_per_picture`"),
        ("usd_per_picture: 1, pictures: [1]", "must be a mapping"),
    ],
)
def test_forms_that_would_not_be_found_are_refused(body: str, fault: str) -> None:
    with pytest.raises(PriceError, match=fault):
        parse_price_file(price(body), book="f", rank=1)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "prices:\n  o/m: {usd_per_request: 1}\n  o/m: {usd_per_request: 2}",
            "`o/m` is stated twice",
        ),
        (price("usd_per_million: {input: 1, output: 9, input: 2}"), "`input` is stated twice"),
        ("prices: {}\nprices: {}", "`prices` is stated twice"),
        (price("usd_per_million: {input: 010, output: 9}"), "write `010` in decimal"),
        (price("usd_per_million: {input: 1:30, output: 9}"), "write `1:30` in decimal"),
        (price("usd_per_million: {input: 0x10, output: 9}"), "write `0x10` in decimal"),
        (price("usd_per_million: {input: 1:30.5, output: 9}"), "is no float"),
    ],
)
def test_what_yaml_reads_otherwise_than_it_is_written_is_refused(text: str, fault: str) -> None:
    with pytest.raises(PriceError, match=fault):
        parse_price_file(text, book="b", rank=1)


def test_rows_that_share_terms_by_a_merge_may_state_their_own() -> None:
    text = (
        "prices:\n  o/a: &a {usd_per_million: &r {input: 1, output: 2}, uplift_ppm: 5}\n"
        "  o/b: {<<: *a, uplift_ppm: 7, usd_per_million: {<<: *r, output: 1_000}}"
    )
    _, draft = parse_price_file(text, book="b", rank=1).drafts
    assert (draft.terms.uplift_ppm, draft.terms.rates.input) == (7, 10**6)
    assert draft.terms.rates.output == 1_000 * 10**6
