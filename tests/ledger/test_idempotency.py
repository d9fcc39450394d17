"""One row for one `Idempotency-Key`, whoever asks at the same time, and until it expires."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from sqlalchemy import func, select, update

from ledger import idempotency
from ledger.idempotency import IdempotencyRecord, claim_key, forget_keys, free_key
from ledger.orm.identity import SubmissionRow

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
ONE = IdempotencyRecord("k1", "order-7", b"\1" * 32, "req_1")


def ask(engine, asking: IdempotencyRecord, now_us: int = 0, kept_us: int = DAY_US) -> str:
    return claim_key(engine, asking, now_us=now_us, expires_us=now_us + kept_us).request_id


def count(engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(SubmissionRow)).scalar_one()


def test_the_first_takes_it_and_the_second_learns_whose_it_is(engine):
    assert claim_key(engine, ONE, now_us=0, expires_us=DAY_US) == ONE
    second = replace(ONE, request_id="req_2", digest=b"\2" * 32)
    assert claim_key(engine, second, now_us=1, expires_us=DAY_US) == ONE
    assert count(engine) == 1


@pytest.mark.parametrize("change", [{"key_id": "k2"}, {"name": "order-8"}])
def test_another_key_of_either_kind_is_another_row(engine, change):
    assert ask(engine, ONE) == "req_1"
    assert ask(engine, replace(ONE, request_id="req_2", **change)) == "req_2"


def test_a_crowd_of_connections_has_one_winner_each(engine):
    crowd, names = 8, 6
    gate = Barrier(crowd)

    def run(number: int) -> list[str]:
        found = []
        for name in range(names):
            gate.wait(30)
            asking = replace(ONE, name=f"n{name}", request_id=f"req_{number}_{name}")
            found.append(ask(engine, asking))
        return found

    with ThreadPoolExecutor(crowd) as pool:
        said = list(pool.map(run, range(crowd)))
    assert [len(set(of_name)) for of_name in zip(*said, strict=True)] == [1] * names
    assert count(engine) == names


def test_only_who_took_it_gives_it_back(engine):
    assert ask(engine, ONE) == "req_1"
    free_key(engine, replace(ONE, request_id="req_2"))
    assert ask(engine, replace(ONE, request_id="req_3")) == "req_1"
    free_key(engine, ONE)
    assert ask(engine, replace(ONE, request_id="req_3")) == "req_3"


@pytest.mark.parametrize(("kept_us", "whose"), [(DAY_US, "req_2"), (9 * DAY_US, "req_1")])
def test_after_eight_days_it_stands_if_it_is_kept_that_long(engine, kept_us, whose):
    assert ask(engine, ONE, kept_us=kept_us) == "req_1"
    second = replace(ONE, request_id="req_2")
    assert ask(engine, second, 8 * DAY_US, kept_us) == whose
    assert ask(engine, replace(ONE, request_id="req_3"), 8 * DAY_US, kept_us) == whose


def test_what_expired_is_forgotten_some_at_a_time(engine, monkeypatch):
    monkeypatch.setattr(idempotency, "FORGOTTEN_AT_ONCE", 2)
    for number in range(3):
        ask(engine, replace(ONE, name=f"old-{number}"))
    ask(engine, replace(ONE, name="new"), HOUR_US)
    assert not forget_keys(engine, DAY_US - 1)
    assert count(engine) == 4
    assert forget_keys(engine, DAY_US)
    assert not forget_keys(engine, DAY_US)
    assert count(engine) == 1
    assert ask(engine, replace(ONE, name="new", request_id="req_2"), DAY_US) == "req_1"


def test_who_finds_it_taken_and_freed_for_ever_is_told(engine, monkeypatch):
    """Between the claim and the look at it somebody frees it, each time."""
    ask(engine, ONE)
    monkeypatch.setattr(idempotency, "TRIES", 0)
    with pytest.raises(TimeoutError):
        ask(engine, replace(ONE, request_id="req_2"))


def test_what_is_taken_anew_while_it_is_forgotten_stays(engine):
    ask(engine, ONE)
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            anew = update(SubmissionRow).values(request_id="req_2", expires_us=3 * DAY_US)
            connection.execute(anew)
            forgetting = pool.submit(forget_keys, engine, 2 * DAY_US)
            with pytest.raises(TimeoutError):
                forgetting.result(0.3)  # it has found the row, and waits for it
        assert not forgetting.result(10)
    assert ask(engine, replace(ONE, request_id="req_3"), 2 * DAY_US) == "req_2"
