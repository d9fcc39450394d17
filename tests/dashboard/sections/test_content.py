"""Kinds that were found, in words."""

import pytest

from dashboard.sections import content
from ledger.queries.content import ContentCount


def test_what_was_done_is_said_in_words() -> None:
    (row,) = content.table([ContentCount("card", "keep_inside", 3, 7)])
    assert row == {"kind": "card", "what was done": "kept inside", "requests": 3, "finds": 7}


@pytest.mark.parametrize("found", [[], [ContentCount("card", "mask", 1, 1)]])
def test_a_table_is_drawn_where_something_was_found(found, monkeypatch) -> None:
    drawn = []
    monkeypatch.setattr(content, "found_content", lambda _view: found)
    monkeypatch.setattr(content.theme, "table", lambda rows, **_: drawn.append(rows))
    monkeypatch.setattr(content.st, "subheader", lambda *_, **__: None)
    content.show(None)
    assert bool(drawn) is bool(found)
