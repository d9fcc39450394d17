import json
import subprocess
import sys
from decimal import Decimal
from importlib.metadata import version

import pytest

from ledger.journals.records import TokenCounts
from ledger.journals.token_kinds import PER_UNIT
from ledger.prices import bundled as pricebook
from ledger.prices.book import STANDARD, PriceBook, PriceError, bound_pusd, cost_pusd
from ledger.prices.bundled import (
    RELEASE_DATES,
    bundled_seed,
    diff,
    normalised,
    seed_from_map,
)
from ledger.prices.rates import PriceTerms, rates_from
from ledger.prices.unread_terms import unlimited_terms

FREE = PriceTerms(rates_from({"input": 0, "output": 0}))


@pytest.fixture(scope="module")
def seed():
    return bundled_seed()


@pytest.fixture(scope="module")
def book(seed):
    return PriceBook(diff([], seed.drafts, at_us=0).prices(1))


def row(**fields):
    base = {
        "litellm_provider": "openai",
        "mode": "chat",
        "input_cost_per_token": 3e-06,
        "output_cost_per_token": 1.5e-05,
    }
    return base | fields


def seeded(document):
    return seed_from_map(json.dumps(document), source_date="2026-10-21")


@pytest.mark.parametrize(
    ("key", "provider", "name"),
    [
        ("gpt-4o-mini", "openai", "openai/gpt-4o-mini"),
        ("deepseek/deepseek-chat", "deepseek", "deepseek/deepseek-chat"),
        ("deepinfra/Qwen/Qwen3-32B", "deepinfra", "deepinfra/Qwen/Qwen3-32B"),
        ("gemini-2.5-pro", "vertex_ai-language-models", "vertex_ai/gemini-2.5-pro"),
        ("vertex_ai/claude-haiku-4-5", "vertex_ai-anthropic_models", "vertex_ai/claude-haiku-4-5"),
        ("anthropic.claude-haiku", "bedrock_converse", "bedrock/anthropic.claude-haiku"),
        ("davinci-002", "text-completion-openai", "openai/davinci-002"),
        ("amazon-nova/pro", "amazon_nova", "amazon_nova/amazon-nova/pro"),
    ],
)
def test_names_are_provider_and_model(key, provider, name):
    assert normalised(key, provider) == name


def test_a_row_becomes_a_draft_with_its_source():
    found = seeded(
        {"m": row(source="https://x", deprecation_date="2026-12-11"), "n": row(source="hearsay")}
    )
    first, second = found.drafts
    assert (first.name, first.book, first.rank) == ("openai/m", "litellm", 0)
    assert (first.source, first.source_date, first.retired_on) == (
        "https://x",
        "2026-10-21",
        "2026-12-11",
    )
    assert (second.source, second.retired_on) == (None, None)


def test_rows_that_are_not_priced_per_token_are_left_out():
    found = seeded(
        {
            "sample_spec": row(mode="one of: chat, embedding"),
            "film": row(mode="video_generation"),
            "note": {"mode": "chat"},
            "free": row(input_cost_per_token=0, output_cost_per_token=0),
        }
    )
    assert found.drafts == ()
    assert [refusal.name for refusal in found.refused] == ["openai/free"]


def test_a_prefixed_key_wins():
    found = seeded({"m": row(input_cost_per_token=1e-06), "openai/m": row()})
    assert [draft.terms.rates.input for draft in found.drafts] == [3_000_000]


def test_regional_surcharges_are_rows_of_their_own():
    found = seeded(
        {
            "a": row(
                regional_processing_uplift_multiplier_eu=1.1,
                regional_processing_uplift_multiplier_us=1.0,
            ),
            "b": row(regional_endpoint_uplift_multiplier=1.25),
            "c": row(provider_specific_entry={"us": 1.1}),
            "d": row(provider_specific_entry={"fast": 2.0}),
        }
    )
    assert {draft.name: draft.terms.uplift_ppm for draft in found.drafts} == {
        "openai/a": 0, "openai/a#eu": 100_000, "openai/b": 0, "openai/b#regional": 250_000,
        "openai/c": 0, "openai/c#us": 100_000, "openai/d": 0,
    }  # fmt: skip


