"""A configuration declared twice is declared once, and its ledger is known to be declared to."""

from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from gateway.config.settings import parse
from gateway.host.declared_books import declare_configuration
from ledger.database import is_declared, make_engine, migrate, sqlite_url
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
