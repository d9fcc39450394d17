"""One running host for all of these files; each names its keys by itself."""

import pytest

BUDGETS = [
    {"scope": "team:search", "usd": 50, "period": "month", "hard": True},
    {"scope": "team:ads", "usd": "0.5", "period": "day", "hard": False},
]


@pytest.fixture(scope="package")
def stack(running, tmp_path_factory):
    with running(tmp_path_factory.mktemp("administered"), budgets=BUDGETS) as found:
        yield found
