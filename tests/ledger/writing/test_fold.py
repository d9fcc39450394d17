"""The fold is idempotent however records are repeated, reordered and cut into batches."""

from hypothesis import given
from hypothesis import strategies as st

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


def test_a_lost_attempt_spends_its_hold(opened):
    attempt = KnownAttempt(opened(1), AttemptStage.OPEN, opened(1).holds)
    folded = fold_lost([("a", attempt)], 9)
    assert list(folded.spent.values()) == [1000]
    assert folded.rows.hold_ends[0]["state"] == "suspense"
    assert [amount for *_, amount in folded.rows.postings] == [1000, -1000]