def test_noise_is_rounded_and_other_charges_are_named():
    found = seeded({"m": row(input_cost_per_image=1)})
    text = '{"m": ' + json.dumps(row()).replace("3e-06", "3.0000000000000001e-06") + "}"
    (draft,) = seed_from_map(text, source_date=None).drafts
    assert draft.terms.rates == found.drafts[0].terms.rates
    assert found.drafts[0].terms.unread == ("input_cost_per_image",)


def test_the_bundled_map_is_read_without_importing_litellm():
    script = (
        "import sys, ledger.prices.bundled as p; seed = p.bundled_seed();"
        "print(len(seed.drafts), 'litellm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    count, imported = done.stdout.split()
    assert int(count) > 3000
    assert imported == "False"


def test_the_pinned_release_has_its_date():
    assert version("litellm") in RELEASE_DATES


def test_a_missing_map_is_said(monkeypatch):
    monkeypatch.setattr(pricebook, "find_spec", lambda name: None)
    with pytest.raises(PriceError, match="not installed"):
        bundled_seed()


def test_every_bundled_price_passes_its_dry_run(seed, book):
    assert len(book) == len(seed.drafts)
    assert len(seed.refused) < len(seed.drafts) / 10
    terms = [draft.terms for draft in seed.drafts]
    free = {draft.name for draft in seed.drafts if draft.terms == FREE}
    assert all("moderation" in name for name in free)  # a price of zero that is stated
    assert all(
        term.rates.input or any(getattr(term, kind.price) for kind in PER_UNIT)
        for term in terms
        if term != FREE
    )


@pytest.mark.parametrize(
    ("name", "usd_per_million"),
    [  # input, cached, output: providers' price pages as the map of 2026-10-21 states them
        ("openai/gpt-4o-mini", ("0.15", "0.075", "0.60")),
        ("openai/gpt-4o", ("2.50", "1.25", "10")),
        ("openai/gpt-4.1-mini", ("0.40", "0.10", "1.60")),
        ("openai/gpt-5-mini", ("0.25", "0.025", "2")),
        ("anthropic/claude-haiku-4-5", ("1", "0.10", "5")),
        ("anthropic/claude-sonnet-4-5", ("3", "0.30", "15")),
        ("gemini/gemini-2.5-flash", ("0.30", "0.03", "2.50")),
    ],
)
def test_well_known_prices(book, name, usd_per_million):
    rates = book.find(name, 0).terms.rates
    found = (rates.input, rates.cached, rates.output)
    assert found == tuple(int(Decimal(usd) * 1_000_000) for usd in usd_per_million)


def test_a_long_prompt_a_tier_and_a_region_of_one_model(book):
    tokens = TokenCounts(input=300_000, output=1000)
    model = book.find("openai/gpt-5.5", 0)
    assert cost_pusd(TokenCounts(input=1000), model) == 1000 * 5_000_000
    assert cost_pusd(tokens, model) == 300_000 * 10_000_000 + 1000 * 45_000_000
    assert cost_pusd(tokens, model, tier="flex") * 2 == cost_pusd(tokens, model)
    regional = book.find("openai/gpt-5.5#eu", 0)
    assert cost_pusd(tokens, regional) * 10 == cost_pusd(tokens, model) * 11


def test_no_bundled_price_can_cost_more_than_its_bound(book):
    """The whole prompt and the whole output in each kind, at sizes around every threshold."""
    cases = 0
    for price in book.prices_in_force(0):
        steps = {schedule.above_tokens for schedule in price.terms.schedules} | {1000}
        tiers = {schedule.tier for schedule in price.terms.schedules} | {STANDARD}
        for size in {step + more for step in steps for more in (0, 1, 5000)}:
            shapes = [
                TokenCounts(input=size, output=size),
                TokenCounts(cached=size, output=size, reasoning=size),
                TokenCounts(cache_write=size, output=size, audio_output=size),
                TokenCounts(cache_write_1h=size),
                TokenCounts(audio_input=size),
            ]
            bound = bound_pusd(price, prompt_tokens=size, output_tokens=size)
            for tier in tiers:
                bound_of_tier = bound_pusd(
                    price, prompt_tokens=size, output_tokens=size, tiers=(tier,)
                )
                assert bound_of_tier <= bound
                for tokens in shapes:
                    assert cost_pusd(tokens, price, tier=tier) <= bound_of_tier
                    cases += 1
    assert cases >= 100_000


@pytest.mark.parametrize(
    ("name", "tokens", "usd"),
    [
        ("openai/gpt-4o-search-preview", TokenCounts(input=20, output=10), "0.02515"),
        (
            # 7,000 tokens of citations are charged as input.
            "perplexity/sonar-deep-research",
            TokenCounts(input=7_020, output=73_300, reasoning=73_000, searches=18),
            "0.32544",
        ),
    ],
)
def test_searches_of_every_request_are_in_the_price(book, name, tokens, usd):
    assert cost_pusd(tokens, book.find(name, 0)) == Decimal(usd) * 10**12


def test_few_bundled_prices_are_partly_known_for_plain_requests(seed):
    """Whatever is new here is refused where a limit on money applies: look at what it is."""
    partly = {draft.name for draft in seed.drafts if unlimited_terms(draft.terms.unread, ())}
    assert partly == {
        "aihubmix/gemini-3-flash-preview-search",
        "gemini/gemini-omni-1.1-flash", "gemini/gemini-omni-flash-preview",
        "perplexity/perplexity/sonar", "perplexity/sonar-deep-research",
        "vercel_ai_gateway/perplexity/sonar", "vercel_ai_gateway/perplexity/sonar-pro",
        "vercel_ai_gateway/perplexity/sonar-reasoning",
        "vercel_ai_gateway/perplexity/sonar-reasoning-pro",
        "vertex_ai/deep-research-pro-preview-12-2025", "vertex_ai/gemini-omni-1.1-flash",
        "vertex_ai/gemini-omni-1.1-flash-preview", "vertex_ai/gemini-omni-flash-preview",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "odd", "fault"),
    [
        ("m", {"input_cost_per_token": 1e9}, "does not fit a 64-bit integer"),
        ("m", {"input_cost_per_request": 1e40}, "does not fit a 64-bit integer"),
        ("m", {"output_cost_per_token": 1e40}, "does not fit a 64-bit integer"),
        ("m", {"tiered_pricing": [5]}, "`tiered_pricing` has 5, which is not a range"),
        ("m", {"tiered_pricing": [{"range": ["a", "b"]}]}, "not a range"),
        ("m", {"tiered_pricing": [{"range": []}]}, "not a range"),
        ("m", {"tiered_pricing": [{"range": [-5, 9]}]}, "not a range"),
        ("", {}, "the name must be `provider/model`"),
        ("a\0b", {}, "the name must be printable"),
        ("a\ud800", {}, "the name must be printable"),
        (
            "1024-x-1024/m",
            {"mode": "image_generation", "input_cost_per_image": -1, "input_cost_per_token": None},
            "`input_cost_per_image` is -1, which is not a price",
        ),
    ],
)
def test_a_row_that_cannot_be_charged_costs_no_other_row_its_price(key, odd, fault):
    found = seeded({key: row(**odd), "whole": row()})
    assert [draft.name for draft in found.drafts] == ["openai/whole"]
    assert len(diff([], found.drafts, at_us=0).rows) == 1
    (refusal,) = found.refused
    assert fault in refusal.text


def test_a_number_that_no_memory_holds_is_refused():
    text = json.dumps({"m": row(), "whole": row()}).replace("3e-06", "1e999999999", 1)
    found = seed_from_map(text, source_date=None)
    assert [draft.name for draft in found.drafts] == ["openai/whole"]
    assert "too many digits" in found.refused[0].text


@pytest.mark.parametrize(
    "odd", [5, None, [], "x", {"litellm_provider": "openai", "mode": ["chat"]}]
)
def test_what_is_no_row_is_left_out(odd):
    assert [draft.name for draft in seeded({"m": odd, "n": row()}).drafts] == ["openai/n"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not JSON"), ('{"a": ', "not JSON"), ("[" * 5000, "not JSON"), ("[]", "a mapping"),
        ("null", "a mapping"), ("5", "a mapping"),
    ],
)  # fmt: skip
def test_what_is_no_map_is_refused(text, fault):
    with pytest.raises(PriceError, match=fault):
        seed_from_map(text, source_date=None)


def test_every_row_of_the_installed_map_that_has_a_price_can_be_charged(seed):
    assert not [remark for remark in seed.refused if "64-bit" in remark.text]
