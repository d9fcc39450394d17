"""Each mark that a row may carry is explained."""

from ledger.attempt_flags import FLAGS
from ledger.orm.books import LOST
from ledger.writing.rows import UNSEEN


def test_marks_that_the_books_set_are_explained() -> None:
    assert {LOST, UNSEEN, "late", "unpriced", "disputed", "over_bound"} <= FLAGS.keys()
    assert all(text and not text.endswith(".") for text in FLAGS.values())
