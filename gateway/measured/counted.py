"""What a reranking or a transcription used, at its end: tokens, searches, seconds, as was counted.

Targets count in units of their own and prices list others: an engine of ours counts seconds, the
comparator's price may be by tokens. What is priced and was not counted is filled with the estimate
of the request, never left at zero.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from backends.errors import ServerError
from gateway.attempt import Attempt, Outcome
from gateway.measured.beside import estimated, most
from gateway.measured.requests import BYTES_PER_TOKEN
from ledger.journals.records import Basis, Tokens
from ledger.prices.book import Price
from ledger.usage import UsageError, tokens_of_reranking, tokens_of_transcription
from router.prompts import Extent
from router.request_kinds import Kind

_READ: Mapping[Kind, Callable[[Mapping[str, Any]], Tokens]] = {
    Kind.RERANK: tokens_of_reranking,
    Kind.TRANSCRIPTION: tokens_of_transcription,
}


def used(attempt: Attempt, outcome: Outcome) -> tuple[Tokens, Basis, bool]:
    """The attempt's use at its end, in every unit that its price lists; own engines have none.

    Without a count, that of the request: of a file that does not tell its length, and of what was
    given up, the most that it can be. The last says whether the target's figures are disputed:
    no target can have meant them.
    """
    request, price = attempt.plan.request, attempt.step.frozen.price
    counted, said = _counted(request.kind, outcome), round(outcome.said_bytes / BYTES_PER_TOKEN)
    disputed = counted is None and bool(outcome.usage)
    if counted is not None:
        whole = completed(counted, price, estimated(request, output=said))
        guessed = price is not None and _charged(whole, price) != _charged(counted, price)
        return whole, "estimated" if guessed else "reported", False
    if not outcome.billable or (attempt.own and outcome.status != "finished"):
        return Tokens(), "estimated", disputed
    extent = request.extent or Extent()
    known = request.kind is Kind.RERANK or extent.audio_known
    failed = outcome.error == ServerError.kind  # it said so: the request is booked, not the most
    if not attempt.own and not failed and (outcome.status != "finished" or not known):
        return most(request), "bound", disputed
    return estimated(request, output=said), "estimated", disputed


def completed(counted: Tokens, price: Price | None, guess: Tokens) -> Tokens:
    """With what the price lists and the target did not count."""
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
    return whole


def _counted(kind: Kind, outcome: Outcome) -> Tokens | None:
    if outcome.usage is None:
        return None
    try:
        return _READ[kind](outcome.usage)
    except UsageError:
        return None  # implausible usage is not money: `basis` and the flag show it


def _charged(tokens: Tokens, price: Price) -> tuple[int, ...]:
    """What of it the price looks at; the length of a sound that is charged by tokens is none."""
    by_tokens = tokens.audio_input and price.terms.rates.audio_input
    return (
        tokens.input, tokens.audio_input, tokens.output, tokens.searches,
        0 if by_tokens else tokens.audio_ms,
    )  # fmt: skip
