"""Lines that go out to providers and come back: each step whole or not at all, and once."""

import msgspec
import pytest
from sqlalchemy import insert, text

from ledger.batches.lines import LineStore, NewLine
from ledger.batches.outgoing import (
    LeavingLine,
    LineEnd,
    LineTerms,
    OutgoingRecord,
    OutgoingStore,
    ProviderBatchState,
)
from ledger.batches.store import BatchRecord, BatchStore
from ledger.journals.records import TokenCounts
from ledger.orm import tables as orm
from ledger.verify.checks import verify

NOW_US, UNTIL_US = 1000, 10**6
TEAM = "team:search@month"


@pytest.fixture
def lines(engine) -> LineStore:
    batches = BatchStore(engine)
    batches.create(BatchRecord("batch_1", "search", "k", "/v1/x", "24h", "f", 10, 10**9))
    made = LineStore(engine, "seat/1")
    made.add("batch_1", [NewLine(n, f"c{n}", "m", b"{}") for n in (1, 2, 3)])
    batches.lease("batch_1", "v", now_us=0, until_us=1)
    batches.move("batch_1", "v", ("validating",), status="in_progress", total=3)
    with engine.begin() as connection:
        row = {"id": TEAM, "scope": "team:search", "limit_pusd": 2500, "hard": True}
        common = {"period": "month", "timezone": "UTC", "created_us": 0}
        connection.execute(insert(orm.BudgetRow), [{**row, **common}])
    return made


@pytest.fixture
def store(engine) -> OutgoingStore:
    made = OutgoingStore(engine, "seat/1")
    record = OutgoingRecord(
        "out_1", "batch_1", "openai", "m", "/v1/x", ProviderBatchState.COLLECTING, 5
    )
    made.create(record, until_us=UNTIL_US)
    return made


@pytest.fixture
def leave(lines, store, opened):
    """`send_lines(2)`: so many lines go out; what became of them."""

    def left(count: int):
        claims = lines.claim_onward("batch_1", "m", count, now_us=NOW_US, until_us=UNTIL_US)
        terms = LineTerms(1, 4, told=True, prompt_bound=20, compared=(7,))
        leaving = [
            LeavingLine(
                claim,
                msgspec.structs.replace(
                    opened(claim.number), attempt_id=f"{claim.request_id}.1",
                    request_id=claim.request_id, holds=(),
                ),
                ("team:search",), b"body", terms,
            )
            for claim in claims
        ]  # fmt: skip
        return store.send_lines("out_1", leaving, at_us=NOW_US)

    return left


def states(engine) -> list[str]:
    with engine.connect() as connection:
        query = text("SELECT state FROM batch_lines ORDER BY number")
        return list(connection.execute(query).scalars())


def ended(line, settled, **given):
    done = {"attempt_id": line.attempt_id, "cost_pusd": 250, "tokens": TokenCounts(input=1)}
    return LineEnd(line, msgspec.structs.replace(settled(1), **done), **given)


def test_the_last_lines_leave_first_and_only_with_money(engine, leave, store) -> None:
    left = leave(3)
    assert [item.claim.number for item in left.gone] == [3, 2]
    assert [item.claim.number for item in left.broke] == [1], "2500 has room for two bounds of 1000"
    assert states(engine) == ["running", "out", "out"]
    assert [line.number for line in store.lines("out_1")] == [2, 3]
    assert store.line("out_1", 2).terms == LineTerms(
        1, 4, told=True, prompt_bound=20, compared=(7,)
    )
    found = store.find("out_1")
    assert (found.lines, found.bytes) == (2, 8)
    with engine.connect() as connection:
        assert verify(connection).findings == ()


def test_a_line_that_is_another_runners_by_now_does_not_leave(engine, lines, store, leave) -> None:
    claims = lines.claim_onward("batch_1", "m", 1, now_us=NOW_US, until_us=NOW_US)
    other = LineStore(engine, "other/1")
    assert len(other.claim("m", 9, now_us=NOW_US + 1, until_us=UNTIL_US)) == 3
    terms = LineTerms(1, 4, told=True, prompt_bound=20)
    assert (
        store.send_lines("out_1", [LeavingLine(claims[0], None, (), b"", terms)], at_us=5).gone
        == ()
    )
    assert set(states(engine)) == {"running"}


