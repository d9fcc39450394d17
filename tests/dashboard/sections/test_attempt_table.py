"""Requests as rows: a column for claims stands there only where a provider claims something."""

from types import SimpleNamespace

from dashboard.sections.attempt_table import MONEY, attempt_rows

ROW = SimpleNamespace(
    opened_us=1, team="search", model="chat", target="a/chat", input_tokens=1, output_tokens=2,
    cost_pusd=None, compared_pusd=10**12, spill_reason=None, reason="cheapest", ttft_us=500_000,
    status=None, flag=None, request_id="r1", claimed_pusd=None,
)  # fmt: skip


def test_what_is_not_known_stays_empty() -> None:
    (row,) = attempt_rows([ROW])
    assert row["cost"] is None
    assert (row["at the comparator"], row["first token, s"], row["status"]) == (1.0, 0.5, "open")
    assert "claimed" not in row
    claimed = SimpleNamespace(**{**vars(ROW), "claimed_pusd": 2 * 10**12})
    assert attempt_rows([ROW, claimed])[1]["claimed"] == 2.0
    assert set(MONEY) <= set(attempt_rows([claimed])[0])
