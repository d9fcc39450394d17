"""The rows are the attempts: each once, in order, their sum the ledger's, and none of them held."""

import csv
import io
import resource
import shutil
import tracemalloc
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import event, text

from ledger.database import make_engine, open_readonly, snapshot
from ledger.exports import focus_columns as exports_focus_columns
from ledger.exports.attempts import COLUMNS, attempt_rows
from ledger.exports.delimited import csv_lines
from ledger.exports.focus import focus_rows
from ledger.exports.table import ColumnKind
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.writing.repository import LedgerRepository

NAMES = [column.name for column in COLUMNS]
BILLED = [column.name for column in exports_focus_columns.FOCUS_1_4.columns].index("BilledCost")
HELD_LIMIT_BYTES = 4_000_000
GROWN_LIMIT_BYTES = 100_000_000  # a million rows are well above one and a half gigabytes


def lines(engine, scope: Scope):
    with snapshot(engine) as connection:
        yield from csv_lines(COLUMNS, attempt_rows(connection, scope, lambda _: None))


def owed(engine) -> int:
    query = text("SELECT sum(amount_pusd) FROM postings WHERE account LIKE 'payable:%'")
    with engine.connect() as connection:
        return -int(connection.execute(query).scalar_one())


def everything(ledger) -> Scope:
    return Scope(ledger.START_US, ledger.end_us)


def test_each_attempt_once_and_the_sum_to_the_pico_dollar(random_ledger) -> None:
    written = "".join(lines(random_ledger.reader, everything(random_ledger)))
    rows = list(csv.DictReader(io.StringIO(written, newline="")))
    assert len({row["attempt_id"] for row in rows}) == len(rows) == random_ledger.written["rows"]
    total = sum(Decimal(row["cost_usd"]) for row in rows if row["cost_usd"])
    own = random_ledger.written["own_pusd"]
    assert total.scaleb(12) == random_ledger.total + own
    assert sum(not row["cost_usd"] for row in rows) == random_ledger.written["unpriced"]
    moments = [row["opened_at"] for row in rows]
    assert moments == sorted(moments)
    teams = {row["team_id"] for row in rows}
    assert teams == {"search", "ads", "'=cmd|' /C calc'!A1", "'-1+1"}


def count(ledger, scope: Scope) -> int:
    with snapshot(ledger.reader) as connection:
        return sum(1 for _ in attempt_rows(connection, scope, lambda _: None))


def test_a_team_alone_and_a_part_of_the_time(random_ledger) -> None:
    start_us, end_us = random_ledger.START_US, random_ledger.end_us
    middle_us = start_us + DAY_US
    whole = random_ledger.written["rows"]
    teams = [Scope(start_us, end_us, team) for team in random_ledger.TEAMS]
    assert sum(count(random_ledger, scope) for scope in teams) == whole
    halves = (Scope(start_us, middle_us), Scope(middle_us, end_us))
    assert sum(count(random_ledger, scope) for scope in halves) == whole


def peak_bytes(work) -> int:
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_rows_are_not_held(random_sqlite) -> None:
    one_day = Scope(random_sqlite.START_US, random_sqlite.START_US + DAY_US)
    found = peak_bytes(lambda: sum(len(line) for line in lines(random_sqlite.reader, one_day)))
    assert found < HELD_LIMIT_BYTES


def test_negative_control_held_rows_are_seen(random_sqlite) -> None:
    def hold() -> None:
        with snapshot(random_sqlite.reader) as connection:
            list(attempt_rows(connection, everything(random_sqlite), lambda _: None))

    assert peak_bytes(hold) > 1.5 * HELD_LIMIT_BYTES


def test_the_server_keeps_what_is_not_fetched_yet(random_postgres) -> None:
    """The client's library would take all rows of an ordinary statement at once."""
    cursors = []

    def look(_connection, cursor, *_: object) -> None:
        cursors.append(type(cursor).__name__)

    event.listen(random_postgres.reader, "before_cursor_execute", look)
    count(random_postgres, everything(random_postgres))
    event.remove(random_postgres.reader, "before_cursor_execute", look)
    assert set(cursors) == {"ServerCursor"}


