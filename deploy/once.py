"""What a process of the tests makes once, because it comes out the same each time.

Two thirds of the work of a gateway's start are an empty ledger, migrated through every revision,
and the bundled prices, read from three thousand rows of JSON.
"""

import functools
import importlib
import shutil
import tempfile
from pathlib import Path

from sqlalchemy.engine import make_url

from ledger.database import migrate, sqlite_url


def put_ledger(place: str | Path) -> str:
    """An empty, migrated ledger, where SQLite has none yet; a server's is left as it is.

    Returns its address.
    """
    url = place if isinstance(place, str) else sqlite_url(place)
    target = make_url(url)
    path = Path(target.database or "")
    if target.get_backend_name() == "sqlite" and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(_folder().name) / "ledger.db", path)
    return url


def remember(module: str, name: str) -> None:
    """From here on the function answers once for each of its arguments."""
    holder = importlib.import_module(module)
    vars(holder)[name] = functools.cache(getattr(holder, name))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """It goes with the process."""
    made = tempfile.TemporaryDirectory(prefix="breakeven-migrated-")
    migrate(sqlite_url(Path(made.name) / "ledger.db"))
    return made


def register() -> None:
    """A seed is a value: who asks for that of the same text is given the same."""
    remember("ledger.prices.bundled", "seed_from_map")
