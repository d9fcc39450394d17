"""The cost of every kind of request, beside two calculators that others wrote.

`make bench-prices` prints the table: cases by provider and tier, and every disagreement with who
is right. Cases are generated for each model that the price book, LiteLLM's map and `genai-prices`
all price: every kind of token from zero over one to huge, prompts on both sides of each threshold,
every service tier that all three list. All three must answer the same amount.
"""

import json
import os
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from genai_prices import Usage
from genai_prices.data_snapshot import get_snapshot
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from pricedifferences import LISTS, RULES, names_without_text

from ledger.journals.records import TokenCounts
from ledger.prices.book import (
    STANDARD,
    Price,
    PriceBook,
    UnpricedTierError,
    cost_pusd,
    prompt_tokens,
    rates_for,
)
from ledger.prices.bundled import PriceSeed, bundled_seed, diff
from ledger.prices.genaimap import PROVIDERS

warnings.simplefilter("ignore")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # its packaged map, not a download
import litellm  # noqa: E402  (as above)
import litellm.types.utils as litellm_types  # noqa: E402  (as above)

# A working day's peak hour, so that time-of-day discounts apply on neither side; the day on which
# the release of LiteLLM was published.
AT = datetime(2026, 10, 21, 2, 30, tzinfo=UTC)
CONTEXTS = {
    STANDARD: {}, "flex": {"service_tier": "flex"}, "priority": {"service_tier": "priority"},
    "batch": {"processing": "batch"},
}  # fmt: skip
# Whom the book's two sources both read at the provider itself; hosts of others' models change
# their prices too often for two lists of different days.
FIRST_HAND = frozenset(
    {"anthropic", "baseten", "bedrock", "cerebras", "cohere", "deepseek", "gemini", "groq", "meta",
     "mistral", "moonshot", "openai", "xai"}
)  # fmt: skip
HUGE = 9_000_000
MIXES = {STANDARD: 20}  # drawn for every model, beside those below
OTHER_MIXES = 5  # in each other tier
COUNTS = (
    TokenCounts(),
    TokenCounts(input=1),
    TokenCounts(output=1),
    TokenCounts(1, 1, 1, 0, 1, 1),
    TokenCounts(input=HUGE),
    TokenCounts(1_000, output=200),
    TokenCounts(4_000, 8_000, output=900),
    TokenCounts(0, 77_777, output=3),
    TokenCounts(2_000, 1_000, 2_000, 0, 700, 300),
    TokenCounts(10, 0, 30, 0, 123_456, 100_000),
    TokenCounts(7, HUGE, 7, 0, HUGE, 7),
    TokenCounts(2_000, 1_000, 30, 2_000, 700, 700),
    TokenCounts(500, output=100, audio_input=300),
    TokenCounts(500, output=400, audio_output=300),
    TokenCounts(9, 8, output=HUGE, audio_input=HUGE, audio_output=7),
)
# LiteLLM's providers of models that it does not find under the one that serves them.
OTHERWISE = {"openai": "text-completion-openai", "cohere": "cohere_chat"}

Cost = Callable[[TokenCounts, Price, str], int]


@dataclass(frozen=True, slots=True)
class Case:
    """One request; `litellm` and `genai` are their answers in pico-USD, or why there is none."""

    price: Price
    tier: str
    tokens: TokenCounts
    ours: int
    genai: int | str
    litellm: int | str

    @property
    def agrees(self) -> bool:
        return self.ours == self.genai and same(self.ours, self.litellm)


