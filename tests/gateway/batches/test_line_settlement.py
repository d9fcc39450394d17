"""What a provider says of a line becomes its answer and its charge."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from backends.secret import Secret
from gateway.batches.line_settlement import LineResult, LineSettlement, result_of
from gateway.request.limit_overruns import LimitOverrun
from ledger.batches.outgoing import AttemptOpening, LineTerms, OutLine
from ledger.journals.records import TokenCounts
from ledger.prices.book import tier_cost_pusd
from ledger.prices.rates import Price, PriceTerms, TierRates, rates_from

PRICE = Price(
    1, "openai/m", "test", 0,
    PriceTerms(
        rates_from({"input": 1000, "output": 4000}),
        (TierRates("batch", 0, rates_from({"input": 500, "output": 2000})),),
    ),
)  # fmt: skip
COMPARED = Price(2, "other/m", "test", 0, PriceTerms(rates_from({"input": 10, "output": 20})))
LINE = OutLine(
    7, "batch_1-7-1.1", "mine", 1, 0, b'{"model":"m","messages":[]}',
    LineTerms(n=1, most=50, told=True, prompt_bound=100, compared=(2,)),
)  # fmt: skip
OPENING = AttemptOpening(1_000_000, 1, 10**9)
BOOKING = LineSettlement(
    "batch_1", {1: PRICE, 2: COMPARED}, 5_000_000, (Secret("sk-verysecretkey"),)
)


def result(status: int | None, body: Any = None, code: str | None = None) -> LineResult:
    response = None if status is None else {"status_code": status, "body": body}
    error = None if code is None else {"code": code, "message": "why"}
    line = {"custom_id": LINE.attempt_id, "response": response, "error": error}
    found = result_of(json.dumps(line).encode())
    assert found is not None
    return found


def answer(**changes: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}
    choice = {"index": 0, "message": {"content": "four words of text"}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": usage, **changes}


def said(answered: bytes) -> dict[str, Any]:
    return json.loads(answered)


def test_a_clock_that_was_set_back_ends_no_line_before_it_began() -> None:
    settled = replace(BOOKING, now_us=OPENING.opened_us - 1).settle_result(
        LINE, OPENING, result(None)
    )
    assert settled.settled.settled_us == OPENING.opened_us
    assert settled.settled.duration_us == 0


def test_an_answer_costs_its_tokens_at_the_batch_rates() -> None:
    ended = BOOKING.settle_result(LINE, OPENING, result(200, answer()))
    settled = ended.settled
    assert (settled.status, settled.basis, settled.tier) == ("finished", "reported", "batch")
    assert not settled.unseen
    assert settled.cost_pusd == 20 * 500 + 4 * 2000
    assert (settled.finish_reason, settled.duration_us) == ("stop", 4_000_000)
    assert [(cost.comparator, cost.cost_pusd) for cost in settled.compared] == [("other/m", 280)]
    assert ended.ok
    line = said(ended.answer)
    assert (line["custom_id"], line["response"]["request_id"]) == ("mine", "batch_1-7-1")
    assert line["response"]["body"]["usage"]["completion_tokens"] == 4


def test_without_usage_the_bound_is_booked() -> None:
    settled = BOOKING.settle_result(LINE, OPENING, result(200, answer(usage=None))).settled
    assert (settled.basis, settled.tokens) == ("bound", TokenCounts(input=100, output=50))
    assert settled.cost_pusd == 100 * 500 + 50 * 2000
    assert settled.unseen, "red before: only a line without a result said so"


def test_usage_that_cannot_be_is_cut_and_disputed() -> None:
    usage = {"prompt_tokens": 20, "completion_tokens": 5000, "total_tokens": 5020}
    settled = BOOKING.settle_result(LINE, OPENING, result(200, answer(usage=usage))).settled
    assert (settled.tokens.output, settled.basis, settled.disputed) == (50, "bound", True)


def test_a_refusal_is_the_lines_answer_and_costs_nothing() -> None:
    body = {"error": {"message": "no such thing, sk-verysecretkey", "code": "bad"}}
    ended = BOOKING.settle_result(LINE, OPENING, result(400, body))
    assert (ended.settled.status, ended.settled.cost_pusd) == ("rejected", 0)
    assert not ended.ok
    line = said(ended.answer)
    assert line["response"]["status_code"] == 400
    assert "verysecret" not in json.dumps(line)


@pytest.mark.parametrize(
    ("result_", "failed", "kept"),
    [
        (result(None, code="batch_expired"), False, False),
        (result(None, code="batch_cancelled"), False, False),
        (result(None, code="server_error"), True, False),
        (result(500, {"error": {"message": "x"}}), True, False),
        (result(200, {"error": {"message": "under a status of success"}}), True, False),
        (result(200, {"choices": [], "usage": {"prompt_tokens": 4}}), True, False),
        (result(200, {"choices": [{"error": {"code": 429}}]}), True, False),
        (result(200, {"error": {"code": "insufficient_quota"}}), False, True),
        (result(401, {"error": {"message": "our key"}}), False, True),
        (result(403, {"error": {"message": "our key"}}), False, True),
        (result(400, {"error": {"message": "API key not valid."}}), False, True),
    ],
)
def test_what_was_not_done_waits_again(result_: LineResult, failed: bool, kept: bool) -> None:
    ended = BOOKING.settle_result(LINE, OPENING, result_)
    assert (ended.answer, ended.failed, ended.kept) == (None, failed, kept)
    assert (ended.settled.status, ended.settled.cost_pusd) == ("rejected", 0)


def test_a_line_that_fails_again_and_again_ends_so() -> None:
    tried = OutLine(7, LINE.attempt_id, "mine", 5, 4, LINE.body, LINE.terms)
    ended = BOOKING.settle_result(tried, OPENING, result(500, {"error": {"message": "x"}}))
    assert said(ended.answer)["response"]["status_code"] == 500
    ended = BOOKING.settle_result(tried, OPENING, result(None, code="server_error"))
    assert said(ended.answer)["error"]["code"] == "no_answer"


def test_what_nobody_can_say_costs_its_bound() -> None:
    ended = BOOKING.settle_lost(LINE, OPENING)
    assert (ended.settled.basis, ended.settled.cost_pusd) == ("bound", 100 * 500 + 50 * 2000)
    assert ended.settled.unseen
    assert said(ended.answer)["error"]["code"] == "no_answer"
    broken = BOOKING.settle_result(LINE, OPENING, result(200, {"words": 5}))
    assert (broken.settled.basis, broken.ok) == ("bound", False)


@pytest.mark.parametrize(
    "more",
    [
        {"error": {"code": 0, "message": ""}},
        {"error": ""},
        {"error": {}},
        {"response": {"status_code": "200"}},
        {"response": {"status_code": None}},
    ],
)
def test_an_answer_is_read_whatever_stands_beside_it(more: dict) -> None:
    """Red before: the line was returned at no cost and done again."""
    body = answer()
    response = {"status_code": 200, "body": body} | more.get("response", {})
    line = {"custom_id": LINE.attempt_id, **more, "response": response}
    found = result_of(json.dumps(line).encode())
    assert found is not None
    ended = BOOKING.settle_result(LINE, OPENING, found)
    assert (ended.ok, ended.settled.cost_pusd) == (True, 20 * 500 + 4 * 2000)


def test_what_is_no_result_is_none() -> None:
    assert result_of(b"{") is None
    assert result_of(b'{"response":null}') is None
    assert result_of(b"\xff") is None


@pytest.mark.parametrize(
    ("unread", "partly"),
    [((), False), (("page_cost",), True), (("search_context_cost_per_query",), False)],
)
def test_a_price_that_does_not_say_all_is_told_on_the_line(unread, partly) -> None:
    terms = msgspec.structs.replace(PRICE.terms, unread=unread)
    booking = replace(BOOKING, prices={1: msgspec.structs.replace(PRICE, terms=terms)})
    assert (
        booking.settle_result(LINE, OPENING, result(200, answer())).settled.partly_priced is partly
    )
    assert not booking.settle_result(LINE, OPENING, result(None)).settled.partly_priced


def test_a_refusal_in_the_body_of_a_200_is_the_lines_answer() -> None:
    said = {"error": {"code": "invalid_prompt", "message": "refused"}}
    ended = BOOKING.settle_result(LINE, OPENING, result(200, said))
    assert ended.settled.status == "rejected"
    assert (ended.settled.http_status, ended.settled.cost_pusd) == (400, 0)
    assert b"refused" in (ended.answer or b"")


COUNTED = {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}


@pytest.mark.parametrize("status", [400, 402, 429, 500])
def test_what_a_refusal_counts_is_charged(status: int) -> None:
    """Red before: a line that was refused was free, whatever its body counted."""
    told = {"error": {"message": "no", "code": "oops"}, "usage": COUNTED}
    ended = BOOKING.settle_result(LINE, OPENING, result(status, told))
    assert (ended.settled.status, ended.settled.basis) == ("rejected", "reported")
    assert ended.settled.cost_pusd == 20 * 500 + 4 * 2000


@pytest.mark.parametrize("status", [200, 400, 403])
def test_a_prompt_that_a_filter_read_is_charged(status: int) -> None:
    """Azure bills it, and counts nothing: 26 bytes are booked as 7 tokens.

    Red before: a 403 counted as a refusal of our account, and the line was sent and paid again.
    """
    told = {"error": {"code": "content_filter", "message": "filtered"}}
    ended = BOOKING.settle_result(LINE, OPENING, result(status, told))
    assert (ended.settled.status, ended.settled.http_status) == ("rejected", 400)
    assert (ended.settled.basis, ended.settled.cost_pusd) == ("estimated", 7 * 500)
    assert said(ended.answer)["response"]["status_code"] == 400


SOUGHT = {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}


def priced(**terms: Any) -> LineSettlement:
    changed = msgspec.structs.replace(PRICE.terms, **terms)
    return replace(BOOKING, prices={1: msgspec.structs.replace(PRICE, terms=changed)})


def tiered(**rates: int) -> LineSettlement:
    batch = rates_from({"input": 500, "output": 2000, **rates})
    return priced(schedules=(TierRates("batch", 0, batch),))


HELD = AttemptOpening(1_000_000, 1, 100 * 500 + 50 * 2000, "t")


@pytest.mark.parametrize(
    ("booking", "more"),
    [
        (priced(search_pusd=5 * 10**9), {"num_search_queries": 1_000_000}),
        (tiered(audio_output=80_000), {"completion_tokens_details": {"audio_tokens": 4}}),
        (tiered(audio_input=80_000), {"prompt_tokens_details": {"audio_tokens": 20}}),
        (tiered(), {"completion_tokens": 9_000, "completion_tokens_details": {
            "reasoning_tokens": 8_990}, "total_tokens": 9_020}),
    ],
)  # fmt: skip
def test_no_line_is_booked_above_its_hold_and_the_rest_is_claimed(booking, more) -> None:
    body = answer(usage={**SOUGHT, **more})
    settled = booking.settle_result(LINE, HELD, result(200, body)).settled
    assert settled.cost_pusd <= HELD.bound_pusd < settled.claimed_pusd
    assert 0 < settled.plausible_pusd <= settled.claimed_pusd
    price = booking.prices[1]
    assert settled.cost_pusd == tier_cost_pusd(settled.tokens, price, "batch")[0]


def test_searches_are_booked_as_far_as_they_were_held_for() -> None:
    booking = priced(search_pusd=10**9, searches_limit=10)
    held = replace(HELD, bound_pusd=HELD.bound_pusd + 10 * 10**9)
    body = answer(usage={**SOUGHT, "num_search_queries": 1000})
    settled = booking.settle_result(LINE, held, result(200, body)).settled
    assert (settled.tokens.searches, settled.cost_pusd) == (10, 20 * 500 + 4 * 2000 + 10 * 10**9)


@pytest.mark.parametrize(
    ("thinks", "disputed", "output"), [(True, False, 40_000), (False, True, 82)]
)
def test_thoughts_that_nobody_counted_apart_are_booked_within_the_hold(
    thinks, disputed, output
) -> None:
    terms = msgspec.structs.replace(LINE.terms, most=50_000, thinks=thinks)
    held = replace(HELD, bound_pusd=100 * 500 + 50_000 * 2000)
    usage = {"prompt_tokens": 20, "completion_tokens": 40_000, "total_tokens": 40_020}
    line = replace(LINE, terms=terms)
    settled = BOOKING.settle_result(line, held, result(200, answer(usage=usage))).settled
    assert (settled.disputed, settled.tokens.output) == (disputed, output)
    whole = 20 * 500 + 40_000 * 2000
    assert (settled.cost_pusd or 0) + (settled.plausible_pusd or 0) == whole, "or it narrows"
    if not disputed:
        assert settled.tokens.reasoning == 40_000 - 64 - len("four words of text")


def test_what_nobody_saw_costs_the_hold_whatever_kind_it_was() -> None:
    booking = tiered(cache_write_1h=4_000, reasoning=9_000)
    ended = booking.settle_lost(LINE, replace(HELD, bound_pusd=100 * 4_000 + 50 * 9_000))
    assert ended.settled.cost_pusd == 100 * 4_000 + 50 * 9_000


def test_a_stated_cost_above_the_computed_one_is_claimed() -> None:
    body = answer(usage={**SOUGHT, "cost": 0.25})
    settled = BOOKING.settle_result(LINE, OPENING, result(200, body)).settled
    assert (settled.cost_pusd, settled.claimed_pusd) == (20 * 500 + 4 * 2000, 25 * 10**10)


@pytest.mark.parametrize(("more", "partly"), [({}, False), ({"images": 5000}, True)])
def test_counts_that_nobody_knows_are_told_on_the_line(more, partly) -> None:
    body = answer(usage={**SOUGHT, **more})
    settled = BOOKING.settle_result(LINE, OPENING, result(200, body)).settled
    assert settled.partly_read is partly


def test_thoughts_beside_the_limit_teach_of_their_target() -> None:
    taught = []
    booking = replace(BOOKING, learn=lambda *told: taught.append(told))
    terms = msgspec.structs.replace(LINE.terms, allowance=10)
    usage = {"prompt_tokens": 20, "completion_tokens": 90, "total_tokens": 110}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 86}}
    line = replace(LINE, terms=terms)
    booking.settle_result(line, HELD, result(200, answer(usage=usage)))
    assert taught == [(line, "t", LimitOverrun(50, is_text=False))], "beyond the limit of 40"
    booking.settle_result(line, HELD, result(200, answer()))
    assert len(taught) == 1


def told(**members: Any) -> LineResult:
    found = result_of(json.dumps({"custom_id": LINE.attempt_id, **members}).encode())
    assert found is not None
    return found


USED = answer()["usage"]
FAILED = {"code": "server_error", "message": "why"}


@pytest.mark.parametrize(
    "members",
    [
        {"error": {**FAILED, "usage": USED}},
        {"error": FAILED, "usage": USED},
        {"error": {"code": "batch_expired"}, "usage": USED},
        {"response": {"status_code": 0, "body": None}, "error": FAILED, "usage": USED},
    ],
)
def test_an_error_that_counts_output_is_charged(members) -> None:
    """Red before: without a response nothing was booked, whatever the line counted."""
    ended = BOOKING.settle_result(LINE, OPENING, told(**members))
    assert ended.settled.cost_pusd == 20 * 500 + 4 * 2000
    assert ended.answer is None


def test_an_error_beside_an_empty_response_costs_nothing() -> None:
    """Red before: it was an answer that cannot be read, at its bound."""
    for body in ({}, {"body": None}, {"body": ""}, {"body": {}}):
        empty = told(response={"status_code": 0, **body}, error={"code": "batch_expired"})
        ended = BOOKING.settle_result(LINE, OPENING, empty)
        assert (ended.settled.cost_pusd, ended.failed, ended.answer) == (0, False, None)


def test_every_2xx_is_an_answer() -> None:
    ended = BOOKING.settle_result(LINE, OPENING, result(202, answer(usage=None)))
    assert (ended.ok, ended.settled.cost_pusd) == (True, 100 * 500 + 50 * 2000)


def test_a_code_that_is_no_word_says_nothing_of_what_was_done() -> None:
    """Red before: a list has no hash, and the whole batch was looked through again and again."""
    assert not LineResult("a", error={"code": []}).is_undone
    assert LineResult("a", error={"code": "batch_expired"}).is_undone, "control"
