"""How many tries a batch takes, by what refuses it: counted, without a database."""

import pytest

from ledger.writing.bisect import (
    ALL_AT_ONCE,
    TRIES_ALONE,
    BatchBisector,
    RecordsRejected,
    TransientDbError,
)
from ledger.writing.fold import JournalItem


def items(count, segment=1):
    return [JournalItem("w0-a", segment, number, b"", None) for number in range(count)]


class Books:
    """Refuse the offsets in `bad`; fail for a moment where more than `together` are tried."""

    def __init__(self, bad=(), together=ALL_AT_ONCE):
        self.bad, self.together = set(bad), together
        self.tries, self.there = [], []

    def __call__(self, some):
        self.tries.append(len(some))
        if len(some) > self.together:
            raise TransientDbError("deadlock")
        if self.bad & {item.offset for item in some}:
            raise RecordsRejected("no such team")
        self.there += [item.offset for item in some]


def test_what_nothing_refuses_is_tried_once():
    books = Books()
    BatchBisector().apply_parts(items(300), books)
    assert (books.tries, books.there) == ([300], list(range(300)))
    BatchBisector().apply_parts([], books)
    assert books.tries == [300]


@pytest.mark.parametrize("victim", [0, 63, 64, 127])
def test_one_refused_is_found_by_halves_and_the_others_keep_their_order(victim):
    apart, batch, books = BatchBisector(), items(128), Books(bad={victim})
    apart.apply_parts(batch, books)
    assert len(books.tries) == 1 + 2 * 7  # whole, then both halves of what holds it
    assert sorted(books.tries) == sorted([128, 64, 64, 32, 32, 16, 16, 8, 8, 4, 4, 2, 2, 1, 1])
    assert books.there == [number for number in range(128) if number != victim]
    rest, aside = apart.split_known(batch)
    assert [item.offset for item in rest] == books.there
    assert aside == [(batch[victim], "no such team")]


def test_what_was_refused_is_not_tried_again_until_it_is_forgotten():
    apart, batch = BatchBisector(), items(128)
    apart.apply_parts(batch, Books(bad={5, 90}))
    again = Books(bad={5, 90})
    apart.apply_parts(apart.split_known(batch)[0], again)
    assert again.tries == [126]
    apart.forget_items(batch[:64])
    rest, aside = apart.split_known(batch)
    assert [item.offset for item, _ in aside] == [90]
    assert len(rest) == 127
    apart.forget_items(batch)
    assert apart.split_known(batch) == (batch, [])


def test_another_record_at_the_same_place_is_not_taken_for_it():
    apart, batch = BatchBisector(), items(2)
    apart.apply_parts(batch, Books(bad={1}))
    other = [JournalItem("w0-a", 1, 1, b"other", None), *items(2, segment=2)]
    assert apart.split_known(other) == (other, [])


def test_what_failed_for_a_moment_is_never_refused_and_later_parts_are_no_larger():
    apart, books = BatchBisector(), Books(together=100)
    apart.apply_parts(items(4000), books)
    assert books.there == list(range(4000))
    assert apart.split_known(items(4000))[1] == []
    assert books.tries[:7] == [4000, 2000, 1000, 500, 250, 125, 62]
    failed = [size for size in books.tries if size > 100]
    passed = len(books.tries) - len(failed)
    assert passed <= 4000 // 62 + 4  # and no ones and twos
    assert len(failed) <= 6 + passed // 2  # one larger part is tried after two that passed
    assert sum(failed[6:]) < 4000
    following = Books(together=100)
    apart.apply_parts(items(4000), following)
    assert max(following.tries) <= 125  # what was learned stays


def test_parts_grow_again_once_nothing_fails():
    apart = BatchBisector()
    apart.apply_parts(items(4000), Books(together=20))
    calm = Books()
    apart.apply_parts(items(ALL_AT_ONCE), calm)
    assert len(calm.tries) <= 10
    assert max(calm.tries) > ALL_AT_ONCE // 4
    assert apart.is_whole(items(ALL_AT_ONCE // 2))


def test_refused_among_what_fails_for_a_moment():
    apart, batch, books = BatchBisector(), items(1000), Books(bad={3, 500, 999}, together=60)
    apart.apply_parts(batch, books)
    assert books.there == [number for number in range(1000) if number not in (3, 500, 999)]
    assert [item.offset for item, _ in apart.split_known(batch)[1]] == [3, 500, 999]


def test_one_that_fails_for_a_moment_again_and_again_ends_it_and_is_not_refused():
    apart, batch, books = BatchBisector(), items(4), Books(together=0)
    with pytest.raises(TransientDbError):
        apart.apply_parts(batch, books)
    assert books.tries == [4, 2, *[1] * TRIES_ALONE]
    assert books.there == []
    assert apart.split_known(batch) == (batch, [])


def test_few_that_failed_for_a_moment_do_not_make_parts_of_one():
    apart = BatchBisector()
    with pytest.raises(TransientDbError):
        apart.apply_parts(items(2), Books(together=0))
    assert apart.is_whole(items(16))
    assert not apart.is_whole(items(17))
