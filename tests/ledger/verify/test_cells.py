"""Sums of days whose attempts went are proved by each other, by their names and by postings."""

import pytest
from sqlalchemy import text

from ledger.seals.compact import PostingCompactor
from ledger.seals.retire import AttemptRetirer
from ledger.sums.rollups import Rollups
from ledger.verify.cells import cells_are_named, whole_days_until
from ledger.verify.checks import verify

LATER_US = 2**62


@pytest.fixture
def books(make_random_ledger, engine, seal_all, kept_books):
    """Two days of which all attempts went that may, and their postings of the first links."""

    def fill(engine):
        random = make_random_ledger(7, 70)
        random.adjusted = {}  # postings of invoices that are not there
        random.fill(engine)
        seal_all(engine, rows_at_once=30)
        while Rollups(engine).follow():
            pass
        for of_rows in (AttemptRetirer(engine), PostingCompactor(engine, rows_at_once=20)):
            while not of_rows.step(before_us=LATER_US, at_us=1).waits_for:
                pass
        return random

    kept_books.fill("cells", engine, fill)
    return engine


EDITS = {
    "a day's cost": "UPDATE rollup_days SET cost_low = cost_low + 1 WHERE {first}",
    "an hour's cost": "UPDATE rollup_hours SET cost_low = cost_low + 1 WHERE {first}",
    "a key's day": "UPDATE rollup_key_days SET cost_low = cost_low + 1 WHERE {first}",
    "a tag's hour": "UPDATE rollup_tag_hours SET attempts = attempts + 1 WHERE {first}",
    "a team": "UPDATE rollup_cells SET team_id = 'other' WHERE id = (SELECT min(id) FROM "
    "rollup_cells)",
    "a key's team": "UPDATE rollup_keys SET team_id = 'other'",
    "a tag": "UPDATE rollup_tags SET tags = '{{}} '",
    "a name": "UPDATE rollup_cells SET key = key || ' '",
    "a cell that is gone": "DELETE FROM rollup_keys WHERE id = (SELECT min(id) FROM rollup_keys)",
    "a load that is gone": "DELETE FROM rollup_loads WHERE id = (SELECT min(id) FROM rollup_loads)",
    "a day that begins at no midnight": "UPDATE rollup_days SET start_us = start_us + 1",
    "two teams of sums by key": "UPDATE rollup_key_days SET cell_id = -1 WHERE cell_id = {one};"
    "UPDATE rollup_key_days SET cell_id = {one} WHERE cell_id = {two};"
    "UPDATE rollup_key_days SET cell_id = {two} WHERE cell_id = -1",
}


def statement_of(connection, edit: str) -> str:
    """With the first row of its table, and two keys of two teams, where it names them."""
    table = EDITS[edit].split()[1]
    row = "cell_id = 0"
    if "{first}" in EDITS[edit]:
        query = f"SELECT start_us, cell_id FROM {table} ORDER BY start_us, cell_id LIMIT 1"
        start_us, cell = connection.execute(text(query)).one()
        row = f"start_us = {start_us} AND cell_id = {cell}"
    one, two = connection.execute(
        text(
            "SELECT min(id), max(id) FROM rollup_keys WHERE backend = 'api' AND id IN"
            " (SELECT min(id) FROM rollup_keys WHERE backend = 'api' GROUP BY team_id)"
        )
    ).one()
    return EDITS[edit].format(first=row, one=one, two=two)


def test_books_whose_attempts_went_hold(books) -> None:
    with books.connect() as connection:
        assert whole_days_until(connection) > 0
        assert verify(connection).findings == ()


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_is_found(books, edit) -> None:
    with books.begin() as connection:
        for statement in statement_of(connection, edit).split(";"):
            connection.execute(text(statement))
        assert list(cells_are_named(connection))


def test_sums_that_were_moved_to_another_team_are_not_what_was_posted(books) -> None:
    """Everywhere alike, names and sums: each check of sums alone holds."""
    with books.begin() as connection:
        team = connection.execute(text("SELECT min(team_id) FROM rollup_cells")).scalar_one()
        for table in ("rollup_cells", "rollup_keys", "rollup_tags", "rollup_comparisons"):
            connection.execute(
                text(
                    f"UPDATE {table} SET team_id = 'other', "
                    f"key = replace(key, '\"{team}\"', '\"other\"') WHERE team_id = '{team}'"
                )
            )
        assert list(cells_are_named(connection)) == []
        found = {(finding.check, finding.subject) for finding in verify(connection).findings}
        assert ("entries_have_a_cause", "retired attempts of other") in found
