"""The most tokens that one target can count for a prompt."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.prompt_bound import at_engine, bound_prompt, measure_prompt
from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody
from gateway.kinds.prompt_media import PictureSize, PromptMedia
from gateway.request.prompt_estimate import estimate_prompt
from ledger.prices.modellimits import CONTEXT_UNSTATED, LIMIT_TOKENS, ModelLimits
from ledger.prices.picture_tokens import RULES, picture_tokens
from ledger.prices.quotes import PriceQuote
from ledger.prices.rates import KINDS, Price, PriceTerms, TokenRates
from router.request_kinds import RequestKind
from router.target_prompts import PromptOverrun
from router.token_ratio import TokenRatio
from router.types import Feature, OutputMoments, RoutingRequest


def request(bound: int, *, kind=RequestKind.CHAT, n=1, features=frozenset()) -> RoutingRequest:
    moments = OutputMoments(0, 1.0, 1.0, 1.0)
    return RoutingRequest(kind, "m", 10, bound, 5, moments, n, features)


def media(*pictures, text=100, others=0, files=0) -> PromptMedia:
    return PromptMedia(text, tuple(pictures), others, 5_000, files)


def quote(rule="", context=None) -> PriceQuote:
    terms = PriceTerms(TokenRates(**dict.fromkeys(KINDS, 1)), image_rule=rule)
    limits = None if context is None else ModelLimits(100, context)
    return PriceQuote(Price(1, "acme/m", "test", 0, terms), limits=limits)


def at_api(asked: RoutingRequest, found, quoted: PriceQuote, overrun=None) -> RoutingRequest:
    prompt = measure_prompt(asked, found, quoted, SimpleNamespace(upstream_model="m"))
    return asked if prompt is None else bound_prompt(asked, prompt, overrun)


def bound_of(bound, found=None, *, rule="", context=None, **more) -> int:
    asked = request(bound, **more)
    return at_api(asked, found, quote(rule, context)).prompt_tokens_bound


@pytest.mark.parametrize(
    ("features", "context", "bound"),
    [
        ({Feature.IMAGES, Feature.MEDIA_URLS}, 8_192, 100 + 3 * 8_192),
        ({Feature.IMAGES}, 0, 100 + 3 * CONTEXT_UNSTATED),
        ((), 8_192, 8_192),  # it opens nothing
    ],
)
def test_each_file_of_a_list_may_fill_a_context(features, context, bound) -> None:
    """Three films in one embedding were held as one."""
    asked = request(CONTEXT_UNSTATED, kind=RequestKind.EMBEDDING)
    found = media(files=3)._replace(apart=True)
    target = SimpleNamespace(upstream_model="m", features=frozenset(features))
    prompt = measure_prompt(asked, found, quote(context=context), target)
    assert prompt is not None
    assert bound_prompt(asked, prompt).prompt_tokens_bound == bound
    told = at_engine(asked, found, context).prompt_tokens_bound
    assert told == (context or CONTEXT_UNSTATED)


def parsed(path: str, **members) -> RoutingRequest:
    """As the planner makes it of a client's body."""
    body = IncomingBody(json.dumps({"model": "m", **members}).encode(), "", None, max_n=8)
    asked = KIND_PATHS[path].read(body)
    estimate, bound = estimate_prompt(asked, TokenRatio(), ("m", "t"), 5_000)
    moments, n = OutputMoments(0, 1.0, 1.0, 1.0), asked.n * asked.prompts
    return RoutingRequest(asked.kind, "m", estimate, bound, 5, moments, n, asked.features)


WORDS = "word " * 5_000  # as many tokens
LISTS = {
    "embedding": ("/v1/embeddings", {"input": [WORDS] * 40}, 200_000),
    "embedding of ids": ("/v1/embeddings", {"input": [[5] * 5_000] * 40}, 200_000),
    "one embedding": ("/v1/embeddings", {"input": WORDS}, 5_000),
    "completions": ("/v1/completions", {"prompt": [WORDS] * 8}, 40_000),
    "rerank": ("/v1/rerank", {"query": "q", "documents": [WORDS] * 40}, 200_000),
}


@pytest.mark.parametrize("name", LISTS)
def test_each_text_of_a_list_may_fill_a_context(name) -> None:
    """Forty inputs of an embedding were held as one: for a fifth of what an honest bill says."""
    path, members, tokens = LISTS[name]
    asked = parsed(path, **members)
    bounds = [
        at_api(asked, None, quote(context=8_192)).prompt_tokens_bound,
        at_engine(asked, None, 8_192).prompt_tokens_bound,
    ]
    assert min(bounds) >= tokens


@pytest.mark.parametrize(
    ("listed", "bound"), [(None, 500_000), (128_000, 128_000), (LIMIT_TOKENS, 500_000)]
)
def test_the_context_that_a_list_states(listed, bound) -> None:
    made = at_api(request(500_000), None, quote(context=listed))
    assert made.prompt_tokens_bound == bound


