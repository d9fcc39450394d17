"""A line that was billed beyond its limit raises what the host's next requests are held for."""

from dataclasses import replace

import pytest

from gateway.batches.line_learner import LineLearner
from gateway.clock import Clock
from gateway.fleet.estimate_table import EstimateTable
from gateway.request.limit_overruns import LimitOverrun
from ledger.batches.outgoing import LineTerms, OutLine

LINE = OutLine(1, "a", "c", 1, 0, b"{}", LineTerms(n=1, most=4, told=True, prompt_bound=2))


def test_the_hosts_table_learns_of_the_target(tmp_path) -> None:
    table, clock = EstimateTable(tmp_path / "estimates"), Clock(wall_us=lambda: 10**15)
    LineLearner(table, clock).learn_of("p/m")(LINE, "t", LimitOverrun(500, is_text=False))
    assert table.target_output.allowance("p/m", "t") == 1000
    assert table.target_output.allowance("p/other", "t") == 0
    asking = replace(LINE, body=b'{"reasoning_effort": "high"}')
    LineLearner(table, clock).learn_of("p/m")(asking, "t", LimitOverrun(900, is_text=False))
    assert table.target_output.allowance("p/m", "t") == 1000
    assert table.target_output.allowance("p/m", "t", thinks=True) == 1800
    assert table.target_output.allowance("p/m", "other", thinks=True) == 0
    table.close()


@pytest.mark.parametrize(
    ("target", "body", "twice"),
    [
        ("p/m", b'{"max_completion_tokens": 4}', True),
        ("p/m", b'{"max_completion_tokens": 4, "max_tokens": null}', True),
        ("p/m", b'{"max_completion_tokens": 4, "max_tokens": 4}', False),
        ("p/m", b'{"max_tokens": 4}', False),
        ("openai/m", b'{"max_completion_tokens": 4}', False),  # it refuses the older name
    ],
)
def test_a_line_that_was_told_its_limit_by_a_name_that_is_not_known(
    tmp_path, target, body, twice
) -> None:
    """Red before: everybody was held for more, and the target was never told."""
    table, clock = EstimateTable(tmp_path / "estimates"), Clock(wall_us=lambda: 10**15)
    learn, line = LineLearner(table, clock).learn_of(target), replace(LINE, body=body)
    learn(line, "t", LimitOverrun(500, is_text=True))
    assert table.target_output.is_told_twice(target) is twice
    assert table.target_output.allowance(target, "t") == (0 if twice else 1000)
    learn(line, "t", LimitOverrun(500, is_text=False))
    assert table.target_output.allowance(target, "t") == 1000, "thoughts beside it"
    table.close()


def test_without_a_table_nobody_learns() -> None:
    LineLearner().learn_of("p/m")(LINE, "t", LimitOverrun(500, is_text=False))
