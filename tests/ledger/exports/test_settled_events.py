"""Each row that is final is in exactly one event, whenever it became so and whoever sealed it."""

import random
from collections import Counter

import pytest
from sqlalchemy import text

from ledger.database import reading
from ledger.exports.settled_events import events_of, newest_seal, seals_behind
from ledger.writing.repository import LedgerRepository

ATTEMPTS = 40


def events(engine, behind: int = 0) -> list[dict]:
    with reading(engine) as connection:
        return [
            event
            for seal in seals_behind(connection, behind, 1_000)
            for event in events_of(connection, seal)
        ]


@pytest.mark.each_database
def test_what_is_open_is_no_event_until_it_has_settled(
    books_of_each, settled, write, seal_all
) -> None:
    assert events(books_of_each) == [], "nothing is sealed"
    seal_all(books_of_each)
    first = events(books_of_each)
    assert [(event["type"], event["id"]) for event in first] == [
        ("attempt.settled", "r1.1"), ("attempt.settled", "r2.1"), ("request.refused", "x9"),
    ]  # fmt: skip
    with reading(books_of_each) as connection:
        told = newest_seal(connection)
    write(books_of_each, settled(3))
    seal_all(books_of_each)
    assert [event["id"] for event in events(books_of_each, told)] == ["r3.1"]
    assert events(books_of_each)[: len(first)] == first


def test_an_event_says_what_the_books_say(books_of_each, seal_all) -> None:
    seal_all(books_of_each)
    _, second, refusal = events(books_of_each)
    data = second["data"]
    assert (data["cost_usd"], data["tags"]) == ("0.000000000400", {"a": "2", "b": "1"})
    assert (data["input_tokens"], data["cached_tokens"], data["output_tokens"]) == (10, 2, 5)
    assert data["settled_at"].endswith("Z")
    assert data["claimed_usd"] is None
    assert (refusal["data"]["reason"], refusal["data"]["http_status"]) == ("budget", 429)
    assert refusal["data"]["refused_at"].endswith("Z")


def test_a_lost_attempt_is_told_as_lost_and_again_with_its_evidence(
    books_of_each, settled, write, seal_all
) -> None:
    seal_all(books_of_each)
    LedgerRepository(books_of_each, host="h").settle_lost("j", at_us=6)
    seal_all(books_of_each)
    with reading(books_of_each) as connection:
        told = newest_seal(connection)
    lost = events(books_of_each)[-1]
    assert (lost["id"], lost["data"]["status"]) == ("r3.1.lost", "lost")
    write(books_of_each, settled(3), journal="k")
    seal_all(books_of_each)
    (again,) = events(books_of_each, told)
    assert (again["id"], again["data"]["status"]) == ("r3.1", "finished")


@pytest.mark.parametrize("seed", range(3))
def test_every_settled_attempt_is_in_one_event_whatever_the_order(
    engine, opened, settled, write, seal_all, seed
) -> None:
    chance = random.Random(seed)
    left = [opened(number) for number in range(1, ATTEMPTS)]
    ends = [settled(number) for number in range(1, ATTEMPTS - 5)]  # five stay open
    chance.shuffle(left)
    chance.shuffle(ends)
    begun: set[str] = set()
    waiting = {record.attempt_id: record for record in ends}
    while left or waiting:
        if left:
            record = left.pop()
            write(engine, record)
            begun.add(record.attempt_id)
        ready = sorted(begun & set(waiting))
        if ready and (chance.random() < 0.6 or not left):
            write(engine, waiting.pop(chance.choice(ready)))
        if chance.random() < 0.3:
            seal_all(engine, rows_at_once=chance.choice((1, 3, 2_500)))
    seal_all(engine)
    told = Counter(event["id"] for event in events(engine))
    with reading(engine) as connection:
        query = text("SELECT attempt_id FROM attempts WHERE settled_us IS NOT NULL")
        expected = Counter(connection.execute(query).scalars())
    assert told == expected
    assert len(told) == ATTEMPTS - 6
