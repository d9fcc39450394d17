"""A quarter more while none is refused; a pause that grows while refusals go on."""

from gateway.batches.pace import (
    BEGIN,
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    STEP_S,
    LineConcurrency,
    select_turns,
)
from ledger.batches.store import BatchRecord


def grown(pace: LineConcurrency, out: int, now_s: float) -> tuple[int, float]:
    """Lines go out whenever there is room, ten times; nothing ends."""
    for _ in range(10):
        out += pace.additional_lines(out, now_s)
        now_s += STEP_S
    return out, now_s


def test_it_grows_to_its_limit_while_nothing_is_refused() -> None:
    assert LineConcurrency(64).additional_lines(0, 1.0) == BEGIN
    assert grown(LineConcurrency(5), 0, 1.0)[0] == 5
    assert 8 <= grown(LineConcurrency(64), 0, 1.0)[0] <= 16


def test_what_goes_out_at_once_is_little() -> None:
    pace = LineConcurrency(64)
    out, now_s = grown(pace, 0, 1.0)
    more = pace.additional_lines(out, now_s)
    assert 1 <= more <= out // 4
    assert pace.additional_lines(out + more, now_s) == 0, "not before these are taken for admitted"


def test_a_refusal_keeps_what_is_out_and_pauses() -> None:
    pace = LineConcurrency(64)
    out, now_s = grown(pace, 0, 1.0)
    pace.record_refusal(out, now_s)
    assert pace.additional_lines(out - 1, now_s + FIRST_PAUSE_S / 2) == 0
    assert pace.additional_lines(out - 3, now_s + FIRST_PAUSE_S) == 2, "what ended is replaced"
    assert pace.additional_lines(out - 1, now_s + FIRST_PAUSE_S + STEP_S) >= 1, (
        "and one more is tried"
    )


def test_refusals_of_one_volley_are_one() -> None:
    pace = LineConcurrency(64)
    out, now_s = grown(pace, 0, 1.0)
    for _ in range(out):
        pace.record_refusal(out, now_s)
    assert pace.additional_lines(0, now_s + FIRST_PAUSE_S) == out - 1


def test_pauses_double_to_a_limit_and_are_forgotten() -> None:
    pace, now_s = LineConcurrency(8), 10.0
    pauses = []
    for _ in range(8):
        pace.record_refusal(1, now_s)
        began_s = now_s
        while not pace.additional_lines(0, now_s):
            now_s += 0.01
        pauses.append(now_s - began_s)
    assert pauses == sorted(pauses)
    assert pauses[-1] <= LONGEST_PAUSE_S + 0.02
    assert pauses[-1] > 4 * pauses[0]
    now_s += 5.0
    pace.record_refusal(1, now_s)
    assert pace.additional_lines(0, now_s + FIRST_PAUSE_S + 0.01) == 1


def batch(name: str, team: str, status: str = "validating") -> BatchRecord:
    return BatchRecord(name, team, "k", "/v1/x", "24h", "f", 1, 2, status=status)


def test_each_team_has_one_validated_and_the_oldest_first() -> None:
    found = [batch("1", "a"), batch("2", "a"), batch("3", "b"), batch("4", "b"), batch("5", "c")]
    assert [item.id for item in select_turns(found)] == ["1", "3", "5"]


def test_what_ends_is_not_behind_what_begins() -> None:
    found = [
        batch("1", "a"), batch("2", "a"), batch("3", "b", "cancelling"),
        batch("4", "b", "finalizing"), batch("5", "a", "finalizing"),
        batch("6", "b", "in_progress"),
    ]  # fmt: skip
    assert [item.id for item in select_turns(found)] == ["3", "6", "4", "5", "1"]


def test_files_are_written_in_turns() -> None:
    found = [batch(f"a{n}", "a", "finalizing") for n in range(9)] + [batch("b", "b", "finalizing")]
    assert [item.id for item in select_turns(found)] == ["a0", "b"]
