"""Postings as rows of the table `postings`, for every writer of journal entries."""

from typing import Any

from ledger.accounts import Posting

DatabaseRow = dict[str, Any]
Values = tuple[Any, ...]  # in the order of the columns
_COLUMNS = ("entry_id", "line", "at_us", "account", "amount_pusd")


def posting_values(entry_id: str, at_us: int, postings: tuple[Posting, ...]) -> list[Values]:
    return [
        (entry_id, line, at_us, posting.account, posting.amount_pusd)
        for line, posting in enumerate(postings)
    ]


def posting_rows(entry_id: str, at_us: int, postings: tuple[Posting, ...]) -> list[DatabaseRow]:
    return [
        dict(zip(_COLUMNS, values, strict=True))
        for values in posting_values(entry_id, at_us, postings)
    ]
