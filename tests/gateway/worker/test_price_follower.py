"""A running gateway follows the price book; what is under way keeps its version."""

import json
import time

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from gateway.followers import FOLLOW_S
from gateway.worker.price_follower import PriceFollower
from ledger.prices.book import Price, PriceBook
from ledger.prices.diff import planned
from ledger.prices.drafts import APPROVED_RANK, PriceDraft
from ledger.prices.rates import PriceTerms, rates_from
from ledger.prices.stored import ImportStamp, import_approved, stored_prices

NAME = "openai/gpt-4o-mini"  # what the providers of a stack are priced as
DEAL = {"input": 7_000_000, "output": 9_000_000}


def store(stack, kinds: dict[str, int]) -> int:
    """Approve a price for the name; its version."""
    draft = PriceDraft(NAME, "deal.csv", PriceTerms(rates_from(kinds)), rank=APPROVED_RANK)

    def plan(stored, at_us):
        return planned(stored, [draft], book="deal.csv", only=lambda _: True, at_us=at_us)

    now_us = time.time_ns() // 1000
    seen = plan(stored_prices(stack.database), now_us)
    done = import_approved(
        stack.database, plan, seen, stamp=ImportStamp("ann", "deal.csv"), at_us=now_us
    )
    assert len(done.changes.rows) == 1
    return max(price.version for price in stored_prices(stack.database))


def cost(row, kinds: dict[str, int]) -> int:
    return row["input_tokens"] * kinds["input"] + row["output_tokens"] * kinds["output"]


def test_an_import_counts_within_its_time_and_not_for_what_is_under_way(stack, patiently) -> None:
    (before,) = stack.settled(stack.chat("api", max_tokens=4))
    body = {"model": "steady", "stream": True, "max_tokens": 30,
            "messages": [{"role": "user", "content": "hello"}]}  # fmt: skip
    long = stack.raw(body)  # 0.05 s a token
    patiently(lambda: stack.rows("model = 'steady'"))
    version = store(stack, DEAL)
    stored_s = time.monotonic()

    def repriced() -> bool:
        (row,) = stack.settled(stack.chat("api", max_tokens=4))
        assert row["price_version"] in (before["price_version"], version)
        return row["price_version"] == version

    while not repriced():
        assert time.monotonic() - stored_s < FOLLOW_S
    (row,) = stack.settled(stack.chat("api", max_tokens=4))
    assert (row["price_version"], row["cost_pusd"]) == (version, cost(row, DEAL))
    (slow,) = patiently(lambda: stack.rows("model = 'steady' AND settled_us IS NOT NULL"))
    long.close()
    listed = {"input": 150_000, "output": 600_000}
    assert slow["price_version"] == before["price_version"]
    assert slow["cost_pusd"] == cost(slow, listed)
    with stack.reader.connect() as connection:
        kept = connection.execute(
            text("SELECT price FROM price_versions WHERE version = :version"),
            {"version": before["price_version"]},
        ).scalar_one()
    assert json.loads(kept)["terms"]["rates"]["input"] == listed["input"]


class Desk:
    """Takes the books that it is given, as candidates do."""

    def __init__(self) -> None:
        self.books: list[PriceBook] = []

    def reprice(self, book: PriceBook) -> None:
        self.books.append(book)


def price(version: int, **fields) -> Price:
    terms = PriceTerms(rates_from({"input": version, "output": 1}))
    return Price(**{"version": version, "name": NAME, "book": "x", "effective_from_us": version,
                    "terms": terms, **fields})  # fmt: skip


@pytest.fixture
def desk():
    """Repricing over a list of versions, and what it handed on."""
    stored, desk = [price(1)], Desk()

    def newer(known: int) -> list[Price]:
        return [row for row in stored if row.version > known]

    return stored, desk, PriceFollower(PriceBook(stored), newer, desk)


async def test_a_new_book_is_put_in_place_whole(desk) -> None:
    stored, candidates, repricing = desk
    assert not await repricing.follow(1)  # nothing newer
    stored += [price(2), price(3)]
    assert await repricing.follow(3)
    (book,) = candidates.books
    assert (book.newest_version, repricing.known) == (3, 3)
    assert book.find(NAME, 2).version == 2
    assert not await repricing.follow(3)


async def test_prices_that_cannot_be_used_leave_the_known_ones(desk) -> None:
    stored, candidates, repricing = desk
    stored.append(price(2, terms=PriceTerms(rates_from({"input": -1, "output": 1}))))
    assert not await repricing.follow(2)
    assert candidates.books == []
    assert repricing.known == 2  # not looked at again


async def test_with_the_database_away_the_known_prices_stay_until_it_is_back() -> None:
    answers = iter([OperationalError("", {}, Exception("away")), [price(2)]])

    def newer(_: int):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    candidates = Desk()
    repricing = PriceFollower(PriceBook([price(1)]), newer, candidates)
    assert not await repricing.follow(2)
    assert repricing.known == 1
    assert await repricing.follow(2)
    assert candidates.books[0].newest_version == 2
