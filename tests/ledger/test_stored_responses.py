"""A kept answer is found for the request that it answered, and until it expires."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from ledger import stored_responses
from ledger.idempotency import IdempotencyRecord
from ledger.orm.identity import KeptAnswerRow
from ledger.stored_responses import find_response, forget_answers, store_response, stored_bytes

DAY_US = 24 * 3_600_000_000
ONE = IdempotencyRecord("k1", "order-7", b"\1" * 32, "req_1")


def count(engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(KeptAnswerRow)).scalar_one()


def test_it_is_found_until_it_expires(engine):
    assert find_response(engine, ONE, now_us=0) is None
    store_response(engine, ONE, b"sealed", expires_us=DAY_US)
    assert find_response(engine, ONE, now_us=DAY_US - 1) == b"sealed"
    assert find_response(engine, ONE, now_us=DAY_US) is None


@pytest.mark.parametrize("change", [{"key_id": "k2"}, {"name": "order-8"}, {"request_id": "req_2"}])
def test_it_is_one_request_s(engine, change):
    store_response(engine, ONE, b"sealed", expires_us=DAY_US)
    assert find_response(engine, replace(ONE, **change), now_us=0) is None


def test_a_later_request_of_the_name_replaces_it(engine):
    store_response(engine, ONE, b"first", expires_us=DAY_US)
    second = replace(ONE, request_id="req_2")
    store_response(engine, second, b"second", expires_us=2 * DAY_US)
    assert find_response(engine, ONE, now_us=0) is None
    assert find_response(engine, second, now_us=DAY_US) == b"second"
    assert count(engine) == 1


def test_what_lies_there_is_summed(engine):
    assert stored_bytes(engine) == 0
    store_response(engine, ONE, b"x" * 100, expires_us=DAY_US)
    store_response(engine, replace(ONE, name="other"), b"x" * 3_000_000, expires_us=DAY_US)
    store_response(engine, ONE, b"x" * 10, expires_us=DAY_US)
    assert stored_bytes(engine) == 3_000_010


def test_what_expired_is_forgotten_some_at_a_time(engine, monkeypatch):
    monkeypatch.setattr(stored_responses, "FORGOTTEN_AT_ONCE", 2)
    for number in range(3):
        store_response(engine, replace(ONE, name=f"old-{number}"), b"x", expires_us=DAY_US)
    store_response(engine, ONE, b"new", expires_us=2 * DAY_US)
    assert not forget_answers(engine, DAY_US - 1)
    assert count(engine) == 4
    assert forget_answers(engine, DAY_US)
    assert not forget_answers(engine, DAY_US)
    assert count(engine) == 1
    assert find_response(engine, ONE, now_us=DAY_US) == b"new"


def test_what_is_kept_anew_while_it_is_forgotten_stays(engine):
    store_response(engine, ONE, b"old", expires_us=DAY_US)
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            connection.execute(update(KeptAnswerRow).values(sealed=b"new", expires_us=3 * DAY_US))
            forgetting = pool.submit(forget_answers, engine, 2 * DAY_US)
            with pytest.raises(TimeoutError):
                forgetting.result(0.3)  # it has found the row, and waits for it
        assert not forgetting.result(10)
    assert find_response(engine, ONE, now_us=2 * DAY_US) == b"new"
