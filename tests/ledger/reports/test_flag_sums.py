"""What stands at several targets under one flag is one sum; a cost that nobody knows is none."""

from ledger.attempt_flags import FLAGS
from ledger.queries.reads import FlaggedAttempts
from ledger.reports.flag_sums import FlagSum, flag_sums


def test_flags_are_summed_over_targets_the_dearest_first() -> None:
    lines = [
        FlaggedAttempts("disputed", "a/x", 2, 30),
        FlaggedAttempts("disputed", "b/y", 1, 5),
        FlaggedAttempts("lost", "a/x", 4, 700),
        FlaggedAttempts("unpriced", "a/z", 9, 0),
        FlaggedAttempts("of_tomorrow", "a/z", 1, 1),
    ]
    assert flag_sums(lines) == [
        FlagSum("lost", 4, 700, FLAGS["lost"]),
        FlagSum("disputed", 3, 35, FLAGS["disputed"]),
        FlagSum("of_tomorrow", 1, 1, ""),
        FlagSum("unpriced", 9, None, FLAGS["unpriced"]),
    ]
    assert flag_sums([]) == []
