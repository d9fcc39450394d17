"""From the first migration to the newest, with rows: each is there, and the books hold."""

import shutil
from decimal import Decimal

import pytest
from sqlalchemy import MetaData, Numeric, Table, inspect, select

from ledger.budgets.binding import BoundBudgets
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow
from ledger.budgets.windows import window_at
from ledger.database import make_engine, migrate, sqlite_url
from ledger.declared import declare
from ledger.journals.reader import JournalOffset
from ledger.journals.records import Hold
from ledger.prices.book import tier_cost_pusd
from ledger.seals.audit_log import AuditLog
from ledger.sums.rollups import Rollups
from ledger.verify.checks import verify
from ledger.writing.fold import JournalItem
from ledger.writing.repository import JournalMove, LedgerRepository

pytestmark = pytest.mark.long  # two ledgers are made for each
FIRST, FILLED = "0001", "0004"  # then there are keys; then books, budgets and engines
AT_US = 1_795_435_200_000_000


@pytest.fixture
def source(migrated_sqlite, tmp_path, make_random_ledger, opened, settled):
    """Two days of traffic with closed hours, and a hard budget that was spent from."""
    path = tmp_path / "source.db"
    shutil.copyfile(migrated_sqlite, path)
    engine = make_engine(sqlite_url(path))
    random = make_random_ledger(7, 40)
    random.adjusted = {}
    random.prices = random.prices[:1]  # without sound and tiers, of which old tables had nothing
    random.fill(engine)
    budget = BudgetSpec("team:search", "month", 10**15, hard=True, timezone="UTC")
    declare(engine, contracts=(), budgets=[budget], config=("h", "y"), at_us=AT_US)
    month = window_at("month", "UTC", AT_US // 10**6).start_s
    account = BudgetAccount("team:search@month", month)
    grow(engine, "h", [GrantNeed(account, 10**12, 10**12)])
    first = opened(
        9_999, opened_us=AT_US, bound_pusd=10**12, holds=(Hold(*_of(account), 10**12),),
        price_version=1,
    )  # fmt: skip
    end = settled(9_999, settled_us=AT_US + 9)
    cost, _ = tier_cost_pusd(end.tokens, random.prices[0], None)
    end = settled(9_999, settled_us=AT_US + 9, cost_pusd=cost)
    items = [JournalItem("j9", 1, place, b"", item) for place, item in enumerate((first, end))]
    move = JournalMove("j9", "w", JournalOffset(0, 0), JournalOffset(1, 7))
    LedgerRepository(engine, host="h").apply(items, (move,), at_us=AT_US)
    yield engine
    engine.dispose()


def _of(account: BudgetAccount) -> tuple[str, int]:
    return account.budget_id, account.window


def carry(source, target) -> dict[str, list[dict]]:
    """Every row into the same tables of an older ledger, as far as it has their columns."""
    carried = {}
    there, here = MetaData(), MetaData()
    there.reflect(bind=target)
    names = set(inspect(source).get_table_names())
    for table in there.sorted_tables:
        if table.name not in names or table.name == "alembic_version":
            continue
        old = Table(table.name, here, autoload_with=source)
        with source.connect() as connection:
            found = [dict(row) for row in connection.execute(select(old)).mappings()]
        rows = [
            {
                column.name: int(row[column.name]) if _is_total(column, row) else row[column.name]
                for column in table.columns
                if column.name in row
            }
            for row in found
        ]
        with target.begin() as connection:
            connection.execute(table.delete())
            if rows:
                connection.execute(table.insert(), rows)
        carried[table.name] = rows
    return carried


def _is_total(column, row) -> bool:
    return isinstance(column.type, Numeric) and row[column.name] is not None


def kept(target, carried: dict[str, list[dict]]) -> None:
    """Each row, with all that it had then."""
    now = MetaData()
    for name, rows in carried.items():
        if not rows:
            continue
        table = Table(name, now, autoload_with=target)
        columns = [table.columns[item] for item in rows[0]]
        with target.connect() as connection:
            found = (
                [dict(row) for row in connection.execute(select(*columns)).mappings()]
                if rows
                else []
            )
        assert sorted(map(repr, _plain(found))) == sorted(map(repr, _plain(rows))), name


def _plain(rows: list[dict]) -> list[dict]:
    """The same figures in the same words: totals are text in one database, and not in the other."""
    return [{name: _word(value) for name, value in row.items()} for row in rows]


def _word(value: object) -> object:
    return str(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


def test_every_row_is_kept_from_the_first_migration_on(database_url, source, seal_all) -> None:
    migrate(database_url, FIRST)
    engine = make_engine(database_url)
    keys = carry(source, engine)
    migrate(database_url, FILLED)
    kept(engine, keys)
    books = carry(source, engine)
    assert {"attempts", "postings", "holds", "grants", "gpu_hours", "engine_samples"} <= {
        name for name, rows in books.items() if rows
    }
    migrate(database_url)
    kept(engine, books)
    with engine.connect() as connection:
        assert verify(connection).findings == ()
        assert BoundBudgets(connection).of("team:search@month").limit_pusd == 10**15
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    while AuditLog(engine).follow(at_us=AT_US):
        pass
    with engine.connect() as connection:
        assert verify(connection).findings == ()
    engine.dispose()


def test_a_row_that_a_migration_loses_is_missed(database_url, source) -> None:
    """The control."""
    migrate(database_url, FILLED)
    engine = make_engine(database_url)
    books = carry(source, engine)
    migrate(database_url)
    lost = Table("postings", MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        connection.execute(lost.delete().where(lost.c.line == 1))
    with pytest.raises(AssertionError, match="postings"):
        kept(engine, books)
    engine.dispose()
