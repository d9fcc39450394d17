"""Journals that cannot be read on: errors count at once, a standstill after two seconds."""

from ledger.writing.stalls import STANDSTILL_S, StallWatch


def test_an_error_counts_at_once_and_ends_with_progress() -> None:
    watch = StallWatch(lambda: 5.0)
    assert watch.reason() is None
    watch.record_failure("w0-a", "Input/output error")
    assert watch.reason() == "journal w0-a cannot be read on: Input/output error"
    watch.record_progress("w0-a")
    assert watch.reason() is None


def test_a_standstill_counts_after_its_time_and_from_its_place() -> None:
    now_s = 0.0
    watch = StallWatch(lambda: now_s)
    watch.record_standstill("w0-a", "byte 9")
    now_s = STANDSTILL_S - 0.1
    watch.record_standstill("w0-a", "byte 9")
    assert watch.reason() is None
    now_s = STANDSTILL_S
    assert "byte 9" in watch.reason()
    watch.record_standstill("w0-a", "byte 20")  # it went on meanwhile
    assert watch.reason() is None


def test_a_journal_that_is_gone_stalls_nobody() -> None:
    watch = StallWatch(lambda: 0.0)
    watch.record_failure("a", "EIO")
    watch.record_failure("b", "EIO")
    watch.keep({"b", "c"})
    assert watch.reason() == "journal b cannot be read on: EIO"
    watch.keep(())
    assert watch.reason() is None
