"""Shares of closed hours add up to the bills in the postings, corrections included."""

from sqlalchemy import text

from ledger.database import snapshot
from ledger.fleet.hourshares import closed_until_us, hour_contracts, hour_shares
from ledger.spans import DAY_US, HOUR_US, Scope


def payable(connection, pool: str) -> int:
    query = text(
        "SELECT sum(amount_pusd) FROM postings"
        " WHERE account = :account AND entry_id NOT LIKE 'invoice:%'"
    )
    return -int(connection.execute(query, {"account": f"payable:gpu:{pool}"}).scalar_one())


def test_shares_are_the_bills_that_were_posted(random_ledger) -> None:
    scope = Scope(random_ledger.START_US, random_ledger.end_us)
    with snapshot(random_ledger.reader) as connection:
        for bucket_us in (HOUR_US, DAY_US):
            shares = list(hour_shares(connection, scope, bucket_us=bucket_us))
            for pool in random_ledger.pools:
                mine = [share for share in shares if share.pool == pool]
                assert sum(item.pusd for item in mine) == payable(connection, pool)
                assert {item.bearer for item in mine} == {"used", "idle", "unavailable"}
        rate, gpus = random_ledger.pools["reserved"], 6
        assert payable(connection, "reserved") == rate * gpus * 48


def test_a_team_has_what_it_used_and_nothing_of_the_rest(random_ledger) -> None:
    whole = Scope(random_ledger.START_US, random_ledger.end_us)
    with snapshot(random_ledger.reader) as connection:
        everything = list(hour_shares(connection, whole, bucket_us=DAY_US))
        used = 0
        for team in random_ledger.TEAMS:
            scope = Scope(whole.start_us, whole.end_us, team)
            mine = list(hour_shares(connection, scope, bucket_us=DAY_US))
            assert {item.team for item in mine} == {team}
            used += sum(item.pusd for item in mine)
    assert used == sum(source.pusd for source in everything if source.bearer == "used")


def test_contracts_and_where_closed_hours_end(random_ledger) -> None:
    with snapshot(random_ledger.reader) as connection:
        found = hour_contracts(connection)
        assert {
            finding.pool: finding.pusd_per_hour for finding in found.values()
        } == random_ledger.pools
        ends = closed_until_us(connection)
    assert set(ends) == set(random_ledger.pools)
    assert set(ends.values()) == {random_ledger.end_us}


def test_a_pool_without_closed_hours_is_named(engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO gpu_contracts (pool, gpu_type, gpus_per_replica, replicas, billing,"
                " ops_seconds_per_week, ops_pusd_per_hour, simulated, recorded_us, share_ppm)"
                " VALUES ('new', 'H200', 1, 1, 'reserved', 0, 0, false, 0, 1000000)"
            )
        )
    with engine.connect() as connection:
        assert closed_until_us(connection) == {"new": None}
        assert hour_contracts(connection) == {}
