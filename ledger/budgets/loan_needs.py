"""The grants that a broker needs for its workers' requests. This module does no I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.budgets.grants import BudgetAccount, GrantNeed
from ledger.budgets.loans import LoanBook
from ledger.budgets.tag_values import is_value


@dataclass(frozen=True, slots=True)
class LoanWish:
    """Money that a hold of `hold_pusd` for a team's request needs on one account."""

    account: BudgetAccount
    asked_pusd: int
    hold_pusd: int
    team: str


def is_new_value(book: LoanBook, account: BudgetAccount) -> bool:
    """Return whether the account is a tag value whose window the broker does not know."""
    return not book.is_made(account) and is_value(account.budget_id)


def grant_needs(book: LoanBook, wishes: Iterable[LoanWish]) -> list[GrantNeed]:
    """Return the amounts that the host lacks, by account."""
    by_account: dict[BudgetAccount, list[LoanWish]] = {}
    for wish in wishes:
        by_account.setdefault(wish.account, []).append(wish)
    return [need for wanted in by_account.values() for need in _needs(book, wanted)]


def _needs(book: LoanBook, wishes: Sequence[LoanWish]) -> list[GrantNeed]:
    """Return one need for all wishes if they fit, otherwise one need per wish that fits.

    The wishes are of one account, in order. The database decides: of an unknown account only the
    first wish is requested, and the smallest of the wishes that do not fit is requested too.
    """
    account = wishes[0].account
    room, standing = book.remaining_pusd(account), book.standings.get(account)
    total = sum(wish.asked_pusd for wish in wishes)
    if total <= room:
        return []
    if standing is None:
        wishes, left = wishes[:1], 0
    else:
        left = max(0, standing.remaining_pusd)
    if len(wishes) > 1 and total - room <= left:
        most = max(wish.hold_pusd for wish in wishes)
        return [GrantNeed(account, total - room, most, wishes[0].team)]
    needs: list[GrantNeed] = []
    least: LoanWish | None = None
    for wish in wishes:
        missing = wish.asked_pusd - room
        if missing <= 0:
            room -= wish.asked_pusd
        elif missing <= left:
            needs.append(GrantNeed(account, missing, wish.hold_pusd, wish.team))
            room, left = 0, left - missing
        elif least is None or wish.asked_pusd < least.asked_pusd:
            least = wish
    if least is not None:
        needs.append(GrantNeed(account, least.asked_pusd - room, least.hold_pusd, least.team))
    return needs
