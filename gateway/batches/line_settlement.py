"""Settlement of a provider's result of a batch line: its answer and its charge. No I/O.

Charges follow the rules of any API (`line_usage`, `usage_bill`): plausible usage as reported,
implausible usage cut and marked, the bound without usage. Rates are those of tier `batch`; a charge
never exceeds the hold. Refusals cost nothing unless they report output or a filter read the prompt.
Lines that the provider did not reach cost nothing and wait again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from backends.chunks import parse_answer
from backends.errors import BackendError, RequestDeclined, UpstreamRejected
from backends.json_mending import mend_json
from backends.refusal import FORBIDDEN, openai_refusal, refuses_account
from backends.secret import Secret
from gateway.batches.line_outcome import MOST_FAILURES, PASSING
from gateway.batches.line_usage import LineHold, line_overrun, line_usage, most_usage, refused_usage
from gateway.batches.shapes import NO_ANSWER, LineResponse, answered_line, unanswered_line
from gateway.kinds.outcome import REFUSED
from gateway.request.booked_usage import NO_TOKENS, BookedUsage
from gateway.request.limit_overruns import LimitOverrun
from gateway.request.usage_bill import BillTerms, bill_usage
from ledger.batches.outgoing import AttemptOpening, LineEnd, OutLine
from ledger.journals.records import AttemptSettled, ComparedCost, Status, TokenCounts
from ledger.prices.book import BATCH, Price, cost_pusd
from ledger.prices.unread_terms import charged_terms
from ledger.usage import has_unread

DONE, STATUS_DIGITS = 200, 3  # of HTTP
UNDONE = ("batch_expired", "batch_cancelled")  # OpenAI's words; what is sent may have no hash
GONE = "batch_gone"
NO_RESULT = "no_result"
_NOT_DONE = "not_done"
_EMPTY = frozenset((b"null", b'""', b"{}"))


class _Response(msgspec.Struct):
    """Response in a result line; an unreadable status counts as 200."""

    status_code: int | str | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def status(self) -> int:
        said = str(self.status_code)
        return int(said) if said.isdecimal() and len(said) == STATUS_DIGITS else DONE


class LineResult(msgspec.Struct):
    """One line of an output or error file, with errors in the format of any vendor."""

    custom_id: str
    response: _Response | None = None
    error: object = None
    usage: object = None  # usage reported with an error

    @property
    def answer(self) -> _Response | None:
        """Return the response, or `None` if it is empty and the line has an error."""
        response = self.response
        is_empty = response is not None and bytes(response.body) in _EMPTY
        return None if self.error and is_empty else response

    @property
    def is_answered(self) -> bool:
        """Return whether the provider reports success."""
        answer = self.answer
        return answer is not None and answer.status // 100 == 2

    @property
    def is_failed(self) -> bool:
        """Return whether the provider reports a failure or a refusal."""
        return bool(self.error) if self.answer is None else not self.is_answered

    @property
    def failure(self) -> bytes:
        """Return the error as a response body, with the usage reported beside or inside it."""
        inside = self.error.get("usage") if isinstance(self.error, dict) else None
        return msgspec.json.encode({"error": self.error, "usage": self.usage or inside})

    @property
    def is_undone(self) -> bool:
        """Return whether the provider reports that it did not process the line."""
        return isinstance(self.error, dict) and self.error.get("code") in UNDONE


class _AttemptEnd(NamedTuple):
    """Status, HTTP status and error of a line's ended attempt."""

    status: Status
    http_status: int
    error: str | None = None


def _forget(_line: OutLine, _team: str, _overrun: LimitOverrun) -> None:
    """Ignore the overrun; default of `learn`."""


_read = msgspec.json.Decoder(LineResult).decode


