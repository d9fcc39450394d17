"""Tables of generated pages stay tables, whatever a cell has in it."""

from deploy.docsite.markdown import WRITTEN, code, head, table


def test_cells_are_one_line_each_and_keep_their_pipes() -> None:
    shown = table(("a", "b"), [("x | y", "two\nlines")])
    assert shown.splitlines() == ["| a | b |", "|---|---|", "| x \\| y | two lines |"]


def test_a_page_begins_with_its_title_and_says_how_it_is_written() -> None:
    assert head("Title", "Words.").split("\n\n") == ["# Title", WRITTEN, "Words."]


def test_nothing_is_no_code() -> None:
    assert (code(""), code("a")) == ("", "`a`")
