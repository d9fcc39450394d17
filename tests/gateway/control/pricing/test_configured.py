"""The price book as configured: files lie over the bundled map, in their order, with aliases."""

from pathlib import Path

import pytest

from gateway.config.settings import parse
from gateway.control.pricing.configured import price_aliases, store_prices
from gateway.errors import ConfigError
from ledger.database import make_engine, migrate
from ledger.prices.stored import load_price_book, stored_prices

NOW_US = 1_790_000_000_000_000
FILE = """
source: contract
source_date: 2026-11-01
aliases: {house-model: openai/gpt-4o-mini}
prices:
  openai/gpt-4o-mini: {usd_per_million: {input: INPUT, cached: 0.01, output: 2}}
"""


@pytest.fixture
def engine(sqlite_url: str):
    migrate(sqlite_url)
    engine = make_engine(sqlite_url)
    yield engine
    engine.dispose()


def settings_with(tmp_path: Path, *texts: str):
    names = []
    for number, text in enumerate(texts):
        path = tmp_path / f"prices-{number}.yaml"
        path.write_text(text)
        names.append(str(path))
    return parse(f"prices: {names}", name="t")


def test_without_files_the_bundled_map_is_stored_once(engine) -> None:
    plain = parse("", name="t")
    assert store_prices(plain, engine, NOW_US).stored > 3_000
    stored = stored_prices(engine)
    assert store_prices(plain, engine, NOW_US + 1) == (0, 0)
    assert stored_prices(engine) == stored
    assert load_price_book(engine).find("openai/gpt-4o-mini", NOW_US) is not None
    assert price_aliases(plain) == {}


def test_a_later_file_wins_and_a_file_that_is_dropped_is_withdrawn(engine, tmp_path: Path) -> None:
    both = settings_with(tmp_path, FILE.replace("INPUT", "3"), FILE.replace("INPUT", "5"))
    store_prices(both, engine, NOW_US)
    book = load_price_book(engine, price_aliases(both))
    for name in ("openai/gpt-4o-mini", "house-model"):
        assert book.find(name, NOW_US + 1).terms.rates.input == 5_000_000
    store_prices(parse("", name="t"), engine, NOW_US + 10)
    book = load_price_book(engine)
    assert book.find("openai/gpt-4o-mini", NOW_US + 1).terms.rates.input == 5_000_000  # it was so
    assert book.find("openai/gpt-4o-mini", NOW_US + 20).terms.rates.input == 150_000
    assert book.find("house-model", NOW_US + 20) is None


def test_a_broken_file_is_one_fault_with_its_place(engine, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="prices: "):
        store_prices(settings_with(tmp_path, "prices: 3"), engine, NOW_US)
    missing = parse(f"prices: ['{tmp_path}/none.yaml']", name="t")
    with pytest.raises(ConfigError, match="prices: "):
        price_aliases(missing)
