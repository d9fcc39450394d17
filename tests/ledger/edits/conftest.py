"""The modules `edit_*` beside this file are no tests: here the tests find them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from edit_books import fill


@pytest.fixture(scope="session")
def filled(make_random_ledger, opened, settled, refused):
    """Puts at least one row into every table of an engine's ledger, most of them by the product."""

    def into(engine):
        fill(engine, make_random_ledger, opened, settled, refused)

    return into
