"""Prepared statements write what SQLAlchemy's own would, on both databases."""

import pytest
from sqlalchemy import Integer, bindparam, delete, insert, literal, select
from sqlalchemy.exc import IntegrityError

from ledger import orm
from ledger.rows import Rows as EmptyRows
from ledger.rows import add_opened, refusal_row, settled_values
from ledger.statements import Prepared, Statements

WINDOW = {"budget_id": "b", "window": 7, "spent_pusd": 3, "granted_pusd": 10**25,
          "limit_pusd": None}  # fmt: skip
HERE = {"of_budget": "b", "of_window": 7, "of_host": "h"}


@pytest.fixture
def say(engine):
    return Statements(engine.dialect)


def stored(connection, table):
    columns = [column for column in table.__table__.columns if column.name != "seq"]
    return [tuple(row) for row in connection.execute(select(*columns))]


def test_rows_are_stored_as_sqlalchemy_stores_them(engine, say, opened, settled, refused):
    attempt = add_opened(EmptyRows(), opened(1), "j") | settled_values(
        opened(1), settled(1, slo_met=True), late=False
    )
    for table, statement, row in (
        (orm.Attempt, say.attempts, attempt),
        (orm.Refusal, say.refusals, refusal_row(refused(1))),
        (orm.BudgetWindow, say.windows, WINDOW),
    ):
        with engine.begin() as connection:
            connection.execute(insert(table), [dict(row)])
            expected = stored(connection, table)
            connection.execute(delete(table))
            statement.run(connection, [dict(row)])
            assert stored(connection, table) == expected
            assert len(expected) == 1


def test_what_is_there_stays_where_only_the_missing_is_inserted(engine, say):
    with engine.begin() as connection:
        say.windows.run(connection, [dict(WINDOW)])
        say.windows.run(connection, [WINDOW | {"spent_pusd": 9}, WINDOW | {"window": 8}])
        rows = select(orm.BudgetWindow.window, orm.BudgetWindow.spent_pusd)
        assert sorted(map(tuple, connection.execute(rows))) == [(7, 3), (8, 3)]


def test_an_insert_says_when_a_row_is_there(engine, say, opened):
    twice = [add_opened(EmptyRows(), opened(1), "j") for _ in range(2)]
    with engine.connect() as connection, pytest.raises(IntegrityError):
        say.attempts.run(connection, twice)


def test_spending_is_found_with_this_hosts_grant_and_no_other(engine, say):
    grant = {"budget_id": "b", "window": 7, "granted_pusd": 50}
    with engine.begin() as connection:
        assert say.spent.find(connection, dict(HERE)) is None
        say.windows.run(connection, [dict(WINDOW)])
        connection.execute(insert(orm.Grant), [grant | {"host": "other", "spent_pusd": 5}])
        found = say.spent.find(connection, dict(HERE))
        assert found is not None
        assert (int(found[0]), found[1]) == (3, None)
        connection.execute(insert(orm.Grant), [grant | {"host": "h", "spent_pusd": 10**30}])
        found = say.spent.find(connection, dict(HERE))
        assert found is not None
        assert [int(value) for value in found] == [3, 10**30]
        say.spend_grant.run(connection, [HERE | {"spent_pusd": 10**30 + 1}])
        spent = select(orm.Grant.spent_pusd).order_by(orm.Grant.host)
        assert list(connection.execute(spent).scalars()) == [10**30 + 1, 5]


def test_no_rows_are_no_statement(say):
    say.attempts.run(None, [])  # type: ignore[arg-type]  # nothing may be asked of it


def test_a_parameter_may_stand_twice(engine):
    number = bindparam("number", type_=Integer)
    twice = Prepared(engine.dialect, select(number + number, literal(1)))
    with engine.connect() as connection:
        assert list(twice.find(connection, {"number": 4, "param_1": 1}) or ()) == [8, 1]
