"""Upper bound of the tokens that a target can count for a prompt.

`measure_prompt` returns the parts of the bound, `bound_prompt` adds the overruns observed at the
target. A target rejects prompts beyond its context, so the context bounds each prompt: text, files
that the target opens, and pictures. Search results of hosted tools count like files. Pictures of
known size are bounded by the target's rule, if its price names one or its model has a published
one.
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
# A target without these features opens no file: a URL is plain text to it.
_OPENED: Final = frozenset((Feature.IMAGES, Feature.MEDIA_URLS))


class TargetPrompt(NamedTuple):
    """Parts of a prompt's upper bound at one target, in tokens, before learned corrections.

    `parts` is the number of images and videos that `pictures` covers. `context` is 0 if unknown.
    `apart` is the number of files that may each fill a whole context.
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
    """Return the parts of the prompt's bound at an API; None if the request's own bound holds.

    None is the usual case: text within the context. A model may be newer than the price book's
    data.
    """
    context, searches = quote.context_tokens, _HOSTED in request.features
    if not searches and media is None and request.prompt_tokens_bound <= (context or LIMIT_TOKENS):
        return None
    rule = "" if media is None else quote.picture_rule(target.upstream_model)
    prompt = _target_prompt(request, media, rule, context)
    if searches:  # search results count like files
        prompt = prompt._replace(has_files=True)
    if media is not None and media.apart and not _OPENED.isdisjoint(target.features):
        return prompt._replace(apart=media.files)
    return prompt


def bound_prompt(
    request: RoutingRequest, prompt: TargetPrompt, overrun: PromptOverrun | None = None
) -> RoutingRequest:
    """Return the request with its prompt bound at a target, raised by the observed overrun."""
    return replace(request, prompt_tokens_bound=prompt_bound(request, prompt, overrun))


def prompt_bound(
    request: RoutingRequest, prompt: TargetPrompt, overrun: PromptOverrun | None = None
) -> int:
    """Return the maximum tokens that the target can count for the prompt."""
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
    """Return the tokens that the learned image factor multiplies; small images have a minimum."""
    return max(prompt.pictures, prompt.parts * PICTURE_LEAST_TOKENS)


def at_engine(
    request: RoutingRequest, media: PromptMedia | None, context: int | None
) -> RoutingRequest:
    """Return the request with the prompt bound of an own engine, usually the request itself.

    `context` is in tokens; None or 0 if unknown.
    """
    if media is None and request.prompt_tokens_bound <= (context or LIMIT_TOKENS):
        return request
    return bound_prompt(request, _target_prompt(request, media, "", context or 0))


def likely_prompt_tokens(request: RoutingRequest) -> int:
    """Return the estimated prompt tokens with the margin that the context filter uses."""
    likely = math.ceil(request.context_margin * request.prompt_tokens)
    return min(request.prompt_tokens_bound, likely)


def reachable_media(request: RoutingRequest) -> ReachableMedia:
    """Return the token kinds besides text that the request can be charged for."""
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
        pictures = unread + min(known, LIMIT_TOKENS)  # above any context; limit of prices
    else:
        pictures = parts * media.stated
        if not media.files:  # with files, the request's bound already covers the largest context
            text = max(text, request.prompt_tokens_bound - pictures - media.sounds)
    return TargetPrompt(text, pictures, parts, media.sounds, media.files > 0, context)


def most_read(request: RoutingRequest, context: int) -> int | None:
    """Return the maximum tokens of all prompts of a request at this context; None: no limit.

    Hosted tools send their results to the model in further calls, which have no limit. The number
    of prompts of a request, each of which may fill a context, is a trait of its kind.
    """
    if _HOSTED in request.features:
        return None
    prompts = KIND_TRAITS[request.kind].prompts
    if prompts is _ONE:
        return context
    return context * request.n if prompts is _PER_CHOICE else None