def same(ours: int, theirs: int | str) -> bool:
    """LiteLLM counts in floats of 16 digits, so the last of ours are not in its answer."""
    return not isinstance(theirs, str) and abs(theirs - ours) <= max(2, ours // 10**9)


def our_cost(tokens: TokenCounts, price: Price, tier: str) -> int:
    return cost_pusd(tokens, price, tier=tier)


def matrix(cost: Cost = our_cost) -> list[Case]:
    """Every case with three answers. `cost` is the rule under test."""
    seed = bundled_seed()
    asked = [
        (price, provider, model, tier, tokens)
        for price, provider, model in models(seed)
        for tier, tokens in requests(price, model)
    ]
    return [
        Case(
            price, tier, tokens, cost(tokens, price, tier),
            genai(provider, model, tier, tokens), by_litellm(price.name, tier, tokens),
        )
        for price, provider, model, tier, tokens in asked
    ]  # fmt: skip


def models(seed: PriceSeed) -> Iterator[tuple[Price, Any, Any]]:
    """What all three price by the token of text: not by the time of day, not by searches."""
    rows = diff([], seed.drafts, at_us=0).prices(1)
    prices = {price.name: price for price in PriceBook(rows).prices_in_force(0)}
    left_out = names_without_text()
    left_out |= {draft.name for draft in seed.drafts if "off_peak_pricing" in draft.terms.unread}
    for provider in get_snapshot().providers:
        for model in provider.models:
            price = prices.get(f"{PROVIDERS.get(provider.id)}/{model.id}")
            if price is None or price.name in left_out:
                continue
            if price.terms.request_pusd or price.terms.search_pusd:
                continue
            sold = price.retired_on is None or price.retired_on > AT.date().isoformat()
            if sold and price.name.partition("/")[0] in FIRST_HAND:
                yield price, provider, model


def requests(price: Price, model: Any) -> Iterator[tuple[str, TokenCounts]]:
    """Counts by kind, and whatever is listed on both sides of each threshold, in every tier."""
    edges = sorted({schedule.above_tokens for schedule in price.terms.schedules} - {0})
    counts = [item for item in COUNTS if fits(price, model, item)]
    for edge in edges:
        counts += [
            TokenCounts(edge - 1, output=10),
            TokenCounts(edge, output=10),
            TokenCounts(edge + 1, output=9),
        ]
        counts += [TokenCounts(1, edge, output=10), TokenCounts(0, edge, output=10, reasoning=5)]
    for tier, context in CONTEXTS.items():
        stated = any(variant.when == context for variant in model.price_variants or ())
        if tier != STANDARD and not stated:
            continue
        drawn = [
            mix(random.Random(f"{price.name} {tier} {n}"))
            for n in range(MIXES.get(tier, OTHER_MIXES))
        ]
        for tokens in counts + [fitted(price, model, mark) for mark in drawn]:
            try:
                cost_pusd(tokens, price, tier=tier)
            except UnpricedTierError:
                break
            yield tier, tokens


def mix(rng: random.Random) -> TokenCounts:
    """Any request: each kind of any size, some of them nothing."""
    sizes = [int(10 ** rng.uniform(0, 6)) if rng.random() < 0.6 else 0 for _ in range(4)]
    prompt, cached, written, output = sizes
    return TokenCounts(prompt, cached, written, 0, output, rng.randint(0, output))


def fitted(price: Price, model: Any, tokens: TokenCounts) -> TokenCounts:
    """The request without what this model has not."""
    if price.terms.rates.output == 0:
        tokens = replace(tokens, output=0, reasoning=0)
    return tokens if fits(price, model, tokens) else replace(tokens, cache_write=0)


def fits(price: Price, model: Any, tokens: TokenCounts) -> bool:
    """Whether a model can be asked so: embeddings answer nothing, not all cache, few speak."""
    rates, stated = price.terms.rates, model.get_prices(AT)
    if rates.output == 0 and tokens.output:
        return False
    if (tokens.cache_write or tokens.cache_write_1h) and stated.cache_write_mtok is None:
        return False
    if tokens.cache_write_1h and stated.cache_write_1h_mtok is None:
        return False
    if tokens.audio_input and stated.input_audio_mtok is None:
        return False
    return not (tokens.audio_output and stated.output_audio_mtok is None)


def genai(provider: Any, model: Any, tier: str, tokens: TokenCounts) -> int | str:
    written = tokens.cache_write + tokens.cache_write_1h
    usage = Usage(
        input_tokens=tokens.input + tokens.cached + written + tokens.audio_input,
        cache_read_tokens=tokens.cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=tokens.cache_write_1h,
        output_tokens=tokens.output,
        output_reasoning_tokens=tokens.reasoning,
        input_audio_tokens=tokens.audio_input,
        cache_audio_read_tokens=0,
        output_audio_tokens=tokens.audio_output,
    )
    try:
        found = model.calc_price(
            usage, provider, genai_request_timestamp=AT, price_context=CONTEXTS[tier]
        )
    except ValueError as error:
        return str(error)
    return int(found.total_price * 10**12)


def by_litellm(name: str, tier: str, tokens: TokenCounts) -> int | str:
    provider, _, model = name.partition("/")
    usage = litellm_usage(tokens)
    why = ""
    for item in dict.fromkeys((provider, OTHERWISE.get(provider, provider))):
        try:
            usd = sum(
                litellm.cost_per_token(
                    model=model,
                    custom_llm_provider=item,
                    usage_object=usage,
                    prompt_tokens=usage.prompt_tokens,
                    completion_tokens=usage.completion_tokens,
                    call_type="aretrieve_batch" if tier == "batch" else "completion",
                    service_tier=None if tier in {STANDARD, "batch"} else tier,
                )
            )
        except Exception as error:  # noqa: BLE001  (whatever it is, it is its answer)
            why = f"{type(error).__name__}: {error}"[:200]
        else:
            return round(usd * 1e12)
    return why


def litellm_usage(tokens: TokenCounts) -> Any:
    written = tokens.cache_write + tokens.cache_write_1h
    prompt = tokens.input + tokens.cached + written + tokens.audio_input
    return litellm_types.Usage(
        prompt_tokens=prompt,
        completion_tokens=tokens.output,
        total_tokens=prompt + tokens.output,
        prompt_tokens_details=litellm_types.PromptTokensDetailsWrapper(
            cached_tokens=tokens.cached,
            cache_creation_tokens=written,
            audio_tokens=tokens.audio_input,
            cache_creation_token_details=litellm_types.CacheCreationTokenDetails(
                ephemeral_5m_input_tokens=tokens.cache_write,
                ephemeral_1h_input_tokens=tokens.cache_write_1h,
            ),
        ),
        completion_tokens_details=litellm_types.CompletionTokensDetailsWrapper(
            reasoning_tokens=tokens.reasoning, audio_tokens=tokens.audio_output
        ),
    )


# -- wrong rules, planted to see that the matrix finds them -------------------------------------


def reasoning_on_top(tokens: TokenCounts, price: Price, tier: str) -> int:
    """Reasoning charged beside the output that it is part of."""
    rates = rates_for(price, tier, prompt_tokens(tokens))
    return our_cost(tokens, price, tier) + tokens.reasoning * rates.reasoning


def cached_as_input(tokens: TokenCounts, price: Price, tier: str) -> int:
    uncached = replace(tokens, input=tokens.input + tokens.cached, cached=0)
    return our_cost(uncached, price, tier)


def threshold_of_input_alone(tokens: TokenCounts, price: Price, tier: str) -> int:
    """Cached tokens not counted towards the prompt's size."""
    full = rates_for(price, tier, prompt_tokens(tokens))
    short = rates_for(price, tier, prompt_tokens(tokens) - tokens.cached)
    moved = our_cost(tokens, price, tier)
    return moved if full == short else moved - tokens.output * (full.output - short.output)


def threshold_one_off(tokens: TokenCounts, price: Price, tier: str) -> int:
    """Prompts of exactly the threshold charged the other way."""
    turned = replace(price, terms=replace(price.terms, inclusive=not price.terms.inclusive))
    return our_cost(tokens, turned, tier)


def tiers_ignored(tokens: TokenCounts, price: Price, tier: str) -> int:
    del tier
    return our_cost(tokens, price, STANDARD)


def an_hours_cache_as_five_minutes(tokens: TokenCounts, price: Price, tier: str) -> int:
    both = tokens.cache_write + tokens.cache_write_1h
    return our_cost(replace(tokens, cache_write=both, cache_write_1h=0), price, tier)


PLANTED: tuple[Cost, ...] = (
    reasoning_on_top,
    cached_as_input,
    threshold_of_input_alone,
    threshold_one_off,
    tiers_ignored,
    an_hours_cache_as_five_minutes,
)


# -- the table ----------------------------------------------------------------------------------


def document(cases: Sequence[Case]) -> dict[str, Any]:
    """What a program compares: counts, disagreements with their explanation, planted rules."""
    lists = other_lists(cases)
    same_list = [case for case in cases if case.price.name not in lists]
    wrong = [case for case in same_list if not case.agrees]
    return {
        "cases": len(same_list),
        "models": len({case.price.name for case in same_list}),
        "disagreements": [told(case) for case in wrong],
        "other_lists": {name: LISTS.get(name) for name in sorted(lists)},
        "cases_of_other_lists": len(cases) - len(same_list),
        "planted": {
            rule.__name__: sum(
                rule(case.tokens, case.price, case.tier) != case.ours for case in same_list
                if case.agrees
            )
            for rule in PLANTED
        },
    }  # fmt: skip


def other_lists(cases: Sequence[Case]) -> set[str]:
    """Models that `genai-prices` lists at another price.

    In the standard tier LiteLLM reads our list by rules of its own: where both come to the same
    amount and `genai-prices` to another, it is the list that differs.
    """
    return {
        case.price.name
        for case in cases
        if case.tier == STANDARD and case.ours != case.genai and same(case.ours, case.litellm)
    }


def told(case: Case) -> dict[str, Any]:
    return {
        "name": case.price.name,
        "tier": case.tier,
        "tokens": dict(zip(case.tokens.__struct_fields__, astuple_of(case.tokens), strict=True)),
        "ours": case.ours,
        "litellm": case.litellm,
        "genai_prices": case.genai,
        "why": why(case),
    }


def astuple_of(tokens: TokenCounts) -> tuple[int, ...]:
    return tuple(getattr(tokens, field) for field in tokens.__struct_fields__)


def why(case: Case) -> str | None:
    """Who is right, by the first rule that covers the case."""
    for rule in RULES:
        if rule.covers(case.price.name, case.tier, case.tokens):
            return f"{rule.right}: {rule.why}"
    return None


def main(words: Sequence[str]) -> int:
    cases = matrix()
    found = document(cases)
    if "--json" in words:
        print(json.dumps(found))
        return 0
    print(f"{'provider':<12}{'tier':<10}{'models':>7}{'cases':>7}{'differ':>8}")
    lists = found["other_lists"]
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        if case.price.name not in lists:
            place = case.price.name.partition("/")[0], case.tier
            groups.setdefault(place, []).append(case)
    for (provider, tier), some in sorted(groups.items()):
        models = len({case.price.name for case in some})
        differ = sum(not case.agrees for case in some)
        print(f"{provider:<12}{tier:<10}{models:>7}{len(some):>7}{differ:>8}")
    share = len(found["disagreements"]) / found["cases"]
    print(f"\n{found['cases']} cases of {found['models']} models: "
          f"{len(found['disagreements'])} disagreements, {share:.2%}")  # fmt: skip
    for (name, tier, words_), count in Counter(
        (disagreement["name"], disagreement["tier"], disagreement["why"])
        for disagreement in found["disagreements"]
    ).items():
        print(f"  {count:>3}  {name} {tier}: {words_}")
    print(f"\nBeside them {found['cases_of_other_lists']} cases of {len(lists)} models that "
          "genai-prices lists at another price:")  # fmt: skip
    for name, words_ in lists.items():
        print(f"  {name}: {words_}")
    print("\nPlanted wrong rules, and in how many cases the matrix finds each:")
    for name, count in found["planted"].items():
        print(f"  {count:>5}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
