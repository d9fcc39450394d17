"""Ledger that reading commands see before the first `serve` of a configuration.

Such a ledger lacks the prices, budgets and GPU contracts of the file. A copy gets them, as `serve`
would declare them. The ledger itself is unchanged, because a contract's bill begins when the
contract is declared.
"""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Engine

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.host.declared_books import declare_configuration
from ledger.database import make_engine, migrate, open_readonly, sqlite_url


@contextmanager
def declared_copy(settings: Settings, config: Path, ledger: Path | None) -> Iterator[Engine]:
    """Yield a read-only copy of a SQLite ledger with what the configuration declares.

    `ledger` is the file to copy; `None` starts with an empty ledger. The copy is deleted at the
    end. Raises `ConfigError` when a file of `prices` cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        if ledger is not None:
            with closing(sqlite3.connect(ledger)) as source, closing(sqlite3.connect(path)) as copy:
                source.backup(copy)
        url = sqlite_url(path)
        migrate(url)
        engine = make_engine(url)
        text = config.read_text(encoding="utf-8")
        declare_configuration(engine, settings, text, Clock().wall_us())
        engine.dispose()
        reader = open_readonly(url)
        try:
            yield reader
        finally:
            reader.dispose()