def test_a_settle_and_its_answer_are_booked_once(engine, leave, store, settled) -> None:
    leave(1)
    record = store.find("out_1")
    (line,) = store.lines("out_1")
    this_ended = ended(line, settled, answer=b"answer", ok=True)
    assert store.settle_lines(record, [this_ended], at_us=9) == 1
    assert store.settle_lines(record, [this_ended], at_us=10) == 0
    assert states(engine) == ["waiting", "waiting", "done"]
    found = BatchStore(engine).find("batch_1", "search")
    assert (found.completed, found.failed) == (1, 0)
    with engine.connect() as connection:
        grant = connection.execute(text("SELECT granted_pusd, spent_pusd FROM grants")).one()
        assert [int(item) for item in grant] == [250, 250]
        names = [finding.check for finding in verify(connection).findings]
    assert set(names) <= {"costs_rederive"}, "there is no price in these books"


def test_what_was_not_done_waits_again(engine, leave, store, settled) -> None:
    leave(2)
    second, third = store.lines("out_1")
    record = store.find("out_1")
    rest = [
        ended(second, settled, failed=True, next_us=77), ended(third, settled, kept=True),
    ]  # fmt: skip
    assert store.settle_lines(record, rest, at_us=9) == 0
    with engine.connect() as connection:
        query = text("SELECT state, failures, next_us FROM batch_lines ORDER BY number")
        assert [tuple(row) for row in connection.execute(query)] == [
            ("waiting", 0, 0), ("waiting", 1, 77), ("waiting", 0, 0),
        ]  # fmt: skip
    again = LineStore(engine, "seat/1").claim_onward(
        "batch_1", "m", 9, now_us=NOW_US, until_us=UNTIL_US
    )
    assert [item.number for item in again] == [2, 1], "the third is kept"


def test_a_line_that_ended_otherwise_is_left_alone(engine, leave, lines, store, settled) -> None:
    """Its batch was closed without waiting any longer: the attempt is settled all the same."""
    leave(1)
    lines.close("batch_1", [(3, b"expired")])
    (line,) = store.lines("out_1")
    assert (
        store.settle_lines(
            store.find("out_1"), [ended(line, settled, answer=b"x", ok=True)], at_us=9
        )
        == 0
    )
    assert list(lines.answers("batch_1", ok=False)) == [b"expired"]
    with engine.connect() as connection:
        query = text("SELECT count(*) FROM attempts WHERE settled_us IS NULL")
        assert connection.execute(query).scalar_one() == 0


def test_one_life_at_a_time_has_it_in_hand(engine, store) -> None:
    other = OutgoingStore(engine, "other/1")
    assert not other.lease("out_1", now_us=NOW_US, until_us=UNTIL_US)
    assert not other.move("out_1", ProviderBatchState.COLLECTING, state=ProviderBatchState.READY)
    assert other.lease("out_1", now_us=UNTIL_US, until_us=2 * UNTIL_US)
    assert not store.move("out_1", ProviderBatchState.COLLECTING, state=ProviderBatchState.READY)
    assert other.move("out_1", ProviderBatchState.COLLECTING, state=ProviderBatchState.READY)
    assert not other.move("out_1", ProviderBatchState.COLLECTING, state=ProviderBatchState.SENT), (
        "it is ready by now"
    )
    assert [item.id for item in store.unfinished()] == ["out_1"]
    after = OutgoingStore(engine, "other/2")
    after.take_over("other")
    assert after.lease("out_1", now_us=NOW_US, until_us=UNTIL_US)
    assert BatchStore(engine).any_due(5), "a runner is needed while something is out"
    assert after.move("out_1", ProviderBatchState.READY, state=ProviderBatchState.DONE)
    assert store.unfinished() == []


def test_openings(leave, store) -> None:
    (item,) = leave(1).gone
    found = store.find_openings([item.opened.attempt_id, "nobody", "no\0body"])
    assert list(found) == [item.opened.attempt_id]
    assert found[item.opened.attempt_id].bound_pusd == 1000
