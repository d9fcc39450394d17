"""Which attempts a scope counts: what there is no scope of is a bug of who asks."""

import pytest
from sqlalchemy import select

from ledger.budgets.binding import BudgetLine
from ledger.budgets.escrow import EscrowError
from ledger.budgets.scopes import BY_PREFIX
from ledger.budgets.spending import (
    column_of,
    default_spending,
    first_values,
    scope_spending,
    sharers_of,
)
from ledger.budgets.windows import window_at
from ledger.orm.books import AttemptRow

DAY = window_at("day", "UTC", 1_780_000_000)


def test_an_unknown_scope_is_refused(engine) -> None:
    with engine.connect() as connection, pytest.raises(EscrowError, match="planet:mars"):
        scope_spending(connection, "planet:mars", "x", DAY)


@pytest.mark.each_database
def test_a_value_of_each_tag_is_an_account_and_a_star_is_none(engine, write, opened) -> None:
    """All attempts of a tag's default, once for each account that they count on."""
    at_us = DAY.start_s * 10**6 + 5
    for number, value in enumerate(("a", "a", "b=c", "*")):
        write(engine, opened(number, opened_us=at_us, tags=(("run", value), ("app", "web"))))
    write(engine, opened(9, opened_us=at_us, tags=()))
    line = BudgetLine("tag:run=*@day", "tag:run=*", "day", "UTC", True, 1)
    with engine.connect() as connection:
        found = default_spending(connection, line, first_values(connection, "run", DAY))
        query = select(AttemptRow.request_id, found.account).select_from(found.rows)
        rows = connection.execute(query.where(found.where)).all()
    assert sorted(map(tuple, rows)) == [
        ("r0", "tag:run=a@day"), ("r1", "tag:run=a@day"), ("r2", "tag:run=b=c@day"),
    ]  # fmt: skip


def test_keys_alone_are_counted_on_others(engine) -> None:
    with engine.connect() as connection:
        assert sharers_of(connection, BY_PREFIX["user"]) == {}
    assert column_of(BY_PREFIX["user"]) is AttemptRow.user_id
