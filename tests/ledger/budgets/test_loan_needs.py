"""What is asked of the database for several wishes at once: pure."""

from ledger.budgets.grants import NO_ROOM, AccountBalance, BudgetAccount, GrantNeed
from ledger.budgets.loan_needs import LoanWish, grant_needs, is_new_value
from ledger.budgets.loans import LoanBook

TEAM, RUN = BudgetAccount("team:a@day", 0), BudgetAccount("tag:run=1@day", 0)


def book(granted: int = 0, limit: int = 100) -> LoanBook:
    made = LoanBook()
    made.set_grant(TEAM, AccountBalance(limit, granted, 0, granted, 0, 0))
    return made


def wishes(*amounts: int, account: BudgetAccount = TEAM) -> list[LoanWish]:
    return [LoanWish(account, pusd, pusd, "a") for pusd in amounts]


def asked(known: LoanBook, *amounts: int) -> list[int]:
    return [need.missing_pusd for need in grant_needs(known, wishes(*amounts))]


def test_together_where_all_fit_else_one_by_one_and_of_the_rest_the_least() -> None:
    assert asked(book(granted=50), 20, 30) == []
    assert asked(book(), 20, 30) == [50]
    assert asked(book(), 80, 30, 90) == [80, 30]
    assert asked(book(), 300, 200) == [200]
    assert asked(LoanBook(), 80, 30) == [80], "nothing is known of it: the first alone"


def test_a_need_is_of_the_team_that_wishes() -> None:
    (need,) = grant_needs(LoanBook(), wishes(5, account=RUN))
    assert need == GrantNeed(RUN, 5, 5, "a")


def test_a_value_is_new_until_the_database_has_made_it() -> None:
    known = book()
    assert [is_new_value(known, at) for at in (TEAM, RUN)] == [False, True]
    known.set_grant(RUN, NO_ROOM)
    assert is_new_value(known, RUN)
    known.set_grant(RUN, AccountBalance(5, 0, 0, 0, 0, 0))
    assert not is_new_value(known, RUN)
