"""The most tokens that one target can count for a prompt: the only place that says so.

`measure_prompt` says what the bound is made of, `bound_prompt` adds what the target was seen to
bill beyond it.

A target that states its context refuses a longer prompt, so the context bounds every prompt of one
call: text, files that the target opens, and pictures. What its own tools find is read as a file is.
Pictures of known size are bounded by the target's rule, where its price names one or its model has
a published one.
"""

import math
from dataclasses import replace
from typing import Final, NamedTuple

from gateway.fleet.fleet import Target
from gateway.kinds.prompt_media import PromptMedia
from ledger.prices.modellimits import CONTEXT_UNSTATED, LIMIT_TOKENS
from ledger.prices.picture_tokens import most_picture_tokens, picture_tokens
from ledger.prices.quotes import PriceQuote
from ledger.prices.rates import ReachableMedia
from router.request_kinds import KIND_TRAITS, PromptCount
from router.target_prompts import PICTURE_LEAST_TOKENS, PICTURE_LIMIT_TOKENS, PromptOverrun
from router.types import Feature, RoutingRequest

_ONE: Final = PromptCount.ONE
_PER_CHOICE: Final = PromptCount.PER_CHOICE
_HOSTED: Final = Feature.HOSTED_TOOLS
# Without any of these a target opens no file: what may be an address is words to it.
_OPENED: Final = frozenset((Feature.IMAGES, Feature.MEDIA_URLS))


class TargetPrompt(NamedTuple):
    """Parts of a prompt's upper bound at one target, in tokens, before learned corrections.

    `parts`: how many pictures and films have the tokens of `pictures`; `context`: 0 where nobody
    states it. `apart`: how many files may each fill a context of their own.
    """

    text: int
    pictures: int
    parts: int
    sounds: int
    has_files: bool
    context: int
    apart: int = 0


def measure_prompt(
    request: RoutingRequest, media: PromptMedia | None, quote: PriceQuote, target: Target
) -> TargetPrompt | None:
    """Return what the prompt's bound at an API is made of; None where it is the request's own.

    That is of a text within the context, as nearly always. A list may be older than its model.
    """
    context, searches = quote.context_tokens, _HOSTED in request.features
    if not searches and media is None and request.prompt_tokens_bound <= (context or LIMIT_TOKENS):
        return None
    rule = "" if media is None else quote.picture_rule(target.upstream_model)
    prompt = _target_prompt(request, media, rule, context)
    if searches:  # what its tools find is read as a file is
        prompt = prompt._replace(has_files=True)
    if media is not None and media.apart and not _OPENED.isdisjoint(target.features):
        return prompt._replace(apart=media.files)
    return prompt


def bound_prompt(
    request: RoutingRequest, prompt: TargetPrompt, overrun: PromptOverrun | None = None
) -> RoutingRequest:
    """Return the request with the prompt's bound at a target, raised by what is known of it."""
    return replace(request, prompt_tokens_bound=prompt_bound(request, prompt, overrun))


def prompt_bound(
    request: RoutingRequest, prompt: TargetPrompt, overrun: PromptOverrun | None = None
) -> int:
    """Return the most tokens that the target can count for the prompt."""
    text, pictures, parts, sounds, has_files, context, apart = prompt
    unstated = CONTEXT_UNSTATED
    if overrun is not None:
        most = min(
            math.ceil(picture_weight(prompt) * overrun.pictures), parts * PICTURE_LIMIT_TOKENS
        )
        pictures = max(pictures, most)
        sounds = max(sounds, math.ceil(sounds * overrun.sounds))
        context = max(context, overrun.context) if context else 0
        unstated = max(unstated, overrun.context)
    bound = text + pictures + sounds
    if apart:
        bound += apart * (context or unstated)
    elif has_files:
        bound = max(bound, context or unstated)
    return min(bound, most_read(request, context) or bound) if context else bound


def picture_weight(prompt: TargetPrompt) -> int:
    """Return the tokens that a factor of pictures is of: small ones have a least of their own."""
    return max(prompt.pictures, prompt.parts * PICTURE_LEAST_TOKENS)


def at_engine(
    request: RoutingRequest, media: PromptMedia | None, context: int | None
) -> RoutingRequest:
    """Return the request with the prompt's bound at an own engine; most times the request itself.

    `context` in tokens is None or 0 where nobody knows it.
    """
    if media is None and request.prompt_tokens_bound <= (context or LIMIT_TOKENS):
        return request
    return bound_prompt(request, _target_prompt(request, media, "", context or 0))


def likely_prompt_tokens(request: RoutingRequest) -> int:
    """The prompt with room for the estimate's error, as the filter of the context counts it."""
    likely = math.ceil(request.context_margin * request.prompt_tokens)
    return min(request.prompt_tokens_bound, likely)


def reachable_media(request: RoutingRequest) -> ReachableMedia:
    """The kinds of tokens beside text that the request can be charged for."""
    return ReachableMedia(
        audio_input=request.has_sound and not request.text_prompt,
        audio_output=request.has_sound,
        images=not request.without_pictures,
    )


def _target_prompt(
    request: RoutingRequest, media: PromptMedia | None, rule: str, context: int
) -> TargetPrompt:
    if media is None:
        return TargetPrompt(request.prompt_tokens_bound, 0, 0, 0, has_files=False, context=context)
    parts, text = len(media.pictures) + media.others, media.text_bound - media.sounds
    if rule:
        known = sum(
            max(picture_tokens(rule, *sides, detail=size.detail) for sides in size.sizes)
            for size in media.pictures
        )
        unread = media.others * max(media.stated, most_picture_tokens(rule))
        pictures = unread + min(known, LIMIT_TOKENS)  # more than any context; prices take no more
    else:
        pictures = parts * media.stated
        if not media.files:  # of these the request's own bound has the largest context
            text = max(text, request.prompt_tokens_bound - pictures - media.sounds)
    return TargetPrompt(text, pictures, parts, media.sounds, media.files > 0, context)


def most_read(request: RoutingRequest, context: int) -> int | None:
    """Tokens of all prompts of a request at a target with such a context; None: no such limit.

    Tools that run at a provider send it their results in further calls. How many prompts a request
    has, each of which may fill a context, is a trait of its kind.
    """
    if _HOSTED in request.features:
        return None
    prompts = KIND_TRAITS[request.kind].prompts
    if prompts is _ONE:
        return context
    return context * request.n if prompts is _PER_CHOICE else None
