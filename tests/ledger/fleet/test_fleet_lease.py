"""One holder at a time, and no write under a lease that is another's."""

import pytest

from ledger.fleet.fleet_lease import (
    FleetLeaseLost,
    check_lease,
    give_lease_back,
    lease_holder,
    take_lease,
)

S = 1_000_000


def take(engine, holder: str, now_s: int) -> int | None:
    return take_lease(engine, "p", holder, now_us=now_s * S, length_us=60 * S)


def check(engine, fence: int, now_s: int) -> None:
    with engine.begin() as connection:
        check_lease(connection, "p", fence, now_us=now_s * S)


def holder(engine, now_s: int) -> str | None:
    with engine.connect() as connection:
        return lease_holder(connection, "p", now_us=now_s * S)


def test_a_lease_is_one_holders_until_it_runs_out(engine):
    assert take(engine, "a", 0) == 1
    assert take(engine, "b", 59) is None
    assert take(engine, "a", 59) == 1  # renewed
    assert take(engine, "b", 100) is None
    assert holder(engine, 118) == "a"
    assert take(engine, "b", 119) == 2
    assert take(engine, "a", 120) is None


def test_who_was_overtaken_or_slept_cannot_write(engine):
    take(engine, "a", 0)
    check(engine, 1, 59)
    with pytest.raises(FleetLeaseLost, match="the lease of pool p is another's, or over"):
        check(engine, 1, 60)
    take(engine, "b", 61)
    with pytest.raises(FleetLeaseLost):
        check(engine, 1, 62)
    check(engine, 2, 62)


def test_what_is_given_back_is_taken_at_once(engine):
    take(engine, "a", 0)
    give_lease_back(engine, "p", "b")
    assert take(engine, "b", 1) is None
    give_lease_back(engine, "p", "a")
    assert holder(engine, 1) is None
    assert take(engine, "b", 1) == 2


def test_pools_have_leases_of_their_own(engine):
    take(engine, "a", 0)
    assert take_lease(engine, "q", "b", now_us=0, length_us=S) == 1
