"""Prepared statements write what SQLAlchemy's own would, on both databases."""

import pytest
from sqlalchemy import Integer, bindparam, delete, insert, literal, select, text
from sqlalchemy.exc import DataError, IntegrityError, OperationalError

from ledger.database import is_unavailable, make_engine, migrate
from ledger.orm import tables as orm
from ledger.writing.rows import (
    OPENED,
    SETTLED,
    UNSETTLED,
    opened_values,
    refusal_row,
    settled_values,
)
from ledger.writing.statements import COPIED_FROM, PreparedStatement, WriterStatements

WINDOW = {"budget_id": "b", "window": 7, "spent_pusd": 3, "granted_pusd": 10**25,
          "limit_pusd": None, "claimed_pusd": 0, "team_id": "t"}  # fmt: skip
HERE = {"of_budget": "b", "of_window": 7, "of_host": "h"}


@pytest.fixture
def say(engine):
    return WriterStatements(engine.dialect)


def stored(connection, table):
    columns = [column for column in table.__table__.columns if column.name != "seq"]
    return [tuple(row) for row in connection.execute(select(*columns))]


def attempt_row(opened, settled=None):
    found = UNSETTLED if settled is None else settled_values(opened, settled, late=False)
    return opened_values(opened, "j") + found


def named(row):
    return dict(zip([*OPENED, *SETTLED], row, strict=True))


def test_rows_are_stored_as_sqlalchemy_stores_them(engine, say, opened, settled, refused):
    attempt = attempt_row(opened(1), settled(1, slo_met=True))
    refusal = refusal_row(refused(1))
    for table, statement, row, said in (
        (orm.AttemptRow, say.attempts, named(attempt), attempt),
        (orm.RefusalRow, say.refusals, refusal, dict(refusal)),
        (orm.BudgetWindowRow, say.windows, WINDOW, dict(WINDOW)),
    ):
        with engine.begin() as connection:
            connection.execute(insert(table), [dict(row)])
            expected = stored(connection, table)
            connection.execute(delete(table))
            statement.run(connection, [said])
            assert stored(connection, table) == expected
            assert len(expected) == 1


def test_what_is_there_stays_where_only_the_missing_is_inserted(engine, say):
    with engine.begin() as connection:
        say.windows.run(connection, [dict(WINDOW)])
        say.windows.run(connection, [WINDOW | {"spent_pusd": 9}, WINDOW | {"window": 8}])
        rows = select(orm.BudgetWindowRow.window, orm.BudgetWindowRow.spent_pusd)
        assert sorted(map(tuple, connection.execute(rows))) == [(7, 3), (8, 3)]


def test_an_insert_says_when_a_row_is_there(engine, say, opened):
    twice = [attempt_row(opened(1))] * 2
    with engine.connect() as connection, pytest.raises(IntegrityError):
        say.attempts.run(connection, twice)


def test_spending_is_found_with_this_hosts_grant_and_no_other(engine, say):
    grant = {"budget_id": "b", "window": 7, "granted_pusd": 50}
    with engine.begin() as connection:
        assert say.spent.find(connection, dict(HERE)) is None
        say.windows.run(connection, [dict(WINDOW)])
        connection.execute(insert(orm.GrantRow), [grant | {"host": "other", "spent_pusd": 5}])
        found = say.spent.find(connection, dict(HERE))
        assert found is not None
        assert int(found[0]) == 3
        assert say.granted.find(connection, dict(HERE)) is None
        connection.execute(insert(orm.GrantRow), [grant | {"host": "h", "spent_pusd": 10**30}])
        granted = say.granted.find(connection, dict(HERE))
        assert granted is not None
        assert int(granted[0]) == 10**30
        say.spend_grant.run(connection, [HERE | {"spent_pusd": 10**30 + 1}])
        spent = select(orm.GrantRow.spent_pusd).order_by(orm.GrantRow.host)
        assert list(connection.execute(spent).scalars()) == [10**30 + 1, 5]


def test_no_rows_are_no_statement(say):
    say.attempts.run(None, [])  # type: ignore[arg-type]  # nothing may be asked of it


def test_a_parameter_may_stand_twice(engine):
    number = bindparam("number", type_=Integer)
    twice = PreparedStatement(engine.dialect, select(number + number, literal(1)))
    with engine.connect() as connection:
        assert list(twice.find(connection, {"number": 4, "param_1": 1}) or ()) == [8, 1]


def test_many_rows_are_stored_as_a_few_are(engine, say, opened, settled):
    """By COPY on PostgreSQL: nulls, documents, bytes and every character come through."""
    odd = "a\tb\nc\\N\\.'\u20ac\U0001f600"
    rows, decisions = [], []
    for number in range(2 * COPIED_FROM):
        first = opened(number, tags=((odd, odd),) if number % 2 else (), user_id=odd)
        last = settled(number, error=odd, slo_met=(None, True, False)[number % 3])
        rows.append(attempt_row(first, last))
        inputs = bytes(range(256)) if number % 2 else None
        seen = (odd + str(number), 1, bytes(range(256)))
        decisions.append((*seen, odd, None, "weight", inputs, number))
    for table, statement, many in (
        (orm.AttemptRow, say.attempts, rows),
        (orm.AttemptDecisionRow, say.decisions, decisions),
    ):
        with engine.begin() as connection:
            for row in many:
                statement.run(connection, [row])
            expected = stored(connection, table)
            connection.execute(delete(table))
            statement.run(connection, many)
            assert sorted(stored(connection, table), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"attempt_id": "r0.1"}, IntegrityError), ({"cost_pusd": 2**70}, (DataError, OverflowError)),
     ({"team_id": None}, IntegrityError)],
)  # fmt: skip
def test_what_is_wrong_with_one_of_many_is_told_as_sqlalchemy_tells_it(
    engine, say, opened, wrong, error
):
    rows = [attempt_row(opened(number)) for number in range(2 * COPIED_FROM)]
    rows[-1] = tuple((named(rows[-1]) | wrong).values())
    with pytest.raises(error), engine.begin() as connection:
        say.attempts.run(connection, rows)
    with engine.begin() as connection:
        assert stored(connection, orm.AttemptRow) == []
        say.attempts.run(connection, rows[:-1])


def test_a_server_that_goes_while_rows_are_copied_is_away(postgres_url, opened):
    migrate(postgres_url)
    engine = make_engine(postgres_url)
    rows = [attempt_row(opened(number)) for number in range(COPIED_FROM)]
    statements = WriterStatements(engine.dialect)

    def cut_off() -> None:
        with engine.begin() as connection:
            mine = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            with engine.begin() as other:
                other.execute(text(f"SELECT pg_terminate_backend({mine}, 5000)"))
            statements.attempts.run(connection, rows)

    with pytest.raises(OperationalError) as away:
        cut_off()
    assert is_unavailable(away.value)
    with engine.begin() as connection:
        statements.attempts.run(connection, rows)
        assert len(stored(connection, orm.AttemptRow)) == COPIED_FROM
    engine.dispose()
