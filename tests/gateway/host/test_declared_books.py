"""A configuration declared twice is declared once, and its ledger is known to be declared to."""

from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from gateway.config.settings import parse
from gateway.errors import ConfigError
from gateway.host.declared_books import declare_configuration
from ledger.database import is_declared, make_engine, migrate, sqlite_url
from ledger.manual_entries import BUDGET, ManualEntry, enter
from ledger.orm import tables as orm

CONFIG = """
models: {chat: {targets: ["pool:a", openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}}
pools: {a: {engine: {kind: simulated, model: x, replicas: 1}, gpu: {type: H200, usd_per_hour: 3}}}
providers: {openai: {api_key_env: OPENAI_API_KEY}}
budgets: [{scope: global, usd: 5}]
"""
TABLES = (orm.GpuContractRow, orm.BudgetRow, orm.ConfigVersionRow, orm.PriceVersionRow)


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "ledger.db")
    engine = make_engine(url)
    with pytest.raises(DBAPIError, match="config_versions"):
        is_declared(engine)  # a file without tables is none of a gateway's
    migrate(url)
    assert not is_declared(engine)
    counts = []
    for at_us in (1_790_000_000_000_000, 1_790_000_001_000_000):
        declare_configuration(engine, parse(CONFIG, name="x"), CONFIG, at_us)
        with engine.connect() as connection:
            counts.append(
                [connection.scalar(select(func.count()).select_from(table)) for table in TABLES]
            )
    engine.dispose()
    assert counts[0] == counts[1]
    assert counts[0][:3] == [1, 1, 1]
    assert counts[0][3] > 0
    again = make_engine(url)
    assert is_declared(again)
    again.dispose()


def test_an_entered_budget_that_would_count_nothing_ends_the_start(tmp_path: Path) -> None:
    """A tier's hard budget was passed without a word once another provider was billed for it."""
    url, at_us = sqlite_url(tmp_path / "ledger.db"), 1_790_000_000_000_000
    migrate(url)
    engine = make_engine(url)
    provider = "openai: {api_key_env: OPENAI_API_KEY}"
    apart = CONFIG.replace(provider, provider + ", flex: {litellm_prefix: openai, api_key_env: F}")
    billed = apart.replace("api_key_env: F", "api_key_env: F, billed_with: openai")
    subject = BUDGET + "provider:flex@day"
    limit = ManualEntry(0, subject, {"usd": "0.01"}, at_us, at_us, "ann")
    with engine.begin() as connection:
        enter(connection, limit)
    declare_configuration(engine, parse(apart, name="x"), apart, at_us)
    with pytest.raises(ConfigError, match="budgets end provider:flex --period day"):
        declare_configuration(engine, parse(billed, name="x"), billed, at_us)
    with engine.begin() as connection:
        enter(connection, ManualEntry(0, subject, {"usd": None}, at_us + 1, at_us + 1, "ann"))
    declare_configuration(engine, parse(billed, name="x"), billed, at_us + 2)
    engine.dispose()
