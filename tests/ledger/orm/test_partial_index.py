"""Partial indexes have their conditions when tables are made, and import no dialect before."""

import subprocess
import sys

from sqlalchemy import Column, Integer, MetaData, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex

from ledger.orm.partial_index import partial_index, state_conditions


def test_each_database_is_told_the_condition_in_its_own_words() -> None:
    metadata = MetaData()
    index = partial_index("ix_kept", "kept", where="kept = 1", postgresql="kept")
    Table("lines", metadata, Column("kept", Integer), index)
    state_conditions(metadata)
    words = {
        dialect.name: str(CreateIndex(index).compile(dialect=dialect))
        for dialect in (sqlite.dialect(), postgresql.dialect())
    }
    assert words["sqlite"].endswith("WHERE kept = 1")
    assert words["postgresql"].endswith("WHERE kept")


def test_tables_need_no_dialect_of_postgresql() -> None:
    code = "import sys, ledger.orm.tables; print('sqlalchemy.dialects.postgresql' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert told.stdout.strip() == b"False"
