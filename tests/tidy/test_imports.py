"""The direction of imports, by import-linter; each contract is seen to catch a planted arrow."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from walking import walk

PACKAGES = ("gateway", "backends", "router", "ledger", "dashboard")
LINTER = Path(sys.executable).parent / "lint-imports"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINTER, "--no-cache"], cwd=folder, check=False, capture_output=True, text=True
    )


def test_imports_point_the_right_way(root: Path) -> None:
    answer = lint(root)
    assert answer.returncode == 0, answer.stdout


PLANTED = [
    ("router", "import ledger", "router.planted -> ledger"),
    ("backends", "import router", "backends.planted -> router"),
    ("ledger", "import gateway", "ledger.planted -> gateway"),
    ("dashboard", "import router", "dashboard.planted -> router"),
    ("dashboard", "import gateway", "dashboard.planted -> gateway"),
    ("gateway", "import dashboard", "gateway.planted -> dashboard"),
    ("router", "import httpx", "router.planted -> httpx"),
    ("router", "import asyncio", "router.planted -> asyncio"),
    ("gateway", "import torch", "gateway.planted -> torch"),
    ("gateway/request", "import av", "gateway.request.planted -> av"),
    ("ledger/economics", "import sqlalchemy", "ledger.economics.planted -> sqlalchemy"),
    (
        "ledger/sums",
        "import ledger.queries.reads",
        "ledger.sums.planted -> ledger.queries.reads",
    ),
    (
        "gateway/request",
        "import gateway.worker.app",
        "gateway.request.planted -> gateway.worker.app",
    ),
    (
        "backends/engine",
        "import backends.metrics",
        "backends.engine.planted -> backends.metrics",
    ),
    (
        "gateway/kinds",
        "import gateway.request.plan",
        "gateway.kinds.planted -> gateway.request.plan",
    ),
]


@pytest.fixture(scope="module")
def told(root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of the packages as they are, with all arrows planted at once."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copy(root / "pyproject.toml", folder)
    for package in PACKAGES:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / package, folder / package, ignore=ignore)
    for place, (package, line, _) in enumerate(PLANTED):
        module = folder / package / f"planted{place}.py"
        module.write_text(f'"""Planted."""\n\n{line}\n', encoding="utf-8")
    answer = lint(folder)
    assert answer.returncode != 0
    return answer.stdout


@pytest.mark.parametrize(("place", "arrow"), [*enumerate(arrow for *_, arrow in PLANTED)])
def test_a_planted_arrow_is_found(told: str, place: int, arrow: str) -> None:
    """Each has a module of its own: no other arrow is told by this name."""
    assert arrow.replace("planted", f"planted{place}", 1) in told


def test_the_router_is_standard_library_only(product) -> None:
    own = {"router"}
    for each in product:
        if each.name.startswith("router/"):
            for node in walk(each.tree, ast.Import, ast.ImportFrom):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom):
                    names = [node.module or ""]
                for name in names:
                    top = name.split(".")[0]
                    assert top in sys.stdlib_module_names | own, f"{each.name}: {name}"
