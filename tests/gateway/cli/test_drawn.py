"""What Rich draws: no column is lost on a narrow screen, and who leaves ends no long command."""

import errno
import io
import os
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from gateway.cli.drawn import PipeSafeConsole
from gateway.cli.output import table


def test_numbers_are_right_aligned_and_words_left():
    with (out := Console(width=40)).capture() as captured:
        out.print(table("T", ("name", ">count"), [["a", "7"], ["longer", "1,234"]]))
    assert [line.rstrip() for line in captured.get().splitlines()] == [
        "T", "name    count", "a           7", "longer  1,234",
    ]  # fmt: skip


def test_a_narrow_screen_folds_words_but_never_cuts_numbers():
    with (out := Console(width=20)).capture() as captured:
        out.print(table("T", ("name", ">count"), [["a-name-longer-than-the-screen", "1,234,567"]]))
    assert "1,234,567" in captured.get()
    letters = "".join(line[:9].strip() for line in captured.get().splitlines()[2:])
    assert letters == "a-name-longer-than-the-screen"


@pytest.mark.parametrize("width", [10, 30, 80])
def test_what_is_copied_stays_in_one_piece_on_any_screen(width: int):
    whole, name = "0123456789abcdef", "a name of many words that folds"
    with (out := Console(width=width, soft_wrap=True)).capture() as captured:
        out.print(table("T", ("=id", "name", "team", ">n"), [[whole, name, "t" * 40, "7"]]))
    assert whole in captured.get()
    if width > len(whole) + 3 * 3:
        assert all(len(line.rstrip()) <= width for line in captured.get().splitlines())


def test_no_column_goes_where_a_screen_is_narrow():
    """At 40 columns `keys list` had ids, states and days, and nothing of names and teams."""
    columns = ("=id", "name", "team", "scopes", "=state", "=day", ">n")
    row = [
        "0123456789abcdef",
        "nightly",
        "search",
        "inference usage",
        "active",
        "2026-11-26",
        "1,234,567",
    ]
    with (out := Console(width=40, soft_wrap=True)).capture() as captured:
        out.print(table("T", columns, [row]))
    said = captured.get()
    assert [item for item in (row[0], "nig", "sea", "inf", *row[4:]) if item not in said] == []


def test_words_that_are_not_marked_do_fold():
    """The control."""
    with (out := Console(width=30)).capture() as captured:
        out.print(table("T", ("id", "team"), [["0123456789abcdef", "t" * 40]]))
    assert "0123456789abcdef" not in captured.get()


@pytest.mark.parametrize("error", [errno.EPIPE, errno.EIO])
def test_what_runs_for_long_outlives_who_reads_it(error: int):
    """A pipe's reader that left, and a terminal that was closed; Rich would end the program."""
    with tempfile.TemporaryFile("w") as real:

        class GoneOutput(io.StringIO):
            fileno = real.fileno

            def write(self, _: str) -> int:
                raise OSError(error, os.strerror(error))

        out = PipeSafeConsole(file=GoneOutput())
        out.print_line("one")
        out.print_line("two")
        real.write("goes nowhere")
        real.flush()
        assert os.path.samestat(os.fstat(real.fileno()), Path(os.devnull).stat())
