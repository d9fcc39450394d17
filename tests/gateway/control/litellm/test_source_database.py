"""Rows come in batches, whole and once; columns that an older release lacks are null."""

import pytest
from sqlalchemy import text

from gateway.control.litellm import source_database
from gateway.control.litellm.source_database import COLUMNS, SourceDatabase

TEAMS = "LiteLLM_TeamTable"


@pytest.fixture
def source(postgres_url, source_engine):
    made = SourceDatabase(f"{postgres_url}?schema=public")  # as Prisma writes it
    yield made
    made.close()


def test_every_row_comes_once_however_many_batches(source, fill, monkeypatch) -> None:
    monkeypatch.setattr(source_database, "BATCH", 3)
    fill(TEAMS, *({"team_id": f"t{number}", "max_budget": 0.1} for number in range(10)))
    days = ["2026-11-01 00:00", "2026-11-01 23:59:59.999", "2026-11-02 00:00"] + [
        "2026-11-01 12:00"
    ] * 7
    fill(
        "LiteLLM_SpendLogs",
        *({"request_id": f"r{number}", "startTime": day} for number, day in enumerate(days)),
    )
    with source.reading() as connection:
        rows = list(source.rows_of(connection, TEAMS))
        assert [row["team_id"] for row in rows] == [f"t{number}" for number in range(10)]
        assert {row["max_budget"] for row in rows} == {"0.1"}
        assert set(rows[0]) == set(COLUMNS[TEAMS])
        assert rows[0]["object_permission_id"] is None  # this table has no such column
        assert source.spend_days(connection) == [("2026-11-01", 9), ("2026-11-02", 1)]


def test_a_table_that_is_not_there_has_no_rows(source, source_engine) -> None:
    with source_engine.begin() as connection:
        connection.execute(text('DROP TABLE "LiteLLM_SpendLogs"'))
        connection.execute(text(f'DROP TABLE "{TEAMS}"'))
    with source.reading() as connection:
        assert source.spend_days(connection) == []
        assert list(source.rows_of(connection, TEAMS)) == []


def test_its_name_has_no_password(postgres_url) -> None:
    assert SourceDatabase("postgresql://me:secret@db.example:5/llm").name == (
        "litellm:db.example/llm"
    )