def test_the_end_of_every_slice_is_told(random_ledger) -> None:
    seen: list[int] = []
    scope = everything(random_ledger)
    with snapshot(random_ledger.reader) as connection:
        for _ in attempt_rows(connection, scope, seen.append, slice_us=DAY_US):
            pass
    assert seen == [scope.start_us + DAY_US, scope.end_us]


def test_names_say_their_unit() -> None:
    assert {"cost_usd", "compared_usd", "opened_at", "settled_at", "ttft_us"} <= set(NAMES)
    assert not [name for name in NAMES if name.endswith("_pusd")]
    assert {column.kind for column in COLUMNS} == {
        ColumnKind.TEXT, ColumnKind.INTEGER, ColumnKind.FLAG, ColumnKind.INSTANT, ColumnKind.USD,
    }  # fmt: skip


@pytest.mark.parametrize(
    "planted",
    [
        "UPDATE attempts SET cost_pusd = cost_pusd - 10000000000 WHERE attempt_no = 1",
        "INSERT INTO attempts SELECT :columns FROM attempts WHERE attempt_id = 'r1.1'",
    ],
)
def test_a_lost_cent_and_a_double_row_are_found(engine, opened, settled, planted: str) -> None:
    """Negative control of the sums: one cent less, or a row twice, is another sum than posted."""
    cost = 20_000_000_000
    LedgerRepository(engine, host="h").import_records(
        [opened(bound_pusd=10**12, holds=()), settled(cost_pusd=cost)], journal="j", at_us=1
    )

    def sums() -> tuple[int, int]:
        with engine.connect() as connection:
            rows = attempt_rows(connection, Scope(0, 2**60 // DAY_US * DAY_US), lambda _: None,
                                slice_us=2**60)  # fmt: skip
            exported = sum(row[NAMES.index("cost_usd")] for row in rows)
            query = text("SELECT sum(amount_pusd) FROM postings WHERE account LIKE 'expense:%'")
            return exported, int(connection.execute(query).scalar_one())

    assert sums() == (cost, cost)
    with engine.begin() as connection:
        if ":columns" in planted:
            result = connection.execute(text("SELECT * FROM attempts LIMIT 0"))
            changed = {"seq": "seq + 1", "attempt_id": "'r1.2'"}
            columns = ", ".join(changed.get(name, name) for name in list(result.keys()))
            planted = planted.replace(":columns", columns)
        connection.execute(text(planted))
    exported, posted = sums()
    assert exported != posted == cost


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_million_rows(make_random_ledger, migrated_sqlite, tmp_path) -> None:
    """Long tier: the same sums, and no more memory than for a fiftieth of the rows."""
    path = tmp_path / "ledger.db"
    shutil.copyfile(migrated_sqlite, path)
    ledger = make_random_ledger(11, 1_000_000)
    writer = make_engine(f"sqlite:///{path}")
    ledger.fill(writer)
    writer.dispose()
    reader = open_readonly(f"sqlite:///{path}")
    place, page = NAMES.index("cost_usd"), resource.getpagesize()
    total, grown, before = 0, 0, 0
    for number, line in enumerate(lines(reader, everything(ledger))):
        cell = next(csv.reader([line]))[place]
        total += int(Decimal(cell).scaleb(12)) if cell and number else 0
        if number % 10_000 == 0:
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * page
            before = before or resident
            grown = max(grown, resident - before)
    assert grown < GROWN_LIMIT_BYTES
    assert total == ledger.total + ledger.written["own_pusd"]
    with snapshot(reader) as connection:
        focus = focus_rows(connection, everything(ledger), lambda _: None, period_us=HOUR_US)
        assert sum(row[BILLED] for row in focus) == owed(reader)
    reader.dispose()
