"""The most tokens that one target can count for a prompt: the only place that says so.

A target that states its context refuses a longer prompt, so the context bounds every prompt of one
call: text, files that the target opens, and pictures. Pictures of known size are bounded by the
target's rule, where its price names one or its model has a published one.
"""

import math
from dataclasses import replace
from typing import Final

from gateway.fleet.fleet import Target
from gateway.kinds.prompt_media import PromptMedia
from ledger.prices.modellimits import CONTEXT_UNSTATED, LIMIT_TOKENS
from ledger.prices.picture_tokens import most_picture_tokens, picture_tokens
from ledger.prices.quotes import PriceQuote
from ledger.prices.rates import ReachableMedia
from router.filters import CONTEXT_MARGIN
from router.request_kinds import RequestKind
from router.types import Feature, RoutingRequest

_CHAT: Final = RequestKind.CHAT
_COMPLETION: Final = RequestKind.COMPLETION
_HOSTED: Final = Feature.HOSTED_TOOLS


def at_api(
    request: RoutingRequest, media: PromptMedia | None, quote: PriceQuote, target: Target
) -> RoutingRequest:
    """Return the request with the prompt's bound at an API; most times the request itself.

    The configured context may be less than the provider takes, and a list may be older than its
    model: the larger of the two bounds a prompt.
    """
    configured = target.context_tokens
    known = quote.context_tokens or configured or LIMIT_TOKENS
    if media is None and request.prompt_tokens_bound <= known:
        return request
    context = max(quote.context_tokens, configured or 0)
    rule = "" if media is None else quote.picture_rule(target.upstream_model)
    return _at_target(request, media, rule, context or None)


def at_engine(
    request: RoutingRequest, media: PromptMedia | None, context: int | None
) -> RoutingRequest:
    """Return the request with the prompt's bound at an own engine; most times the request itself.

    `context` in tokens is None or 0 where nobody knows it.
    """
    if media is None and request.prompt_tokens_bound <= (context or LIMIT_TOKENS):
        return request
    return _at_target(request, media, "", context or None)


def likely_prompt_tokens(request: RoutingRequest) -> int:
    """The prompt with room for the estimate's error, as the filter of the context counts it."""
    return min(request.prompt_tokens_bound, math.ceil(CONTEXT_MARGIN * request.prompt_tokens))


def media_of(request: RoutingRequest) -> ReachableMedia:
    """The kinds of tokens beside text that the request can be charged for."""
    return ReachableMedia(
        audio_input=request.has_sound and not request.text_prompt,
        audio_output=request.has_sound,
        images=not request.without_pictures,
    )


def _at_target(
    request: RoutingRequest, media: PromptMedia | None, rule: str, context: int | None
) -> RoutingRequest:
    bound = request.prompt_tokens_bound
    if media is not None:
        bound = _media_bound(bound, media, rule, context)
    if context is not None:
        bound = min(bound, most_read(request, context) or bound)
    return replace(request, prompt_tokens_bound=bound)


def _media_bound(bound: int, media: PromptMedia, rule: str, context: int | None) -> int:
    if rule:
        each = max(media.stated, most_picture_tokens(rule))
        bound = media.text_bound + media.others * each
        pictures = sum(
            max(picture_tokens(rule, *sides, detail=size.detail) for sides in size.sizes)
            for size in media.pictures
        )
        bound += min(pictures, LIMIT_TOKENS)  # more than any context; prices take no more
    if media.files:
        bound = max(bound, context or CONTEXT_UNSTATED)
    return bound


def most_read(request: RoutingRequest, context: int) -> int | None:
    """Tokens of all prompts of a request at a target with such a context; None: no such limit.

    Tools that run at a provider send it their results in further calls. Of completions each choice
    may have a prompt of its own. Other kinds read a list's texts one by one, each of which may fill
    a context.
    """
    if _HOSTED in request.features:
        return None
    if request.kind is _CHAT:
        return context
    return context * request.n if request.kind is _COMPLETION else None
