"""The leaves of every table, in order, and alike whichever way the rows are asked for."""

from ledger.seals import sealed
from ledger.seals.seal import SealRanges


def test_attempts_come_by_their_number_and_an_open_one_has_no_leaf(books_of_each):
    with books_of_each.connect() as connection:
        found = list(sealed.attempts(connection, 0, 99))
        some = list(sealed.attempts(connection, 0, 99, [2, 3]))
    assert [finding.seq for finding in found] == [1, 2, 3]
    assert [finding.leaf is None for finding in found] == [False, False, True]
    assert some == found[1:]
    assert len({finding.leaf for finding in found}) == 3


def test_ranges_leave_out_their_beginning_and_hold_their_end(books_of_each):
    with books_of_each.connect() as connection:
        for read in (sealed.attempts, sealed.postings, sealed.refusals, sealed.prices):
            whole = [row[0] for row in read(connection, 0, 99)]
            assert whole, read
            assert [row[0] for row in read(connection, whole[0], 99)] == whole[1:]
            assert [row[0] for row in read(connection, 0, whole[0])] == whole[:1]


def test_a_step_is_bounded_in_every_table():
    far = SealRanges(100, 100, 1, 0)
    assert sealed.before(SealRanges(), far, 10) == SealRanges(10, 20, 1, 0)
    assert sealed.before(SealRanges(95, 95, 1, 0), far, 10) == far