def result_of(text: bytes) -> LineResult | None:
    """Parse one line of a result file, repaired if needed; `None` if it is not one."""
    try:
        return _read(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        mended = mend_json(text)
        return None if mended is None else result_of(mended)


@dataclass(frozen=True, slots=True)
class LineSettlement:
    """Settlement of the lines of one batch.

    `prices` are the price versions of its attempts. `secrets` are removed from what clients read.
    `learn` is called for plausible output beyond its limit.
    """

    batch_id: str
    prices: Mapping[int, Price]
    now_us: int
    secrets: tuple[Secret, ...] = ()
    learn: Callable[[OutLine, str, LimitOverrun], None] = _forget

    def settle_result(self, line: OutLine, opening: AttemptOpening, result: LineResult) -> LineEnd:
        """Return the end of a line with this result."""
        response = result.answer
        if response is None:
            undone, used = result.is_undone, refused_usage(line, result.failure)
            return self._settle_retry(line, opening, None, failed=not undone, used=used)
        status, body = response.status, bytes(response.body)
        if status // 100 == 2:
            return self._settle_answer(line, opening, body)
        return self._refused(line, opening, status, body)

    def _refused(self, line: OutLine, opening: AttemptOpening, status: int, body: bytes) -> LineEnd:
        used = refused_usage(line, body)
        if refuses_account(status, body):
            return self.settle_returned(line, opening, kept=True, used=used)
        told = openai_refusal(body, status, self.secrets)
        if status == FORBIDDEN:  # a filter's: the caller's own key is right
            status = 400
        if status in PASSING:
            return self._settle_retry(line, opening, (status, told), failed=True, used=used)
        ending = _AttemptEnd("rejected", status, REFUSED)
        settled = self._settled_record(line, opening, ending, used)
        return LineEnd(line, settled, self._line(line, status, told))

    def settle_returned(
        self,
        line: OutLine,
        opening: AttemptOpening,
        *,
        kept: bool = False,
        next_us: int = 0,
        used: BookedUsage | None = None,
    ) -> LineEnd:
        """Settle a line that was not processed and waits again; `used` is its reported usage."""
        ending = _AttemptEnd("rejected", 503, _NOT_DONE)
        settled = self._settled_record(line, opening, ending, used)
        return LineEnd(line, settled, kept=kept, next_us=next_us)

    def settle_unseen(self, line: OutLine, opening: AttemptOpening) -> LineEnd:
        """Settle a processed, charged line without a result at its bound; the line is retried."""
        bound = most_usage(line.terms)
        settled = self._settled_record(
            line, opening, _AttemptEnd("upstream_error", 502, NO_RESULT), bound
        )
        if line.failures + 1 >= MOST_FAILURES:
            return LineEnd(line, settled, self._unanswered_line(line))
        return LineEnd(line, settled, kept=True, failed=True)

    def settle_lost(self, line: OutLine, opening: AttemptOpening) -> LineEnd:
        """Settle a line with an unknown outcome at its bound; it may have been charged."""
        bound = most_usage(line.terms)
        settled = self._settled_record(
            line, opening, _AttemptEnd("upstream_error", 502, GONE), bound
        )
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
            used = line_usage(line, error.usage, body)
            settled = self._settled_record(
                line, opening, _AttemptEnd("upstream_error", 502, "bad_answer"), used, error.usage
            )
            unread = has_unread(error.usage or {})
            settled = msgspec.structs.replace(settled, partly_read=unread)
            return LineEnd(line, settled, self._unanswered_line(line))
        used = line_usage(line, said.usage, body)
        settled = msgspec.structs.replace(
            self._settled_record(line, opening, _AttemptEnd("finished", 200), used, said.usage),
            finish_reason=said.finish_reason,
            partly_read=has_unread(said.usage or {}),
        )
        return LineEnd(line, settled, self._line(line, 200, body), ok=True)

    def _settle_retry(
        self,
        line: OutLine,
        opening: AttemptOpening,
        told: tuple[int, bytes] | None,
        *,
        failed: bool,
        used: BookedUsage | None = None,
    ) -> LineEnd:
        """Settle the attempt and retry the line, until it has failed `MOST_FAILURES` times."""
        status = 503 if told is None else told[0]
        ending = _AttemptEnd("rejected", status, _NOT_DONE)
        settled = self._settled_record(line, opening, ending, used)
        if failed and line.failures + 1 >= MOST_FAILURES:
            answer = self._unanswered_line(line) if told is None else self._line(line, *told)
            return LineEnd(line, settled, answer)
        return LineEnd(line, settled, failed=failed)

    def _settled_record(
        self,
        line: OutLine,
        opening: AttemptOpening,
        ending: _AttemptEnd,
        used: BookedUsage | None = None,
        usage: Mapping[str, Any] | None = None,
    ) -> AttemptSettled:
        """Return the settle record; `used` is `None` if the provider did no work."""
        price = self.prices.get(opening.price_version or 0)
        booked = used or BookedUsage(NO_TOKENS, "estimated", disputed=False)
        settled = AttemptSettled(
            attempt_id=line.attempt_id,
            settled_us=max(self.now_us, opening.opened_us),  # the wall clock may have been set back
            status=ending.status,
            http_status=ending.http_status,
            tokens=booked.tokens,
            basis=booked.basis,
            cost_pusd=None if price is None or used is not None else 0,  # no fee either
            ttft_us=None,
            duration_us=max(0, self.now_us - opening.opened_us),
            error=ending.error,
            tier=BATCH,
            disputed=booked.disputed,
            unseen=booked.unseen,
        )
        if used is None:
            return settled
        if price is not None:
            terms = BillTerms(price, BATCH, "", opening.bound_pusd, usage)
            settled = self._priced(settled, line, used, terms, opening.team_id)
        compared = self._compared_costs(line, settled.tokens)
        return msgspec.structs.replace(settled, compared=compared)

    def _priced(
        self,
        settled: AttemptSettled,
        line: OutLine,
        used: BookedUsage,
        terms: BillTerms,
        team: str,
    ) -> AttemptSettled:
        price = terms.price
        bill = bill_usage(used, terms, LineHold(line, price))
        overrun = None if bill.cut is None else line_overrun(line.terms, bill.cut)
        if overrun is not None:
            self.learn(line, team, overrun)
        return msgspec.structs.replace(
            settled,
            tokens=bill.tokens,
            basis=bill.basis,
            cost_pusd=bill.cost_pusd,
            unknown_tier=not bill.is_listed,
            disputed=bill.disputed,
            claimed_pusd=bill.claimed_pusd,
            plausible_pusd=bill.plausible_pusd,
            # The line's features are not stored: only charges that apply to any request count.
            partly_priced=bool(bill.cost_pusd) and bool(charged_terms(price.terms.unread, ())),
        )

    def _compared_costs(self, line: OutLine, tokens: TokenCounts) -> tuple[ComparedCost, ...]:
        known = [self.prices.get(version) for version in line.terms.compared]
        return tuple(
            ComparedCost(price.name, price.version, cost_pusd(tokens, price))
            for price in known
            if price is not None
        )

    def _line(self, line: OutLine, status: int, body: bytes) -> bytes:
        request_id = line.attempt_id.rpartition(".")[0]
        return answered_line(
            self.batch_id, line.number, line.custom_id,
            LineResponse(status, request_id, body, line.terms.ignored),
        )  # fmt: skip

    def _unanswered_line(self, line: OutLine) -> bytes:
        return unanswered_line(self.batch_id, line.number, line.custom_id, code=NO_ANSWER)
