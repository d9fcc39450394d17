"""Results are counted once for each attempt, and those of none apart."""

from gateway.batches.line_settlement import LineResult
from gateway.batches.result_file import ResultFile


def test_a_result_counts_once_and_what_is_of_no_attempt_is_odd() -> None:
    found, ours = ResultFile(), {"a", "b"}
    first, other, foreign = LineResult("a"), LineResult("b"), LineResult("z")
    assert found.add(first, ours) is first
    assert found.add(LineResult("a"), ours) is None
    assert found.add(other, ours) is other
    assert found.add(foreign, ours) is None
    assert found.add(None, ours) is None
    assert (found.known, found.odd) == ({"a", "b"}, 2)
