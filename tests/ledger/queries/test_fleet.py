"""Contracts in force, closed hours by bucket, capacity, samples thinned to a chart."""

import pytest
from sqlalchemy import insert

from ledger.fleet.capacity import EngineLimits
from ledger.orm import tables as orm
from ledger.queries import reads as queries
from ledger.queries.reads import DAY_US, HOUR_US, Scope

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
BIG = 8 * 10**18  # two hours of it do not fit 64 bits


def contract(**changes: object) -> dict:
    return {
        "pool": "llama", "gpu_type": "H200", "gpus_per_replica": 2, "replicas": 3,
        "billing": "reserved", "pusd_per_hour": 5, "source": "c-1", "since": None, "until": None,
        "ops_seconds_per_week": 0, "ops_pusd_per_hour": 0, "simulated": False, "recorded_us": 1,
    } | changes  # fmt: skip


def sample(engine: str, second: int, **changes: object) -> dict:
    return {
        "at_us": START_US + second * 10**6, "pool": "llama", "engine": engine,
        "health": "healthy", "running": second, "waiting": 0, "kv_usage_ppm": 5, "simulated": False,
    } | changes  # fmt: skip


@pytest.fixture
def connection(engine):
    with engine.begin() as writing:
        writing.execute(
            insert(orm.GpuContractRow), [contract(), contract(pusd_per_hour=None, recorded_us=2)]
        )
        writing.execute(insert(orm.GpuContractRow), contract(pool="small", replicas=1))
        hours = [
            {
                "pool": "llama", "hour_us": START_US + n * HOUR_US, "contract_id": 1, "replicas": 3,
                "bill_pusd": BIG, "used_pusd": BIG - 3, "idle_pusd": 2, "unavailable_pusd": 1,
                "busy_us": 10, "unavailable_us": 4, "closed_us": 0,
            }
            for n in range(30)
        ]  # fmt: skip
        writing.execute(insert(orm.GpuHourRow), hours)
        shares = [
            {
                "pool": "llama", "hour_us": START_US + n * HOUR_US, "team_id": team,
                "used_pusd": n, "provisional_pusd": n, "engine_us": 0,
            }
            for n in range(30)
            for team in ("search", "support")
        ]  # fmt: skip
        writing.execute(insert(orm.GpuHourTeamRow), shares)
        writing.execute(
            insert(orm.EngineSampleRow),
            [
                sample(name, 10 * n, kv_usage_ppm=900 if (name, n) == ("llama/1", 8) else 5)
                for n in range(12)
                for name in ("llama/0", "llama/1")
            ],
        )
        rows = [
            {
                "at_us": at, "pool": "llama", "engine": name, "kv_capacity_tokens": at,
                "slo_tpot_ms": 50.0, "step_a_s": 0.01, "step_b_s": 0.001, "step_c_s": 1e-6,
                "step_d_s": 1e-4, "step_t0_s": None if at == 3 else 0.02, "source": "measured",
            }
            for name, at in (("llama/0", 1), ("llama/0", 2), ("llama/1", 3))
        ]  # fmt: skip
        writing.execute(insert(orm.EngineCapacityRow), rows)
        started = [
            {
                "at_us": at, "pool": "llama", "engine": "llama/0", "kind": "vllm", "model": "m",
                "max_num_seqs": 64 * at, "simulated": False,
            }
            for at in (1, 2)
        ]  # fmt: skip
        writing.execute(insert(orm.CatalogEntryRow), started)
    with engine.connect() as connection:
        yield connection


def test_the_latest_contract_is_in_force_and_an_unknown_rate_stays_unknown(connection) -> None:
    llama, small = queries.contracts(connection)
    assert (llama.pool, llama.gpus, llama.pusd_per_hour, llama.recorded_us) == ("llama", 6, None, 2)
    assert (small.pool, small.gpus, small.pusd_per_hour) == ("small", 2, 5)


def test_hours_add_up_by_bucket_beyond_64_bits(connection) -> None:
    scope = Scope(START_US, START_US + 2 * DAY_US)
    first, second = queries.hours(connection, scope, bucket_us=DAY_US)
    assert (first.hours, second.hours) == (24, 6)
    assert first.bill_pusd == 24 * BIG
    assert first.bill_pusd == first.used_pusd + first.idle_pusd + first.unavailable_pusd
    assert (first.busy_us, first.unavailable_us) == (240, 96)
    assert first.replica_us == 24 * 3 * HOUR_US
    assert second.last_hour_us == START_US + 29 * HOUR_US
    minutes = queries.hours(connection, scope, bucket_us=60 * 10**6)
    assert len(minutes) == 30, "a closed hour is never cut finer than an hour"


def test_team_shares(connection) -> None:
    scope = Scope(START_US, START_US + 3 * HOUR_US)
    everyone = queries.hours_by_team(connection, scope, bucket_us=DAY_US)
    assert [(cell.team, cell.used_pusd) for cell in everyone] == [("search", 3), ("support", 3)]
    hours_by_team = queries.hours_by_team(
        connection, Scope(scope.start_us, scope.end_us, "search"), bucket_us=DAY_US
    )
    assert [cell.team for cell in hours_by_team] == ["search"]


def test_capacity_is_the_latest_of_each_engine_with_its_batch_limit(connection) -> None:
    first, second = queries.capacities(connection)
    assert (first.engine, first.at_us, first.kv_capacity_tokens) == ("llama/0", 2, 2)
    assert first.measured == EngineLimits(0.01, 0.001, 1e-6, 1e-4, 0.02, 0.05, 2, 128)
    assert (second.engine, second.max_num_seqs) == ("llama/1", None)
    assert second.measured is None, "a step-time model that is not whole says nothing"


def test_samples_are_thinned_to_the_last_of_each_bucket(connection) -> None:
    scope = Scope(START_US, START_US + HOUR_US)
    found = queries.engine_samples(connection, scope, bucket_us=60 * 10**6)
    assert [(row.engine, row.running) for row in found] == [
        ("llama/0", 50), ("llama/1", 50), ("llama/0", 110), ("llama/1", 110),
    ]  # fmt: skip
    assert [row.kv_usage_ppm for row in found] == [5, 5, 5, 900], "a peak between is not lost"
    assert queries.first_sample_us(connection, scope) == START_US
    assert queries.first_sample_us(connection, Scope(0, 1)) is None


def test_engines_now(connection) -> None:
    now = queries.engines_now(connection)
    assert [(row.engine, row.running, row.health) for row in now] == [
        ("llama/0", 110, "healthy"), ("llama/1", 110, "healthy"),
    ]  # fmt: skip


def test_a_chart_of_more_than_an_hour_a_point_has_whole_hours() -> None:
    """So that packed hours serve: the samples of a month are millions."""
    minute, day = 60_000_000, 24 * HOUR_US
    assert queries.samples_bucket_us(60 * minute) == 10_000_000
    assert queries.samples_bucket_us(7 * day) == 28 * minute
    assert queries.samples_bucket_us(15 * day) == HOUR_US
    assert queries.samples_bucket_us(15 * day + 1) == 2 * HOUR_US
    assert queries.samples_bucket_us(30 * day + HOUR_US // 2) == 3 * HOUR_US
