"""The dashboard's questions are answered from indexes, on SQLite's own word."""

import pytest
from sqlalchemy import text

from ledger.database import make_engine, migrate


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("opened_us >= 5", "ix_attempts_opened_us"),
        ("team_id = 'a' AND opened_us >= 5", "ix_attempts_team_id_opened_us"),
        ("model = 'a' AND opened_us >= 5", "ix_attempts_model_opened_us"),
        ("target = 'a' AND opened_us >= 5", "ix_attempts_target_opened_us"),
        ("journal = 'a' AND settled_us IS NULL", "ix_attempts_unsettled"),
        ("attempt_id = 'a'", "autoindex"),
        ("request_id = 'a'", "ix_attempts_request_id"),
        ("request_id = 'a' AND opened_us >= 5", "ix_attempts_request_id"),
    ],
)
def test_attempts_are_found_by_an_index(sqlite_url, query, index):
    migrate(sqlite_url)
    engine = make_engine(sqlite_url)
    with engine.connect() as connection:
        plan = connection.execute(
            text(f"EXPLAIN QUERY PLAN SELECT cost_pusd FROM attempts WHERE {query}")
        ).all()
    engine.dispose()
    assert index in plan[0][-1]
