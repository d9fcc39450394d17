"""Whose batch is taken a step further next: no team waits behind all of another's."""

from gateway.batches.turns import in_turn
from ledger.batches.store import BatchRecord


def batch(name: str, team: str, status: str = "validating") -> BatchRecord:
    return BatchRecord(name, team, "k", "/v1/x", "24h", "f", 1, 2, status=status)


def test_each_team_has_one_validated_and_the_oldest_first() -> None:
    found = [batch("1", "a"), batch("2", "a"), batch("3", "b"), batch("4", "b"), batch("5", "c")]
    assert [one.id for one in in_turn(found)] == ["1", "3", "5"]


def test_what_ends_is_not_behind_what_begins() -> None:
    found = [
        batch("1", "a"), batch("2", "a"), batch("3", "b", "cancelling"),
        batch("4", "b", "finalizing"), batch("5", "a", "finalizing"),
        batch("6", "b", "in_progress"),
    ]  # fmt: skip
    assert [one.id for one in in_turn(found)] == ["3", "6", "4", "5", "1"]


def test_files_are_written_in_turns() -> None:
    found = [batch(f"a{n}", "a", "finalizing") for n in range(9)] + [batch("b", "b", "finalizing")]
    assert [one.id for one in in_turn(found)] == ["a0", "b"]
