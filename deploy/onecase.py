"""PostgreSQL runs of only the first case of each test; the long tier runs the others.

The cases of one test send the same statements with other values. The first case shows that
PostgreSQL accepts and answers the statements like SQLite. All cases show the effect of the values
on SQLite, which takes a third of the time. A test whose cases have different statements is marked
`each_database`.
"""

import pytest

SERVER = "postgres"
PARAMETERS = ("database_url", "random_ledger")  # fixtures with the database as their parameter


def is_on_server(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    given = {} if callspec is None else callspec.params
    return any(given.get(name) == SERVER for name in PARAMETERS)


class OneCase:
    """A pytest plugin that marks every PostgreSQL case of a test but the first as `long`."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        seen = set[str]()
        for item in items:
            if not is_on_server(item) or item.get_closest_marker("each_database"):
                continue
            test = item.nodeid.partition("[")[0]
            if test in seen:
                item.add_marker(pytest.mark.long)
            seen.add(test)


def register(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "each_database: every case runs on every database")
    config.pluginmanager.register(OneCase())
