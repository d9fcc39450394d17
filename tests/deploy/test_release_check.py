"""A release names one version everywhere, and each of its steps is told with its result."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from deploy import release_check
from deploy.release_check import (
    STEPS,
    VERSIONS,
    ReleaseStep,
    StepResult,
    check_release,
    named_versions,
    run_step,
    version_faults,
)

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("pyproject.toml", "CHANGELOG.md", "README.md", "deploy/helm/breakeven/Chart.yaml", "docs")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files that name a version, copied."""
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_place_names_one_version() -> None:
    places = {place for place, _ in named_versions(ROOT)}
    assert version_faults(ROOT) == []
    assert {"README.md", "docs/tutorials/kubernetes.md", "docs/how-to/upgrade.md"} <= places


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("deploy/helm/breakeven/Chart.yaml", "appVersion: 0.1.0", "appVersion: 0.0.9"),
        ("deploy/helm/breakeven/Chart.yaml", "\nversion: 0.1.0", "\nversion: 0.0.9"),
        ("CHANGELOG.md", "## 0.1.0", "## 0.0.9"),
        ("README.md", "breakeven-0.1.0-py3", "breakeven-0.0.9-py3"),
        ("docs/tutorials/kubernetes.md", "/breakeven:0.1.0", "/breakeven:0.0.9"),
    ],
)
def test_another_version_is_found(tree: Path, name: str, before: str, after: str) -> None:
    path = tree / name
    assert before in path.read_text("utf-8")
    path.write_text(path.read_text("utf-8").replace(before, after), "utf-8")
    faults = version_faults(tree)
    assert faults
    assert all(fault.startswith(name) and "0.0.9, not 0.1.0" in fault for fault in faults)


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ({}, 0),
        ({"first-hour": StepResult.NOT_HERE}, 0),
        ({"dist": StepResult.FAILED, "first-hour": StepResult.NOT_HERE}, 1),
    ],
)
def test_all_steps_run_and_one_failure_fails(capsys, ends, status: int) -> None:
    seen = []

    def run(step: ReleaseStep) -> StepResult:
        seen.append(step.name)
        return ends.get(step.name, StepResult.PASSED)

    assert check_release([], run) == status
    assert seen == [step.name for step in STEPS], "those behind a failure, too"
    told = capsys.readouterr().out
    assert VERSIONS in told
    for name, result in ends.items():
        assert any(line.startswith(name) and line.endswith(result) for line in told.splitlines())
    assert check_release(["sbom"], run) == 0
    assert seen[-1] == "sbom"
    assert len(seen) == len(STEPS) + 1


def test_a_step_s_status_says_how_it_ended() -> None:
    for status, result in ((0, "PASSED"), (2, "NOT_HERE"), (3, "FAILED")):
        step = ReleaseStep("x", ("-c", f"raise SystemExit({status})"), tells_lack=True)
        assert run_step(step) is StepResult[result]


def test_a_status_of_2_is_a_failure_where_it_says_nothing_of_the_machine() -> None:
    """Tests that cannot be collected end so, and the release passed."""
    assert run_step(ReleaseStep("x", ("-c", "raise SystemExit(2)"))) is StepResult.FAILED
    assert [step.name for step in STEPS if step.tells_lack] == ["pythons", "first-hour"]


def test_each_step_is_a_module_and_make_has_the_verb() -> None:
    for step in STEPS:
        assert importlib.util.find_spec(step.words[1]) is not None, step.name
    makefile = (ROOT / "Makefile").read_text("utf-8")
    verb = makefile.partition("\nrelease-check:")[2].partition("\n\n")[0]
    assert f"-m {release_check.__name__}" in verb


def test_an_unknown_step_is_refused_with_the_names(capsys) -> None:
    """Red before: the usage line ended in a comma, and an empty list was a choice."""
    with pytest.raises(SystemExit):
        release_check.main(["imge"])
    said = capsys.readouterr().err
    assert "[STEP ...]" in said
    assert "no step is called imge: take versions, " in said
