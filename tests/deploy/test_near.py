"""Which tests belong to a file, and what a run of them says: a line for each failure."""

import subprocess
import sys
from pathlib import Path

import pytest

from deploy import near

FILES = {
    "router/filters.py": "import math\n",
    "router/decide.py": "from router import filters\n",
    "router/spoken.py": "# filters are spoken of\n",
    "ledger/sums.py": "import router.filters\n",
    "gateway/request/plan.py": "from router.filters import admit\n",
    "gateway/plan_late.py": "",
    "tests/router/test_filters.py": "",
    "tests/router/test_filters_of_kv.py": "",
    "tests/router/test_decide.py": "",
    "tests/router/test_spoken.py": "",
    "tests/gateway/request/test_plan.py": "",
    "tests/gateway/test_plan_late.py": "",
    "tests/gateway/books.py": "",
    "tests/gateway/test_reads.py": "from books import fill\n",
}
RUN = """
import sys
import pytest
from deploy.near import NearReport, QUIET
now = iter([0.0, *[1.0] * {before}, *[99.0] * 99])
report = NearReport(50.0, lambda: next(now), print)
status = pytest.main([*QUIET, sys.argv[1]], plugins=[report])
print(*report.summary(), sep="\\n")
sys.exit(status)
"""
TESTS = """
import pytest

def test_good(): pass

def test_bad(): assert 1 + 1 == 3, "a sum"

@pytest.fixture
def absent(): pytest.skip("install the part that nobody asked for")

def test_part(absent): pass
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_what_imports_a_file_is_found_in_every_spelling_and_its_own_package_is_first(tree: Path):
    found = near.importers(tree, "router/filters.py")
    assert found == ["router/decide.py", "gateway/request/plan.py", "ledger/sums.py"]


def test_a_files_tests_come_before_those_of_what_imports_it(tree: Path) -> None:
    assert near.tests_near(tree, "router/filters.py") == [
        "tests/router/test_filters.py", "tests/router/test_filters_of_kv.py",
        "tests/router/test_decide.py", "tests/gateway/request/test_plan.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        (
            "gateway/request/plan.py",
            ["tests/gateway/request/test_plan.py"],
        ),  # `plan_late` is another file's
        ("tests/router/test_decide.py", ["tests/router/test_decide.py"]),
        ("tests/gateway/books.py", ["tests/gateway/test_reads.py"]),
        ("ledger/sums.py", []),
    ],
)
def test_each_kind_of_file_has_its_own(tree: Path, name: str, tests: list[str]) -> None:
    assert near.tests_of(tree, name) == tests


def test_in_this_tree_a_filter_belongs_to_decide(pytestconfig: pytest.Config) -> None:
    found = near.tests_near(pytestconfig.rootpath, "router/filters.py")
    assert found[0] == "tests/router/test_filters.py"
    assert {"tests/router/test_decide.py", "tests/router/test_decide_properties.py"} <= {*found}
    assert not [name for name in found if name.startswith(("tests/real/", "tests/sdk/"))]


def said(folder: Path, tests: str, *, before: int = 99) -> tuple[int, list[str]]:
    (folder / "pytest.ini").touch()
    (folder / "test_a.py").write_text(tests, encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-c", RUN.format(before=before), "test_a.py"],
        cwd=folder, env={"PYTHONPATH": str(near.ROOT)}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    return answer.returncode, [line for line in answer.stdout.splitlines() if line.strip()]


def test_a_failure_is_one_line_and_a_missing_part_is_none(tmp_path: Path) -> None:
    code, lines = said(tmp_path, TESTS)
    assert code == 1
    assert lines[0] == "test_a.py::test_bad: AssertionError: a sum"
    assert lines[1].startswith("1 failed, 1 passed, 1 skipped in ")
    assert lines[2:] == ["whole: .venv/bin/python -m pytest 'test_a.py::test_bad'"]


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    code, lines = said(tmp_path, "import nothing_of_that_name\n")
    assert code != 0
    assert lines[0] == "test_a.py: ModuleNotFoundError: No module named 'nothing_of_that_name'"
    assert lines[1].startswith("1 failed in ")


def test_after_a_minute_no_test_begins_and_the_rest_is_counted(tmp_path: Path) -> None:
    code, lines = said(tmp_path, TESTS, before=1)
    assert code == 0
    assert lines == [
        "1 passed in 99 s",
        "NOT ALL: 2 more were left out after 50 s, so this is not a pass",
    ]


@pytest.mark.parametrize(
    ("words", "fault"),
    [([], "say which"), (["router/nothing.py"], "no such file"), (["LICENSE"], "no tests belong")],
)
def test_what_cannot_be_run_is_said(words: list[str], fault: str, capsys) -> None:
    assert near.main(words) == 2
    assert fault in capsys.readouterr().err
