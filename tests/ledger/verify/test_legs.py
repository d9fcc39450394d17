import pytest
from sqlalchemy import text

from ledger.database import make_engine, migrate
from ledger.journals.records import AttemptLeg
from ledger.verify.legs import legs_add_up
from ledger.writing.rows import RowBatch, add_settled
from ledger.writing.statements import WriterStatements

PARTS = (
    AttemptLeg("0", "prefill", 7, 64, 900, None, "done"),
    AttemptLeg("1", "decode", 5, 96, 4000, 30_000, "done"),
)


@pytest.fixture
def connection(tmp_path, opened, settled):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    migrate(url)
    engine = make_engine(url)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def keep(connection, rows: RowBatch) -> None:
    WriterStatements(connection.dialect).legs.run(connection, rows.legs)


def attempt(connection, name: str, engine_us: int) -> None:
    said = ("attempt_id", "request_id", "attempt_no", "opened_us", "key_id", "team_id", "org_id",
            "kind", "stream", "model", "target", "backend", "upstream_model", "simulated",
            "policy", "policy_version", "reason", "bound_pusd", "prompt_tokens_estimate",
            "journal", "engine_us")  # fmt: skip
    values = dict.fromkeys(said, "x") | {
        "attempt_id": name, "attempt_no": 1, "opened_us": 1, "stream": False, "simulated": True,
        "bound_pusd": 0, "prompt_tokens_estimate": 1, "engine_us": engine_us,
    }  # fmt: skip
    names = ", ".join(said)
    marks = ", ".join(f":{each}" for each in said)
    connection.execute(text(f"INSERT INTO attempts ({names}) VALUES ({marks})"), values)


def test_parts_of_a_record_are_rows_that_add_up(connection, opened, settled) -> None:
    record, rows = opened(), RowBatch()
    add_settled(rows, record, settled(engine_us=12, legs=PARTS))
    keep(connection, rows)
    attempt(connection, record.attempt_id, 12)
    assert list(legs_add_up(connection)) == []
    read = connection.execute(text("SELECT * FROM attempt_legs ORDER BY position")).all()
    assert [tuple(row)[1:] for row in read] == [
        (0, "0", "prefill", 7, 64, 900, None, "done"),
        (1, "1", "decode", 5, 96, 4000, 30_000, "done"),
    ]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE attempt_legs SET busy_us = 8 WHERE position = 0", "took 12 us of engines"),
        ("DELETE FROM attempt_legs WHERE position = 1", "its parts 7 us"),
        ("DELETE FROM attempts", "no settled attempt"),
        ("UPDATE attempt_legs SET held_us = -1 WHERE position = 1", "less than nothing"),
        ("UPDATE attempts SET engine_us = NULL", "no settled attempt"),
    ],
)
def test_parts_that_are_not_the_whole_are_found(
    connection, opened, settled, statement, words
) -> None:
    record, rows = opened(), RowBatch()
    add_settled(rows, record, settled(engine_us=12, legs=PARTS))
    keep(connection, rows)
    attempt(connection, record.attempt_id, 12)
    connection.execute(text(statement))
    ((name, told),) = legs_add_up(connection)
    assert name == record.attempt_id
    assert words in told
