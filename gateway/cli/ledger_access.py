"""Ledger access for commands that also work before a host's first start."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, make_url

from gateway.cli.config import failing_plainly, ledger_engine, ledger_reader
from gateway.clock import Clock
from gateway.config.ledger_address import ledger_url
from gateway.config.settings import Settings
from gateway.control.pricing.configured import price_aliases, store_prices
from ledger.database import is_declared, make_engine, migrate
from ledger.prices.book import PriceBook
from ledger.prices.stored import load_price_book


@contextmanager
def ledger_if_any(settings: Settings, *, needed: bool = False) -> Iterator[Engine | None]:
    """Open the ledger for reading; `None` if there is none and it is not needed."""
    with failing_plainly(settings):
        place = make_url(ledger_url(settings, os.environ))
        missing = place.get_backend_name() == "sqlite" and not Path(place.database or "").exists()
        if missing and not needed:
            yield None
            return
    with ledger_reader(settings) as engine:
        yield engine


@contextmanager
def priced_ledger(settings: Settings) -> Iterator[Engine]:
    """Open the ledger for writing; before the first `serve`, with its initial prices."""
    with ledger_engine(settings) as engine:
        if not is_declared(engine):
            store_prices(settings, engine, Clock().wall_us())
        yield engine


def prices_of(settings: Settings, books: Engine | None) -> PriceBook:
    """Return the ledger's prices; before the first `serve`, its initial prices."""
    aliases = price_aliases(settings)
    if books is not None and is_declared(books):
        return load_price_book(books, aliases)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/prices.db"
        migrate(url)
        fresh = make_engine(url)
        try:
            store_prices(settings, fresh, Clock().wall_us())
            return load_price_book(fresh, aliases)
        finally:
            fresh.dispose()
