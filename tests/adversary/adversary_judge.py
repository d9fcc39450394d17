"""Two judges: the books of a hard budget, and the bill of an honest provider.

Each fault begins with the name of the invariant that does not hold.
"""

from collections.abc import Iterator

from adversary_calls import AdversaryCall, AdversarySchedule
from adversary_world import ACCOUNT, CallResult

from gateway.kinds.inference_request import NEWER_LIMIT
from ledger.journals.records import AttemptSettled, TokenCounts
from ledger.prices.book import Price, cost_pusd

# What a record may have in place of `disputed`, to say that its usage or its price is partly known.
MEDIA = (b"image", b"audio", b"video", b"file")  # in each body that has one
THINKS = b"enable_thinking"  # in each body that asks for thoughts which are billed beside its limit
MARKS = ("disputed", "claimed_pusd", "unknown_tier", "partly_read", "partly_priced")


def faults_of(schedule: AdversarySchedule, results: list[CallResult]) -> list[str]:
    price = Price(1, "up/m", "adversary", 0, schedule.terms)
    faults = [fault for result in results for fault in _of_books(schedule, result)]
    faults += [fault for result in results for fault in _of_bill(price, result)]
    return faults + list(_of_repeats(results))


def _of_books(schedule: AdversarySchedule, result: CallResult) -> Iterator[str]:
    if result.spent_pusd > schedule.limit_pusd:
        yield f"limit: {result.spent_pusd} booked of {schedule.limit_pusd}"
    if result.refused is not None:
        bound = result.bound_pusd
        if result.refused != "budget" or (bound is not None and bound <= result.room_pusd):
            yield f"refused: {result.refused}, bound {bound} in room {result.room_pusd}"
        return
    if result.opened.provider != ACCOUNT:
        yield f"account: billed by {result.opened.provider}"
    if result.asked_tier != result.call.asks:
        yield f"tier: asked for {result.asked_tier}, not for {result.call.asks}"
    booked, bound = result.settled.cost_pusd, result.opened.bound_pusd
    if booked is None:
        yield "priced: a row has no cost"
    elif booked > bound:
        yield f"hold: {booked} booked, {bound} held"


def _of_bill(price: Price, result: CallResult) -> Iterator[str]:
    call, settled = result.call, result.settled
    if settled is None:
        return
    claimed = getattr(settled, "claimed_pusd", None)
    billed = settled.cost_pusd if claimed is None else claimed
    if settled.disputed and not (call.is_odd or call.is_lie):
        yield "disputed: honest usage"
    if call.made is not None:
        bill = bill_pusd(call, price)
        if billed != bill:
            yield f"bill: {billed} in the books, {bill} billed for {call.made}"
        if claimed is not None and not (call.is_odd or call.is_beyond):
            yield f"bound: {claimed} billed for what was asked, above the hold"
        return
    least = bill_pusd(call, price, fee=False)
    if (settled.cost_pusd or 0) < least:
        yield f"least: {settled.cost_pusd} booked, {least} made"
    if call.is_lie and not is_marked(settled):
        yield "mark: a lie bears none"


def bill_pusd(call: AdversaryCall, price: Price, *, fee: bool = True) -> int:
    """What was made, at its price; nothing made is free of a request's fee."""
    made = call.least if call.made is None else call.made
    if made == TokenCounts():
        return 0
    cost = cost_pusd(made, price, tier=call.tier)
    return cost if fee else cost - price.terms.request_pusd


def is_marked(settled: AttemptSettled) -> bool:
    return any(getattr(settled, name, False) for name in MARKS)


def _of_repeats(results: list[CallResult]) -> Iterator[str]:
    """The same request is held at the same amount, whatever others claimed in between.

    After thoughts that were billed beside a limit it is held for more, so that it is covered; so is
    a medium after one that was billed beyond what is stated, and a text is not.
    """
    first: dict[bytes, tuple[CallResult, int]] = {}
    for place, result in enumerate(results):
        before, since = first.setdefault(result.call.body, (result, place))
        if before is result or before.bound_pusd is None or not result.is_limited:
            continue
        bound, beside = result.bound_pusd or 0, results[since:place]
        ignores_limits = sum(map(_ignores_limit, results[:place])) > 1
        if not (ignores_limits or any(_raises(other, result) for other in beside)):
            if result.bound_pusd != before.bound_pusd:
                yield f"same: held at {before.bound_pusd}, then at {result.bound_pusd}"
        elif bound < before.bound_pusd:
            yield f"same: held at {before.bound_pusd}, then at less: {bound}"
        if result.call is before.call and result.settled and before.settled:
            claimed = getattr(result.settled, "claimed_pusd", None)
            if (result.call.is_beside or result.call.is_beyond) and claimed is not None:
                yield f"raised: {claimed} billed beyond the bound twice, above the hold"


def _raises(other: CallResult, result: CallResult) -> bool:
    """Whether what another call was billed may raise the hold of this one."""
    beyond = other.call.is_beyond and any(mark in result.call.body for mark in MEDIA)
    both_think = THINKS in other.call.body and THINKS in result.call.body
    return other.settled is not None and (other.call.is_beside or beyond or both_think)


def _ignores_limit(result: CallResult) -> bool:
    """Whether its target wrote on; the second time it was told the limit by both names."""
    return result.settled is not None and NEWER_LIMIT.encode() in result.call.body
