"""Telemetry's rows: samples as they come, capacity and catalog only when they changed."""

from dataclasses import asdict, replace

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from ledger.fleet.samples import FleetSample, add_capacity, add_catalog, add_samples
from ledger.orm.fleet import CatalogEntryRow, EngineCapacityRow, EngineSampleRow

FULL = FleetSample(
    at_us=1_780_000_000_000_000,
    pool="llama",
    engine="pool:llama/0",
    health="ready",
    running=3,
    waiting=1,
    kv_usage_ppm=250_000,
    kv_promised_ppm=300_000,
    prompt_tokens_total=10**12,
    output_tokens_total=10**11,
    preemptions_total=2,
    prefix_hit_ppm=500_000,
    busy_us=9_000_000,
    step_feedback_ppm=1_050_000,
    load_ppm=800_000,
    bid_price_pusd_per_s=12_345,
    age_us=400_000,
    simulated=True,
)
CAPACITY = {
    "at_us": 1, "pool": "llama", "engine": "pool:llama/0", "kv_capacity_tokens": 500_000,
    "slo_tpot_ms": 60.0, "step_b_s": 0.001, "step_a_s": 0.01, "source": "fitted",
}  # fmt: skip
CATALOG = {
    "at_us": 1, "pool": "llama", "engine": "pool:llama/0", "kind": "vllm", "version": "0.32.0",
    "model": "llama", "flags": ["--max-model-len", "4096"], "context_tokens": 4096,
    "simulated": False,
}  # fmt: skip
KINDS = pytest.mark.parametrize(
    ("add", "table", "row", "change"),
    [
        (add_capacity, EngineCapacityRow, CAPACITY, {"step_b_s": 0.002}),
        (add_catalog, CatalogEntryRow, CATALOG, {"flags": ["--max-model-len", "8192"]}),
    ],
    ids=["capacity", "catalog"],
)


def count(engine, table):
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def test_samples_come_back_as_they_went_in(engine):
    bare = FleetSample(at_us=FULL.at_us, pool="llama", engine="pool:llama/1", health="unknown")
    add_samples(engine, [FULL, bare])
    columns = [EngineSampleRow.__table__.c[name] for name in asdict(FULL)]
    with engine.connect() as connection:
        query = select(*columns).order_by(EngineSampleRow.seq)
        found = [FleetSample(**row) for row in connection.execute(query).mappings()]
    assert found == [FULL, bare]


def test_samples_of_one_transaction_stand_or_fall_together(engine):
    add_samples(engine, [FULL])
    later = replace(FULL, at_us=FULL.at_us + 10_000_000)
    with pytest.raises(IntegrityError):
        add_samples(engine, [later, FULL])
    assert count(engine, EngineSampleRow) == 1


def test_no_samples_are_no_transaction(engine):
    add_samples(engine, [])
    assert count(engine, EngineSampleRow) == 0


@KINDS
def test_the_same_again_is_no_version(engine, add, table, row, change):
    assert add(engine, row) is True
    assert add(engine, {**row, "at_us": 2}) is False
    assert count(engine, table) == 1


@KINDS
def test_a_change_and_the_way_back_are_versions(engine, add, table, row, change):
    versions = [row, {**row, **change, "at_us": 2}, {**row, "at_us": 3}]
    assert [add(engine, version) for version in versions] == [True, True, True]
    (name,) = change
    with engine.connect() as connection:
        query = select(table.__table__.c[name]).order_by(table.at_us)
        assert list(connection.execute(query).scalars()) == [version[name] for version in versions]


@KINDS
def test_engines_are_told_apart(engine, add, table, row, change):
    add(engine, row)
    assert add(engine, {**row, "engine": "pool:llama/1"}) is True
    assert add(engine, {**row, "at_us": 2}) is False
    assert count(engine, table) == 2
