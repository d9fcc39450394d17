"""Each mark that a row may carry is explained."""

import re
from pathlib import Path

from ledger.attempt_flags import FLAGS
from ledger.orm.books import LOST
from ledger.writing.rows import UNSEEN


def test_marks_that_the_books_set_are_explained() -> None:
    assert {LOST, UNSEEN, "late", "unpriced", "disputed", "over_bound"} <= FLAGS.keys()
    assert all(text and not text.endswith(".") for text in FLAGS.values())


def test_the_guide_explains_each_mark_in_the_same_words() -> None:
    text = Path("docs/how-to/reconcile-bill.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE)
    assert dict(rows) == FLAGS
