"""One case of a test also runs on PostgreSQL; the others do so in the long tier.

Cases of one test send a database the same statements with other values. That PostgreSQL understands
and answers them like SQLite is shown by the first; what the values lead to is shown by all of them
on SQLite, which takes a third of the time. Where each case has statements of its own, the test is
marked `each_database`.
"""

import pytest

SERVER = "postgres"
PARAMETERS = ("database_url", "random_ledger")  # fixtures, by the database that they are asked for


def is_on_server(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    given = {} if callspec is None else callspec.params
    return any(given.get(name) == SERVER for name in PARAMETERS)


class OneCase:
    """Keep the first collected case of each test, unless the command names a case."""

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
