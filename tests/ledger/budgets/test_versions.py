"""Budgets are what was last said of them: each change is a row, and no edit of one is unseen."""

from dataclasses import replace

import pytest
from sqlalchemy import select, text

from ledger.budgets.entered import BudgetSpec
from ledger.budgets.versions import SAID, record_versions
from ledger.declared import declare
from ledger.orm import tables as orm
from ledger.seals.audit_log import AuditLog, changes
from ledger.verify.registers import registers_hold

SEARCH = BudgetSpec("team:search", "month", 10**30, hard=True, timezone="Europe/Berlin")
ACME = BudgetSpec("org:acme", "day", 7, hard=False, timezone="UTC")

EDITS = {
    "a limit": "UPDATE budgets SET limit_pusd = '8' WHERE scope = 'org:acme'",
    "whether it is hard": "UPDATE budgets SET hard = false WHERE scope = 'team:search'",
    "its calendar": "UPDATE budgets SET timezone = 'UTC' WHERE scope = 'team:search'",
    "whose it is": "UPDATE budgets SET scope = 'team:ads' WHERE scope = 'team:search'",
    "that it is retired": "UPDATE budgets SET retired_us = 5 WHERE scope = 'team:search'",
    "that it is not any more": "UPDATE budgets SET retired_us = NULL",
    "a budget that is gone": "DELETE FROM budgets WHERE scope = 'org:acme'",
    "a version's limit": "UPDATE budget_versions SET limit_pusd = '9' WHERE seq = 1",
    "a version that is gone": "DELETE FROM budget_versions WHERE seq = 1",
    "the newest, and its budget": "DELETE FROM budget_versions WHERE scope = 'org:acme';"
    "DELETE FROM budgets WHERE scope = 'org:acme'",
    "a version and its budget": "UPDATE budget_versions SET limit_pusd = '9' WHERE seq = 2;"
    "UPDATE budgets SET limit_pusd = '9' WHERE scope = 'org:acme'",
}


def apply(engine, at_us, *budgets) -> None:
    declare(engine, contracts=(), budgets=budgets, config=("hash", "text"), at_us=at_us)


@pytest.fixture
def books(engine):
    """Two budgets, one of which was changed, then the other retired; all entered."""
    apply(engine, 1, SEARCH, ACME)
    apply(engine, 2, SEARCH, ACME)  # says nothing new
    apply(engine, 3, SEARCH)
    assert AuditLog(engine).follow(at_us=9)
    return engine


def findings(engine) -> list[tuple[str, str]]:
    with engine.connect() as connection:
        return list(registers_hold(connection))


def test_each_change_is_one_version(books) -> None:
    columns = [getattr(orm.BudgetVersionRow, name) for name in ("budget_id", "recorded_us", *SAID)]
    with books.connect() as connection:
        rows = connection.execute(select(*columns).order_by(orm.BudgetVersionRow.seq)).all()
        assert [(row[:2], row[-1]) for row in rows] == [
            (("org:acme@day", 1), None), (("team:search@month", 1), None),
            (("org:acme@day", 3), 3),
        ]  # fmt: skip
        moved = {change.row: change for change in changes(connection, 50)}["3"].fields
    assert ("retired_us", None, 3) in moved
    assert {name for name, *_ in moved} == {"recorded_us", "retired_us", "seq"}


def test_every_edit_is_found(books) -> None:
    """Each alone, and taken back."""
    assert findings(books) == []
    for edit, statements in EDITS.items():
        with books.connect() as connection:
            for word in statements.split(";"):
                connection.execute(text(word))
            assert list(registers_hold(connection)), edit
            connection.rollback()
    assert findings(books) == []


def test_a_budget_of_a_version_that_wrote_none_is_said_at_the_next_start(books) -> None:
    with books.begin() as connection:
        connection.execute(text("DELETE FROM register_entries"))
        connection.execute(text("DELETE FROM budget_versions"))
    assert findings(books) == []
    with books.begin() as connection:
        assert record_versions(connection, 11) == 2
        assert record_versions(connection, 12) == 0
    assert AuditLog(books).follow(at_us=13)
    assert findings(books) == []


def test_versions_follow_each_other_by_clocks_that_do_not(engine) -> None:
    """Else a limit is looked for among versions that are not in the order of their times."""
    for at_us, limit in ((10, 7), (5, 8), (12, 9)):
        apply(engine, at_us, replace(ACME, limit_pusd=limit))
    columns = (orm.BudgetVersionRow.recorded_us, orm.BudgetVersionRow.limit_pusd)
    with engine.connect() as connection:
        found = connection.execute(select(*columns).order_by(orm.BudgetVersionRow.seq))
        assert [tuple(row) for row in found] == [(10, 7), (10, 8), (12, 9)]
