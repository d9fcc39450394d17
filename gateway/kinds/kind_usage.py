"""Final usage of requests with units besides tokens: searches, seconds and others.

Targets count in their own units, and prices list others: an own engine counts seconds, while the
comparator's price may be by tokens. A unit that is priced and was not counted gets the request's
estimate, and is never zero.
"""

from typing import NamedTuple

from msgspec.structs import astuple, replace

from gateway.http.body import Members
from gateway.kinds.billable_units import (
    AUDIO_MS_PER_TOKEN_MOST,
    BYTES_PER_TOKEN,
    LONGEST_TOKEN_BYTES,
    billed_counts,
)
from gateway.kinds.least_prompt import least_prompt_tokens
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.spec import KindUnits, RequestKindSpec
from ledger.journals.records import Basis, TokenCounts
from ledger.prices.book import Price
from ledger.usage_figures import BESIDE, UsageContradiction, UsageError
from router.types import RoutingRequest

TOO_SHORT = 2  # factor below a known duration that is allowed, as some leave silence out
SIGN_CHARACTERS = 16  # that a vendor may count as one: a family emoji has 7
PICTURE_TOKENS_LEAST = 16  # per generated picture; the smallest that a vendor lists has 100


class SentRequest(NamedTuple):
    """A request as it was sent: its members, and its model's stated context in tokens.

    `context` is None where none is stated. `stops`: the target stops generating on a disconnect.
    """

    members: Members
    context: int | None = None
    stops: bool = False


def usage_of(
    spec: RequestKindSpec,
    units: KindUnits,
    request: RoutingRequest,
    price: Price | None,
    outcome: AttemptOutcome,
    *,
    sent: SentRequest | None,
) -> tuple[TokenCounts, Basis, bool]:
    """Return the final usage in every unit of the price, its basis, and if it is disputed.

    `sent` is `None` for an own engine, whose figures are not billed. Without a reported count, the
    request's estimate is used. An abandoned request, or a file of unknown duration, counts at its
    maximum; a stream whose target stopped, by the received part. Figures are disputed if they are
    impossible or contradict each other.
    """
    tokens, basis, disputed = _used(spec, units, request, price, outcome, sent)
    return tokens if sent is None else billed_counts(tokens, price), basis, disputed


def _used(
    spec: RequestKindSpec,
    units: KindUnits,
    request: RoutingRequest,
    price: Price | None,
    outcome: AttemptOutcome,
    sent: SentRequest | None,
) -> tuple[TokenCounts, Basis, bool]:
    (counted, contradicts), said = (
        _counted(spec, outcome),
        round(outcome.said_bytes / BYTES_PER_TOKEN),
    )
    own, disputed, lags = sent is None, counted is None and bool(outcome.usage), False
    too_low: TokenCounts | None = None
    if counted is not None and sent is not None:
        partial = outcome.usage_behind and not outcome.is_whole
        if partial or (outcome.is_given_up and not outcome.usage_final):
            counted = None  # partial usage: the rest is not reported
        elif outcome.usage_behind:  # more came after it, which is no contradiction
            counted, lags = _most_of(counted, units.estimate(request, said)), True
        elif (
            _is_too_short(counted, units, request)
            or _is_too_low(counted, units, request, outcome.said_bytes)
            or _reads_too_little(counted, sent)
        ):
            counted, disputed, too_low = None, True, counted
    if counted is not None:
        whole = complete_counts(counted, price, _guessed(units, request, outcome, said))
        guessed = price is not None and _charged_counts(whole, price) != _charged_counts(
            counted, price
        )
        return whole, "estimated" if guessed or lags else "reported", contradicts
    if not outcome.billable or (own and not outcome.is_whole):
        return TokenCounts(), "estimated", disputed
    flowed = sent is not None and sent.stops and outcome.is_given_up and said > 0
    known = outcome.is_told_failure or (flowed and units.exact(request))
    if not own and not known and (not outcome.is_whole or not units.exact(request)):
        return _at_least(too_low, units.most(request)), "bound", disputed
    return _at_least(too_low, _guessed(units, request, outcome, said)), "estimated", disputed


def _at_least(told: TokenCounts | None, most: TokenCounts) -> TokenCounts:
    """Return the counts, or what a target told of them if that is more: it is owed all the same."""
    if told is None:
        return most
    found = _most_of(told, most)
    parts = found.reasoning + found.audio_output + found.image_output
    pictures = told.pictures or most.pictures
    return replace(found, output=max(found.output, parts), pictures=pictures)


