"""The fold is idempotent however records are repeated, reordered and cut into batches."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.accounts import counted_claim_pusd
from ledger.journals.records import Hold
from ledger.writing.fold import AttemptStage, JournalItem, KnownAttempt, fold, fold_lost
from ledger.writing.rows import OPENED, UNSETTLED, opened_record_of


def known_after(folded, before):
    after = dict(before)
    for new in folded.rows.attempts:
        stage = AttemptStage.OPEN if new.settled is UNSETTLED else AttemptStage.SETTLED
        row = dict(zip(OPENED, new.opened, strict=True))
        after[new.attempt_id] = KnownAttempt(opened_record_of(row), stage, ())
    for row in folded.rows.settles:
        after[row["of_attempt"]].stage = AttemptStage.SETTLED
    return after


@given(data=st.data())
def test_any_prefix_may_be_replayed_at_any_point(data, opened, settled):
    records = [record for number in range(4) for record in (opened(number, holds=()),
                                                            settled(number))]  # fmt: skip
    items = [JournalItem("j", 1, place, b"", record) for place, record in enumerate(records)]
    known, place, postings, attempts = {}, 0, [], 0
    while place < len(items):
        start = data.draw(st.integers(0, place))
        end = data.draw(st.integers(place + 1, len(items)))
        folded = fold(items[start:end], known)
        assert folded.unmatched == []
        postings += folded.rows.postings
        attempts += len(folded.rows.attempts)
        known, place = known_after(folded, known), end
    assert attempts == 4
    assert sorted(entry_id for entry_id, *_ in postings) == sorted(
        f"r{number}.1" for number in range(4) for _ in range(2)
    )


def test_spending_is_told_by_journal(opened, settled):
    items = [
        JournalItem(journal, 1, 0, b"", record)
        for number, journal in ((1, "a"), (2, "b"))
        for record in (opened(number), settled(number))
    ]
    window = opened(1).holds[0].window
    folded = fold(items, {})
    assert folded.spent == {
        ("a", "team:search@month", window): 400,
        ("b", "team:search@month", window): 400,
    }


def test_what_has_nothing_to_stand_on_comes_back_with_its_reason(opened, settled, refused):
    records = [settled(1), opened(2), None, settled(2), refused(3), settled(2), opened(2)]
    items = [JournalItem("j", 1, place, b"", record) for place, record in enumerate(records)]
    items.append(JournalItem("j", 1, 9, b"", None, "too long"))
    folded = fold(items, {})
    assert [(item.offset, reason) for item, reason in folded.unmatched] == [
        (0, "a settle without its open"), (2, "unreadable"), (9, "too long"),
    ]  # fmt: skip
    assert (len(folded.rows.attempts), len(folded.rows.refusals)) == (1, 1)
    assert list(folded.spent.values()) == [400]


@given(
    hard=st.booleans(),
    lost=st.booleans(),
    cost=st.none() | st.integers(0, 2000),
    claim=st.none() | st.integers(2001, 3000),
    times=st.integers(1, 3),
)
def test_an_attempt_counts_once_at_its_cost_however_it_is_found(
    opened, settled, hard, lost, cost, claim, times
):
    """Lost, it counts at its bound until its end is found; what it claims counts beside that."""
    held = tuple(
        Hold(name, window, 1000 if hard else 0)
        for name, window in (("team:a@day", 5), ("key:k@day", 5), ("key:k@day", 6))
    )
    begun = opened(1, holds=held)
    known = {begun.attempt_id: KnownAttempt(begun, AttemptStage.OPEN, held)}
    spent, counted_only, claimed = Counter(), Counter(), Counter()

    def count(folded):
        spent.update(folded.spent)
        assert not (folded.booked and hard), "a desk lent it"
        for account, change in folded.booked.items():
            assert change[:2] == (0, 0), "no grant is of what a soft budget counts"
            counted_only[account] += change.counted_pusd

    if lost:
        found = fold_lost([("j", known[begun.attempt_id])], 9)
        count(found)
        assert set((spent if hard else counted_only).values()) == {1000}
        assert [row["actual_pusd"] for row in found.rows.hold_ends] == [1000] * 3
        known[begun.attempt_id].stage = AttemptStage.LOST
    end = settled(1, cost_pusd=cost, claimed_pusd=claim, plausible_pusd=claim and 7)
    items = [JournalItem("j", 1, 0, b"", end)] * times
    folded = fold(items, known)
    count(folded)
    claimed.update(folded.claimed)
    sums = [spent["j", hold.scope, hold.window] for hold in held]
    counted = [counted_only[hold.scope, hold.window] for hold in held]
    assert (sums if hard else counted) == [cost or 0] * 3
    assert not any(counted if hard else sums)
    assert [row["actual_pusd"] for row in folded.rows.hold_ends] == [cost or 0] * 3
    counted = counted_claim_pusd(end)
    assert [claimed[hold.scope, hold.window] for hold in held] == [counted] * 3
    assert (counted > 0) is (claim is not None and cost is not None)


def test_a_lost_attempt_spends_its_hold(opened):
    attempt = KnownAttempt(opened(1), AttemptStage.OPEN, opened(1).holds)
    folded = fold_lost([("a", attempt)], 9)
    assert list(folded.spent.values()) == [1000]
    assert folded.rows.hold_ends[0]["state"] == "suspense"
    assert [amount for *_, amount in folded.rows.postings] == [1000, -1000]


@pytest.mark.parametrize(
    ("found_first", "changes"), [(False, [(400, -600, 0)]), (True, [(1000, 0, 0), (-600, -600, 0)])]
)
def test_what_a_later_declaration_booked_gives_back_what_was_not_used(
    opened, settled, found_first, changes
) -> None:
    """Its grant was of the bound: with the end it is of the cost, found lost before or not."""
    booked = (Hold("team:a@day", 5, 1000),)
    begun = opened(1, holds=())
    known = {begun.attempt_id: KnownAttempt(begun, AttemptStage.OPEN, (), None, booked)}
    told = []
    if found_first:
        told.append(fold_lost([("j", known[begun.attempt_id])], 9).booked)
        known[begun.attempt_id].stage = AttemptStage.LOST
    items = [JournalItem("j", 1, 0, b"", settled(1, cost_pusd=400))]
    told.append(fold(items, known).booked)
    assert [tuple(change["team:a@day", 5]) for change in told] == changes
