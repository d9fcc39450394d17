"""Every source file has its test file at the mirrored place; tests import no tests."""

import ast
from pathlib import Path

from findings import assert_none
from walking import walk


def mirror(name: str) -> str:
    """gateway/x.py -> tests/gateway/test_x.py, sub-packages likewise."""
    path = Path(name)
    return (Path("tests") / path.parent / f"test_{path.name}").as_posix()


def test_every_source_file_has_its_test(product, everything) -> None:
    tests = {each.name for each in everything if each.name.startswith("tests/")}
    deploy = [each for each in everything if each.name.startswith("deploy/")]
    sources = [each.name for each in (*product, *deploy) if not each.name.endswith("__init__.py")]
    assert_none(f"{name}: write {mirror(name)}" for name in sources if mirror(name) not in tests)


def test_mirrored_names() -> None:
    assert mirror("gateway/worker/app.py") == "tests/gateway/worker/test_app.py"
    assert mirror("backends/engine/plan.py") == "tests/backends/engine/test_plan.py"


def test_tests_are_no_packages_and_import_no_tests(root: Path, everything) -> None:
    assert_none(list((root / "tests").rglob("__init__.py")))
    for each in everything:
        if each.name.startswith("tests/"):
            for node in walk(each.tree, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in {"tests", "conftest"}, each.name


def test_every_test_file_has_a_test(everything) -> None:
    for each in everything:
        if Path(each.name).name.startswith("test_"):
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            names = [node.name for node in walk(each.tree, *kinds)]
            assert any(name.startswith(("test_", "Test")) for name in names), each.name


def test_no_file_of_the_dashboard_hides_a_package(root: Path) -> None:
    """Streamlit puts the folder first on the path: dashboard/ledger.py would shadow `ledger`."""
    packages = {path.parent.name for path in root.glob("*/__init__.py")}
    assert packages
    assert {path.stem for path in (root / "dashboard").glob("*.py")} & packages == set()