def _guessed(
    units: KindUnits, request: RoutingRequest, outcome: AttemptOutcome, said: int
) -> TokenCounts:
    """Return the estimate; a target that reported a failure before any output made none."""
    guess = units.estimate(request, said)
    if not outcome.is_told_failure or said or outcome.shown or outcome.spoken:
        return guess
    return replace(guess, output=0, audio_output=0, image_output=0, pictures=0)


def _most_of(counted: TokenCounts, guess: TokenCounts) -> TokenCounts:
    """Return the larger of each count, except pictures, which are counted as they arrive."""
    pairs = zip(astuple(counted), astuple(guess), strict=True)
    return replace(TokenCounts(*map(max, pairs)), pictures=counted.pictures)


def _is_too_short(counted: TokenCounts, units: KindUnits, request: RoutingRequest) -> bool:
    """Return whether a known sound counts less than half its duration; zero is no count."""
    heard_ms = units.estimate(request, 0).audio_ms if units.exact(request) else 0
    return 0 < counted.audio_ms < heard_ms / TOO_SHORT


def _is_too_low(
    counted: TokenCounts, units: KindUnits, request: RoutingRequest, said_bytes: int
) -> bool:
    """Return whether counts are below what the sound, the pictures or the text must have."""
    guess, prompt = units.estimate(request, 0), counted.whole_prompt
    if 0 < counted.characters < guess.characters / SIGN_CHARACTERS:
        return True
    if guess.pictures and 0 < counted.output < PICTURE_TOKENS_LEAST * max(1, counted.pictures):
        return True
    if guess.characters and 0 < counted.output < said_bytes / LONGEST_TOKEN_BYTES:
        return True
    heard_ms = guess.audio_ms
    if counted.audio_ms or not prompt or not heard_ms:
        return False  # no sound, or one counted by its duration
    if units.exact(request) and prompt * AUDIO_MS_PER_TOKEN_MOST < heard_ms:
        return True
    return said_bytes > LONGEST_TOKEN_BYTES * counted.output


def _reads_too_little(counted: TokenCounts, sent: SentRequest) -> bool:
    """Return whether a target that counts text tokens counts fewer than it must have read.

    A target may cut each text to its context, which may be unknown.
    """
    if counted.searches or counted.audio_ms:
        return False
    if not counted.prompt and (counted.characters or counted.pictures):
        return False  # charged in these units
    return counted.prompt < least_prompt_tokens(sent.members, sent.context, counted.prompt + 1)


def complete_counts(counted: TokenCounts, price: Price | None, guess: TokenCounts) -> TokenCounts:
    """Return the counts, with estimates for units that the price lists and the target omitted."""
    whole = counted
    if not whole.audio_ms and guess.audio_ms:
        whole = replace(whole, audio_ms=guess.audio_ms)
    if price is None:
        return whole
    terms = price.terms
    if terms.search_pusd and not whole.searches:
        whole = replace(whole, searches=guess.searches)
    if not terms.search_pusd and not whole.input and guess.input:
        whole = replace(whole, input=guess.input)
    if not terms.second_pusd and guess.audio_input and not (whole.input or whole.audio_input):
        output = whole.output or guess.output
        whole = replace(whole, audio_input=guess.audio_input, output=output)
    if terms.character_pusd and not whole.characters:
        whole = replace(whole, characters=guess.characters)
    if not (terms.character_pusd or whole.audio_output) and guess.audio_output:
        output = guess.output + whole.reasoning
        whole = replace(whole, output=output, audio_output=guess.audio_output)
    if not (terms.picture_pusd or whole.image_output) and guess.image_output:
        output = guess.output + whole.reasoning
        whole = replace(whole, output=output, image_output=guess.image_output)
    return whole


def _counted(spec: RequestKindSpec, outcome: AttemptOutcome) -> tuple[TokenCounts | None, bool]:
    """Return the largest of each count that the target reported, and if they contradict."""
    usage = outcome.usage
    if usage is None:
        return None, False
    if outcome.earlier_usage:
        usage = {**usage, BESIDE: [*outcome.earlier_usage, *usage.get(BESIDE, ())]}
    try:
        return spec.usage(usage), False
    except UsageContradiction as error:
        return error.most, True
    except UsageError:
        return None, False  # implausible usage is not booked: `basis` and the flag show it


def _charged_counts(tokens: TokenCounts, price: Price) -> tuple[int, ...]:
    """Return the counts that a price charges, without the duration of sound priced by tokens."""
    by_tokens = tokens.audio_input and price.terms.rates.audio_input
    return (
        tokens.input, tokens.audio_input, tokens.output, tokens.searches, tokens.pictures,
        0 if by_tokens else tokens.audio_ms,
    )  # fmt: skip
