"""What a provider says of a line of its batch, as the line's answer and its attempt's settle. Pure.

The charge follows the rules of any API's: usage as far as it can be, cut and marked where it
cannot, the bound where there is none; at the rates of the tier `batch`. A refusal costs nothing,
and neither does what the provider did not get to: such a line waits again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import msgspec

from backends.answer_media import has_pictures
from backends.chunks import parse_answer
from backends.errors import BackendError, RequestDeclined, UpstreamRejected
from backends.refusal import openai_refusal
from backends.secret import Secret
from backends.text_length import answer_content_bytes
from gateway.batches.line_outcome import MOST_FAILURES, PASSING
from gateway.batches.provider_line_planner import BATCH_TIER
from gateway.batches.shapes import NO_ANSWER, answered_line, unanswered_line
from gateway.request.outcome_evidence import REFUSED
from gateway.request.plausible_claims import ClaimTerms, plausible_pusd, plausible_tokens
from gateway.request.usage_checks import (
    UsageBounds,
    fit_text,
    fit_tokens,
    is_impossible,
    is_too_high,
    is_too_low,
    most_tokens,
)
from ledger.batches.outgoing import AttemptOpening, LineEnd, OutLine
from ledger.journals.records import AttemptSettled, Basis, ComparedCost, Status, TokenCounts
from ledger.prices.book import Price, cost_pusd, tier_cost_pusd
from ledger.prices.unread_terms import charged_terms
from ledger.usage import Convention, UsageError, tokens_from_usage
from router.token_ratio import PRIOR_BYTES_PER_TOKEN

OUR_ACCOUNT = (401, 402, 403)  # our credentials and balance, not the client's
UNDONE = frozenset(("batch_expired", "batch_cancelled"))  # OpenAI's words
GONE = "batch_gone"
_NOTHING = TokenCounts()


class _Response(msgspec.Struct):
    status_code: int
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Error(msgspec.Struct):
    code: str | None = None


class LineResult(msgspec.Struct):
    """One line of an output or error file."""

    custom_id: str
    response: _Response | None = None
    error: _Error | None = None


_read = msgspec.json.Decoder(LineResult).decode


def result_of(text: bytes) -> LineResult | None:
    """`None` for what is no line of such a file."""
    try:
        return _read(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class _Charge:
    tokens: TokenCounts
    basis: Basis
    disputed: bool = False
    claim: TokenCounts | None = None  # the provider's own figures, where others are booked
    plausible: TokenCounts | None = None  # what of these the model can have made


@dataclass(frozen=True, slots=True)
class LineSettlement:
    """Books lines of one batch; `prices` are the versions that its attempts carry.

    `secrets` may not stand in what a client reads.
    """

    batch_id: str
    prices: Mapping[int, Price]
    now_us: int
    secrets: tuple[Secret, ...] = ()

    def settle_result(self, line: OutLine, opening: AttemptOpening, result: LineResult) -> LineEnd:
        """How the line ended, by its result."""
        response = result.response
        if response is None:
            undone = result.error is not None and result.error.code in UNDONE
            return self._settle_retry(line, opening, None, failed=not undone)
        status, body = response.status_code, bytes(response.body)
        if status == 200:
            return self._settle_answer(line, opening, body)
        return self._refused(line, opening, status, body)

    def _refused(self, line: OutLine, opening: AttemptOpening, status: int, body: bytes) -> LineEnd:
        if status in OUR_ACCOUNT:
            return self.settle_returned(line, opening, kept=True)
        told = openai_refusal(body, status, self.secrets)
        if status in PASSING:
            return self._settle_retry(line, opening, (status, told), failed=True)
        settled = self._settled_record(line, opening, "rejected", status, None, error=REFUSED)
        return LineEnd(line, settled, self._line(line, status, told))

    def settle_returned(
        self, line: OutLine, opening: AttemptOpening, *, kept: bool = False, next_us: int = 0
    ) -> LineEnd:
        """It was not done, and waits again."""
        settled = self._settled_record(line, opening, "rejected", 503, None, error="not_done")
        return LineEnd(line, settled, kept=kept, next_us=next_us)

    def settle_lost(self, line: OutLine, opening: AttemptOpening) -> LineEnd:
        """Nobody will ever say what became of it: it may have been done and charged."""
        bound = self._max_charge_of(line)
        settled = self._settled_record(line, opening, "upstream_error", 502, bound, error=GONE)
        return LineEnd(line, settled, self._unanswered_line(line))

    def _settle_answer(self, line: OutLine, opening: AttemptOpening, body: bytes) -> LineEnd:
        try:
            said = parse_answer(body)
        except RequestDeclined as error:
            return self._refused(line, opening, error.status or 400, error.body)
        except UpstreamRejected:
            return self.settle_returned(line, opening, kept=True)
        except BackendError as error:
            if not error.billable:
                return self._settle_retry(line, opening, None, failed=True)
            charge = self._max_charge_of(line)
            if error.usage is not None:
                charge = _charge(line, error.usage, body)
            settled = self._settled_record(
                line, opening, "upstream_error", 502, charge, error="bad_answer"
            )
            return LineEnd(line, settled, self._unanswered_line(line))
        charge = _charge(line, said.usage, body)
        settled = self._settled_record(line, opening, "finished", 200, charge)
        settled = msgspec.structs.replace(settled, finish_reason=said.finish_reason)
        return LineEnd(line, settled, self._line(line, 200, body), ok=True)

    def _settle_retry(
        self,
        line: OutLine,
        opening: AttemptOpening,
        told: tuple[int, bytes] | None,
        *,
        failed: bool,
    ) -> LineEnd:
        """Another try, as long as the line has any."""
        status = 503 if told is None else told[0]
        settled = self._settled_record(line, opening, "rejected", status, None, error="not_done")
        if failed and line.failures + 1 >= MOST_FAILURES:
            answer = self._unanswered_line(line) if told is None else self._line(line, *told)
            return LineEnd(line, settled, answer)
        return LineEnd(line, settled, failed=failed)

    def _settled_record(
        self,
        line: OutLine,
        opening: AttemptOpening,
        status: Status,
        http_status: int,
        charge: _Charge | None,
        *,
        error: str | None = None,
    ) -> AttemptSettled:
        """`charge` is `None` where the provider did no work."""
        found = charge or _Charge(_NOTHING, "estimated")
        price = self.prices.get(opening.price_version or 0)
        cost, claimed, plausible, listed = None, 0, None, True
        if price is not None and charge is None:
            cost = 0  # nor a fee
        elif price is not None:
            cost, listed = tier_cost_pusd(found.tokens, price, BATCH_TIER)
            if found.claim is not None:
                claimed, _ = tier_cost_pusd(found.claim, price, BATCH_TIER)
            if claimed > cost:
                plausible = plausible_pusd(
                    found.plausible or found.tokens, price, BATCH_TIER,
                    booked_pusd=cost, claimed_pusd=claimed,
                )  # fmt: skip
        return AttemptSettled(
            attempt_id=line.attempt_id,
            settled_us=max(self.now_us, opening.opened_us),  # a clock may be set back meanwhile
            status=status,
            http_status=http_status,
            tokens=found.tokens,
            basis=found.basis,
            cost_pusd=cost,
            ttft_us=None,
            duration_us=max(0, self.now_us - opening.opened_us),
            error=error,
            compared=self._compared_costs(line, found.tokens) if charge is not None else (),
            tier=BATCH_TIER,
            unknown_tier=not listed,
            disputed=found.disputed,
            claimed_pusd=claimed if cost is not None and claimed > cost else None,
            plausible_pusd=plausible,
            # What a line asked for is not kept: charges of any request are told, no others.
            partly_priced=bool(cost)
            and price is not None
            and bool(charged_terms(price.terms.unread, ())),
        )

    def _compared_costs(self, line: OutLine, tokens: TokenCounts) -> tuple[ComparedCost, ...]:
        known = [self.prices.get(version) for version in line.terms.compared]
        return tuple(
            ComparedCost(price.name, price.version, cost_pusd(tokens, price))
            for price in known
            if price is not None
        )

    def _max_charge_of(self, line: OutLine) -> _Charge:
        terms = line.terms
        return _Charge(TokenCounts(input=terms.prompt_bound, output=terms.most), "bound")

    def _line(self, line: OutLine, status: int, body: bytes) -> bytes:
        request_id = line.attempt_id.rpartition(".")[0]
        return answered_line(
            self.batch_id, line.number, line.custom_id,
            status=status, request_id=request_id, body=body,
        )  # fmt: skip

    def _unanswered_line(self, line: OutLine) -> bytes:
        return unanswered_line(self.batch_id, line.number, line.custom_id, code=NO_ANSWER)


def _charge(line: OutLine, usage: Mapping[str, Any] | None, body: bytes) -> _Charge:
    """Of an answer that is whole."""
    terms = line.terms
    bounds = UsageBounds(terms.n, terms.most, terms.told, terms.prompt_bound)
    bound = _Charge(most_tokens(bounds), "bound")
    if usage is None:
        return bound
    try:
        tokens = tokens_from_usage(usage, Convention.CACHED_INSIDE)
    except UsageError:
        return replace(bound, disputed=True)
    said = answer_content_bytes(body)
    sent = None if b'"image_url"' in line.body else len(line.body)
    disputed = is_impossible(tokens, bounds, said_bytes=said, sent_bytes=sent)
    within = tokens
    if tokens.output and is_too_low(tokens, said):
        within = msgspec.structs.replace(tokens, output=ceil(said / PRIOR_BYTES_PER_TOKEN))
    elif is_too_high(tokens, usage, terms.n, said) and not has_pictures(body):
        within = fit_text(tokens, terms.n, said)
    disputed = disputed or within is not tokens
    # The map of models' limits is not at hand here: their longest answers count as not stated.
    plausible = plausible_tokens(within, ClaimTerms(bounds, None, sent is None), 0)
    within = fit_tokens(within, bounds)
    if within == tokens:
        return _Charge(tokens, "reported")
    return _Charge(within, "bound", disputed, claim=tokens, plausible=plausible)
