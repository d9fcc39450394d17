"""Of a test's cases the first runs on PostgreSQL, and each where it is marked so."""

from types import SimpleNamespace

import pytest

from deploy.onecase import OneCase


class Case:
    """What the plugin uses of a collected test."""

    def __init__(self, nodeid: str, *marks: str, **params: object) -> None:
        self.nodeid, self.marks = nodeid, list(marks)
        self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name: str) -> bool:
        return name in self.marks

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


def names_of(cases: list[Case]) -> list[str]:
    OneCase().pytest_collection_modifyitems(cases)
    return [case.nodeid for case in cases if "long" not in case.marks]


@pytest.mark.parametrize("parameter", ["database_url", "random_ledger"])
def test_the_first_case_stays_and_all_of_the_file(parameter: str) -> None:
    def case(database: str, number: int) -> Case:
        return Case(f"a.py::test_x[{database}-{number}]", **{parameter: database, "n": number})

    cases = [case(database, n) for n in (1, 2) for database in ("sqlite", "postgres")]
    assert names_of(cases) == [
        "a.py::test_x[sqlite-1]", "a.py::test_x[postgres-1]", "a.py::test_x[sqlite-2]",
    ]  # fmt: skip


def test_who_is_marked_or_alone_or_elsewhere_stays() -> None:
    cases = [
        *(Case(f"a.py::test_x[{n}]", "each_database", database_url="postgres") for n in (1, 2)),
        Case("a.py::test_y[postgres]", database_url="postgres"),
        Case("b.py::test_y[postgres]", database_url="postgres"),
        *(Case(f"c.py::test_z[{n}]", zone="postgres") for n in (1, 2)),
    ]
    assert names_of(cases) == [case.nodeid for case in cases]


def test_it_is_in_use(pytestconfig: pytest.Config) -> None:
    plugins = pytestconfig.pluginmanager.get_plugins()
    assert any(isinstance(plugin, OneCase) for plugin in plugins)
