"""Progress stands beside the output and not in it."""

import pytest

from gateway.cli.progress_bars import bars, progress


def test_bars_leave_the_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with bars() as bar:
        bar.advance(bar.add_task("rows", total=2), 2)
    with progress() as bar:
        bar.add_task("long")
    told = capsys.readouterr()
    assert told.out == ""
    assert "rows" in told.err
    assert "long" in told.err


def test_quiet_progress_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(quiet=True) as bar:
        bar.add_task("long")
    assert capsys.readouterr() == ("", "")
