"""While budgets are declared nobody moves their money: two connections of one database."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from lock_waits import is_somebody_waiting

from ledger.budgets.batch_escrow import BatchEscrow
from ledger.budgets.declaring import serialize_declarations
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow, release_idle, shrink
from ledger.database import make_engine


@pytest.mark.parametrize("move", ["grow", "shrink", "leave", "send"])
def test_no_window_is_locked_while_budgets_are_declared(lent_database, move):
    """A declaration locks own budgets before defaults' accounts: red before, as a deadlock."""
    engine = make_engine(lent_database.lend())
    account = BudgetAccount("org:acme@month", 0)

    def send():
        with engine.begin() as connection:
            BatchEscrow(connection, [], 0).lock([(["org:acme"], 5)])

    moves = {
        "grow": lambda: grow(engine, "h", [GrantNeed(account, 5, 5)]),
        "shrink": lambda: shrink(engine, "h", account, 0),
        "leave": lambda: release_idle(engine, "h", [account]),
        "send": send,
    }
    try:
        with ThreadPoolExecutor(1) as pool:
            with engine.begin() as connection:
                serialize_declarations(connection)
                told = pool.submit(moves[move])
                while not told.done() and not is_somebody_waiting(engine):
                    pass
                assert not told.done()
            told.result()
    finally:
        engine.dispose()
        lent_database.take_back()