@pytest.mark.parametrize(("context", "bound"), [(None, 9_000), (0, 9_000), (8_000, 8_000)])
def test_an_engine_reads_at_most_its_context(context, bound) -> None:
    assert at_engine(request(9_000), None, context).prompt_tokens_bound == bound
    filed = at_engine(request(9_000), media(files=1), context).prompt_tokens_bound
    assert filed == (context or CONTEXT_UNSTATED)


@pytest.mark.parametrize(
    ("context", "bound"), [(None, CONTEXT_UNSTATED), (8_000, 8_000), (2_000_000, 2_000_000)]
)
def test_a_file_has_at_most_the_context(context, bound) -> None:
    """The unstated million was too much for small contexts and too little for large ones."""
    assert bound_of(CONTEXT_UNSTATED, media(files=1), context=context) == bound


def test_a_text_has_at_most_the_context() -> None:
    short = request(500)
    assert at_api(short, None, quote(context=8_000)) is short
    assert bound_of(9_000, context=8_000) == 8_000
    assert bound_of(9_000) == 9_000


def test_what_a_targets_tools_find_is_read_as_a_file_is() -> None:
    """Red before: a search was held at its question, and 20,000 tokens of pages were claimed."""
    hosted = frozenset((Feature.HOSTED_TOOLS,))
    assert bound_of(500, context=8_000, features=hosted) == 8_000
    assert bound_of(500, features=hosted) == CONTEXT_UNSTATED
    assert bound_of(500, media(text=500), context=8_000, features=hosted) == 8_000


def test_what_is_read_in_several_calls_has_more_than_one_context() -> None:
    hosted = frozenset((Feature.HOSTED_TOOLS,))
    assert bound_of(9_000, context=8_000, features=hosted) == 9_000
    assert bound_of(90_000, context=8_000, kind=RequestKind.COMPLETION, n=3) == 24_000
    assert bound_of(90_000, context=8_000, n=3) == 8_000  # choices of one conversation


@given(st.sampled_from(sorted(RULES)), st.integers(1, 5_000), st.integers(1, 5_000))
def test_a_picture_of_known_size_is_held_by_the_rule(rule, width, height) -> None:
    found = media(PictureSize(width, height))
    assert bound_of(9_999, found, rule=rule) == 100 + picture_tokens(rule, width, height)
    assert bound_of(9_999, found) == 9_999  # without a rule, as for any text


def test_of_several_pictures_in_a_file_the_dearest_is_held() -> None:
    """By the rule: a larger one may have fewer tiles."""
    found = media(PictureSize(2_048, 2_048, "", ((2_048, 768), (1, 1))))
    wide = picture_tokens("openai-tiles", 2_048, 768)
    assert wide > picture_tokens("openai-tiles", 2_048, 2_048)
    assert bound_of(9_999, found, rule="openai-tiles") == 100 + wide


def test_a_picture_of_unknown_size_is_held_at_the_most() -> None:
    assert bound_of(5_100, media(others=1), rule="openai-tiles") == 100 + 5_000
    dear = 2_833 + 8 * 5_667
    assert bound_of(5_100, media(others=2), rule="openai-tiles-4o-mini") == 100 + 2 * dear


def test_the_largest_picture_has_a_bound_that_prices_take() -> None:
    found = media(*[PictureSize(2**28, 1)] * 64)
    assert bound_of(10, found, rule="gemini-tiles") <= 100 + LIMIT_TOKENS


SEEN = PromptOverrun(pictures=3.0, sounds=2.0, context=20_000)


@pytest.mark.parametrize(
    ("found", "rule", "context", "stated", "raised"),
    [
        (media(PictureSize(512, 512)), "openai-tiles", None, 355, 100 + 3_000),
        (media(PictureSize(1, 1)), "anthropic", None, 101, 100 + 3_000),
        (media(others=1), "openai-tiles", None, 5_100, 100 + 15_000),
        (media(others=9), "openai-tiles-4o-mini", None, 433_621, 100 + 9 * 50_000),
        (media(others=1)._replace(sounds=60), "openai-tiles", None, 5_100, 160 + 15_000),
        (media(others=1), "openai-tiles", 8_000, 5_100, 15_100),  # within the context that was seen
        (media(others=2), "openai-tiles", 8_000, 8_000, 20_000),
        (media(files=1), "", 8_000, 8_000, 20_000),
        (media(files=1), "", None, CONTEXT_UNSTATED, CONTEXT_UNSTATED),
        (None, "", 8_000, 8_000, 9_000),  # no more than its bytes
    ],
)
def test_what_was_billed_beyond_it_raises_the_bound(found, rule, context, stated, raised) -> None:
    bound = 9_000 if found is None else 100
    asked, quoted = request(bound), quote(rule, context)
    assert at_api(asked, found, quoted).prompt_tokens_bound == stated
    assert at_api(asked, found, quoted, PromptOverrun()).prompt_tokens_bound == stated
    assert at_api(asked, found, quoted, SEEN).prompt_tokens_bound == raised
