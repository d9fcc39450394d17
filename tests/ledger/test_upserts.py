"""An INSERT of the database that is asked, and the other database's dialect stays unread."""

import subprocess
import sys
from pathlib import Path

from sqlalchemy import select

from ledger.database import make_engine, migrate
from ledger.orm.identity import MetaRow
from ledger.upserts import insert_into

ROOT = Path(__file__).parents[2]
USES_SQLITE = """
import sys
from ledger.database import make_engine
from ledger.orm.identity import MetaRow
from ledger.upserts import insert_into
with make_engine("sqlite://").connect() as connection:
    insert_into(connection, MetaRow).on_conflict_do_nothing()
print("sqlalchemy.dialects.postgresql" in sys.modules)
"""


def test_the_first_row_of_a_key_stays(database_url: str) -> None:
    migrate(database_url)
    engine = make_engine(database_url)
    with engine.begin() as connection:
        for value in (1, 2):
            row = {"name": "mine", "value": value}
            connection.execute(insert_into(connection, MetaRow).on_conflict_do_nothing(), [row])
        kept = connection.execute(select(MetaRow.value).where(MetaRow.name == "mine")).scalars()
        assert list(kept) == [1]
    engine.dispose()


def test_sqlite_does_without_the_other_dialect() -> None:
    told = subprocess.run(
        [sys.executable, "-c", USES_SQLITE], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert told.stdout.strip() == "False"
