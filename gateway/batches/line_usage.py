"""Tokens that a line of a provider's batch is booked with, by the rules of any answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from msgspec.structs import replace

from backends.answer_media import has_pictures
from backends.charged_errors import is_filtered, refusal_usage
from backends.text_length import answer_said_bytes
from gateway.http.body import decode_members
from gateway.kinds.billable_units import LONGEST_TOKEN_BYTES
from gateway.kinds.least_prompt import least_prompt_tokens
from gateway.request.booked_usage import BookedUsage
from gateway.request.limit_overruns import LimitOverrun, overrun_beyond
from gateway.request.plausible_claims import ClaimTerms, plausible_tokens
from gateway.request.usage_checks import (
    UsageBounds,
    count_thoughts,
    fit_text,
    fit_tokens,
    fitting_tokens,
    is_impossible,
    is_too_high,
    is_too_low,
    is_within,
    most_tokens,
)
from ledger.batches.outgoing import LineTerms, OutLine
from ledger.cache_conventions import Convention
from ledger.journals.records import Basis, TokenCounts
from ledger.prices.book import Price
from ledger.prices.rates import ReachableMedia
from ledger.unit_usage import tokens_of_embedding
from ledger.usage import other_reading, tokens_from_usage
from ledger.usage_figures import NoCountsError, UsageContradiction, UsageError
from router.token_ratio import PRIOR_BYTES_PER_TOKEN

_PICTURE = b'"image_url"'
_EMBEDDED = "input"  # body member of embedding requests


def most_usage(terms: LineTerms) -> BookedUsage:
    """Return the usage of the whole hold, for a line whose result was not seen."""
    return BookedUsage(most_tokens(_bounds_of(terms)), "bound", disputed=False, unseen=True)


def line_usage(line: OutLine, usage: Mapping[str, Any] | None, body: bytes) -> BookedUsage:
    """Return the usage that a complete answer is booked with."""
    if usage is None:
        return most_usage(line.terms)
    try:
        tokens = _tokens_of(line, usage)
    except UsageContradiction as error:
        return _disputed(_judged(line, usage, error.most, body), error.most, line)
    except UsageError:
        return most_usage(line.terms)._replace(disputed=True)
    used = _judged(line, usage, tokens, body)
    if used.disputed and (other := other_reading(usage)) is not None:
        second = _judged(line, usage, other, body)
        return used if second.disputed else second
    return used


def _tokens_of(line: OutLine, usage: Mapping[str, Any]) -> TokenCounts:
    """Return the reported tokens; some embeddings APIs report only a total."""
    try:
        return tokens_from_usage(usage, Convention.CACHED_INSIDE)
    except NoCountsError:
        if _EMBEDDED not in decode_members(line.body):
            raise
        return tokens_of_embedding(usage)


def _disputed(used: BookedUsage, most: TokenCounts, line: OutLine) -> BookedUsage:
    """Return contradictory usage, booked at the most that was held for."""
    if used.disputed:
        return used
    within = fit_tokens(used.tokens, _bounds_of(line.terms))
    basis: Basis = used.basis if within == used.tokens else "bound"
    return BookedUsage(within, basis, True, most, used.tokens)


def refused_usage(line: OutLine, body: bytes) -> BookedUsage | None:
    """Return the usage that a refusal is booked with; None if nothing was read."""
    usage = refusal_usage(body)
    if usage is not None:
        return line_usage(line, usage, body)
    if not is_filtered(body):
        return None
    prompt = min(ceil(len(line.body) / PRIOR_BYTES_PER_TOKEN), line.terms.prompt_bound)
    return BookedUsage(TokenCounts(input=prompt), "estimated", disputed=False)


def _judged(
    line: OutLine, usage: Mapping[str, Any], tokens: TokenCounts, body: bytes
) -> BookedUsage:
    """Return the plausible usage, given the request, the answer and the hold."""
    bounds, (said, most_said) = _bounds_of(line.terms), answer_said_bytes(body)
    sent = None if _PICTURE in line.body else len(line.body)
    if _is_prompt_too_low(line, tokens.prompt):
        # Without a limit, assume English text; `most` is the hold.
        estimate = min(ceil(len(line.body) / PRIOR_BYTES_PER_TOKEN), bounds.prompt)
        told, tokens = tokens, replace(tokens, input=tokens.input + estimate - tokens.prompt)
        within = fit_tokens(tokens, bounds)
        return BookedUsage(within, "estimated", True, told, within)
    disputed = is_impossible(tokens, bounds, said_bytes=most_said, sent_bytes=sent)
    within = plausible = tokens
    if tokens.output and is_too_low(tokens, said):
        within = plausible = replace(tokens, output=ceil(said / PRIOR_BYTES_PER_TOKEN))
    elif is_too_high(tokens, usage, line.terms.n, most_said) and not has_pictures(body):
        if not disputed and is_within(tokens, bounds) and (line.terms.thinks or not said):
            thinks = line.terms.thinks
            made = count_thoughts(tokens, usage, line.terms.n, said) if thinks else tokens
            return BookedUsage(made, "reported", disputed=False)
        within, plausible = fit_text(tokens, line.terms.n, said), fit_tokens(tokens, bounds)
    if not disputed and within is tokens:
        return BookedUsage(tokens, "reported", disputed=False)
    within = fit_tokens(within, bounds)
    basis: Basis = "reported" if within == tokens else "bound"
    return BookedUsage(within, basis, True, tokens, plausible)


def _is_prompt_too_low(line: OutLine, prompt: int) -> bool:
    """Return whether the reported prompt is below what any target counts for this request."""
    if len(line.body) <= LONGEST_TOKEN_BYTES * prompt:
        return False
    context = line.terms.context or None
    return prompt < least_prompt_tokens(decode_members(line.body), context, prompt + 1)


def line_overrun(terms: LineTerms, tokens: TokenCounts) -> LimitOverrun | None:
    """Return the answer's overrun beyond its limit; None if there is nothing to learn."""
    return overrun_beyond(terms.most // terms.n - terms.allowance, tokens, terms.n)


@dataclass(frozen=True, slots=True)
class LineHold:
    """Hold of a line, in the interface `HeldUsage`."""

    line: OutLine
    price: Price

    @property
    def media(self) -> ReachableMedia:
        return self.line.terms.media

    def fit(self, tokens: TokenCounts) -> tuple[TokenCounts, ...]:
        bounds = _bounds_of(self.line.terms)
        return fitting_tokens(tokens, bounds, self.price.terms.searches_limit)

    def is_beyond_units(self, _tokens: TokenCounts, /) -> bool:
        """Return False: more searches than stated are flagged as a claim instead."""
        return False

    def plausible(self, told: TokenCounts) -> TokenCounts:
        """Return the plausible part of the tokens, without the models' output limits."""
        reads_elsewhere = _PICTURE in self.line.body
        terms = ClaimTerms(_bounds_of(self.line.terms), None, reads_elsewhere)
        return plausible_tokens(told, terms, self.price.terms.searches_limit)


def _bounds_of(terms: LineTerms) -> UsageBounds:
    return UsageBounds(terms.n, terms.most, terms.told, terms.prompt_bound)
