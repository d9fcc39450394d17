"""Tests in lanes: side by side, but one that wants the machine alone has it alone."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import lanes, parts

TESTS = """
import json, pathlib, time
import pytest

@pytest.mark.parametrize("number", range(8))
{mark}
def test_it(number):
    begun = time.monotonic()
    time.sleep(0.1)
    path = pathlib.Path(__file__).with_suffix(f".{{number}}.json")
    path.write_text(json.dumps([begun, time.monotonic()]))
"""


def spans(folder: Path, name: str) -> list[tuple[float, float]]:
    return sorted(tuple(json.loads(path.read_text())) for path in folder.glob(f"{name}.*.json"))


def overlaps(folder: Path) -> int:
    """How many tests of the one file ran while one of the other did."""
    others = spans(folder, "test_b")
    ours = spans(folder, "test_a")
    assert (len(ours), len(others)) == (8, 8)
    return sum(any(low < end and begun < high for low, high in others) for begun, end in ours)


NEEDS_ENGINE = "def test_it(engine_python): assert engine_python\n"


def run_lanes(root: Path, folder: Path, mark: str) -> str:
    """Run two lanes of this suite: tests that tell their times, and one that lacks a part."""
    (folder / "test_a.py").write_text(TESTS.format(mark=mark))
    (folder / "test_b.py").write_text(TESTS.format(mark=""))
    (folder / "test_needs_engine.py").write_text(NEEDS_ENGINE)
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "xdist", "-p", "tests.conftest",
         "-p", "no:cacheprovider", folder],
        cwd=root, check=False, capture_output=True, text=True,
        env={**os.environ, "BREAKEVEN_ENGINE": str(folder / "nowhere"), "CI": "",
             "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout
    return answer.stdout


def test_a_quiet_test_runs_beside_no_other_and_what_lanes_count_is_told(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    said = run_lanes(pytestconfig.rootpath, tmp_path, "@pytest.mark.quiet")
    assert overlaps(tmp_path) == 0
    assert "vllm         SKIPPED: vLLM in its own environment is missing: " in said


@pytest.mark.long
def test_control_the_same_tests_do_run_side_by_side(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    run_lanes(pytestconfig.rootpath, tmp_path, "")
    assert overlaps(tmp_path) > 0


CRASH = "import os, signal\ndef test_crash(): os.kill(os.getpid(), signal.SIGSEGV)\n"
PASS = "def test_{name}(): pass\n"


@pytest.mark.parametrize(
    "sources",
    [
        [
            PASS.format(name="before") + CRASH + PASS.format(name="after"),
            CRASH + "".join(PASS.format(name=f"after_{number}") for number in range(4)),
            PASS.format(name="it"),
        ],
        [PASS.format(name="it"), PASS.format(name="it"), CRASH],
    ],
    ids=["amid the files of both lanes", "last of all"],
)
def test_a_crash_fails_one_test_and_the_others_run(
    pytestconfig: pytest.Config, tmp_path: Path, sources: list[str]
) -> None:
    for number, source in enumerate(sources):
        (tmp_path / f"test_{number}.py").write_text(source)
    (tmp_path / "conftest.py").write_text("from deploy.lanes import register as pytest_configure\n")
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "xdist", "-p", "no:faulthandler"],
        cwd=tmp_path, check=False, capture_output=True, text=True, timeout=150,
        env={**os.environ, "PYTHONPATH": str(pytestconfig.rootpath),
             "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    crashing = [number for number, source in enumerate(sources) if CRASH in source]
    passes = sum(source.count("pass") for source in sources)
    assert f"{len(crashing)} failed, {passes} passed" in answer.stdout, answer.stdout
    failed = re.findall(r"FAILED test_(\d).py::test_crash", answer.stdout)
    assert sorted(map(int, failed)) == crashing


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/real/test_engine.py::test_it", "engines"),
        ("tests/tidy/test_sizes.py::test_it[a]", "tree"),
        ("tests/sdk/test_openapi.py::test_it", "clients"),
        ("tests/dashboard/page/test_budgets.py::test_it", "dashboard"),
        ("tests/backends/test_litellm_sent.py::test_it", "LiteLLM"),
        ("tests/gateway/field/test_money.py::test_it[a]", "LiteLLM"),
        ("tests/router/test_real.py::test_it", None),
    ],
)
def test_what_shares_engines_or_the_tree_stays_together(nodeid: str, group: str | None) -> None:
    assert lanes.group_of(nodeid) == group


def test_what_lacks_a_part_begins_when_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes.coming_parts, "is_coming", lambda name: name in {"axe", "vllm"})
    scopes = ("engines", "tree", "dashboard", "clients", "tests/router/test_filters.py")
    assert [scope for scope in scopes if lanes.lacks_parts(scope)] == ["engines", "dashboard"]
    assert set(lanes.NEEDED) <= set(lanes.TOGETHER)
    assert {name for names in lanes.NEEDED.values() for name in names} <= {
        part.name for part in parts.PARTS
    }


def test_long_files_come_first_and_are_there(pytestconfig: pytest.Config) -> None:
    names = ["tests/router/test_a.py", "tests/adversary/test_a.py", "tests/tidy/test_b.py"]
    assert sorted(names, key=lanes.rank) == names[::-1]
    assert all((pytestconfig.rootpath / name).exists() for name in lanes.LONGEST)
