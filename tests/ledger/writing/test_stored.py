"""What was stored comes back as the values it was made of."""

from ledger.database import NAMED_AT_ONCE
from ledger.writing.fold import AttemptStage, JournalItem
from ledger.writing.repository import LedgerRepository
from ledger.writing.stored import known_attempts


def apply(engine, *records):
    items = [JournalItem("j", 1, place, b"", record) for place, record in enumerate(records)]
    LedgerRepository(engine, host="h").apply(items, (), at_us=1)


def test_attempts_come_back_with_stage_and_holds(engine, opened, settled):
    apply(engine, opened(1), opened(2), settled(2), opened(3, holds=()))
    with engine.connect() as connection:
        known = known_attempts(connection, ["r1.1", "r2.1", "r3.1", "r4.1"])
    assert {name: each_name.stage for name, each_name in known.items()} == {
        "r1.1": AttemptStage.OPEN,
        "r2.1": AttemptStage.SETTLED,
        "r3.1": AttemptStage.OPEN,
    }
    assert known["r1.1"].holds == opened(1).holds
    assert known["r3.1"].holds == ()
    assert known["r1.1"].opened == opened(1, holds=(), decision=b"")


def test_lost_attempts_are_told_from_settled_ones(engine, opened):
    apply(engine, opened(1))
    LedgerRepository(engine, host="h").settle_lost("j", at_us=2)
    with engine.connect() as connection:
        assert known_attempts(connection, ["r1.1"])["r1.1"].stage is AttemptStage.LOST


def test_many_ids_are_asked_in_pieces(engine, opened):
    count = NAMED_AT_ONCE + 3
    apply(engine, *(opened(number) for number in range(count)))
    with engine.connect() as connection:
        assert len(known_attempts(connection, [f"r{number}.1" for number in range(count)])) == count
