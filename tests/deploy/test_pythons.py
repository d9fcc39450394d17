"""The run over a machine's Pythons: which are tried, what is counted, and one list of them."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from backends.engine.packing import pack
from deploy import pythons
from deploy.installer import BootstrapError
from deploy.pythons import SUPPORTED, Interpreter, PythonResult, TierCounts, UnsuitableError
from gateway.diagnosis import machine

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "docs/index.md", "docs/tutorials/first-request.md")
REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="good"/>
<testcase classname="tests.a" name="out"><skipped/></testcase>
<testcase classname="tests.b" name="bad"><failure/></testcase>
<testcase classname="tests.b" name="worse"><failure/><error/></testcase>
</testsuite></testsuites>"""


def test_all_who_name_the_supported_pythons_agree() -> None:
    least, newest = (
        tuple(map(int, version.split("."))) for version in (SUPPORTED[0], SUPPORTED[-1])
    )
    assert (least, newest) == machine.PYTHONS
    assert pack.PYTHONS == SUPPORTED
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={SUPPORTED[0]},<3.{newest[1] + 1}"
    told = [line.split(" :: ")[-1] for line in project["classifiers"] if ":: 3." in line]
    assert tuple(told) == SUPPORTED
    launcher = (ROOT / "deploy" / "python").read_text(encoding="utf-8")
    assert f"{least} <= sys.version_info[:2] <= {newest}" in launcher
    tried = re.findall(r"python(3\.\d+)", launcher)
    assert tuple(reversed(tried)) == SUPPORTED, "the newest first"


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_the_first_and_the_last(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.findall(r"Python (3\.\d+) to (3\.\d+)", text) == [(SUPPORTED[0], SUPPORTED[-1])]


def test_the_tier_is_there() -> None:
    assert [name for name in pythons.TIER if not (ROOT / name).exists()] == []


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put programs on an otherwise empty PATH that say a version, or fail where it is empty."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(**programs: str) -> None:
        for name, version in programs.items():
            path = tmp_path / name.replace("_", ".")
            path.write_text(f"#!/bin/sh\n[ -n '{version}' ] && echo '{version}'\n")
            path.chmod(0o755)

    return put


def test_supported_pythons_on_path_are_tried_and_what_does_not_run_is_none(on_path) -> None:
    assert pythons.find_interpreters([]) == []
    on_path(python3_14="3.14.10", python3_11="3.11.2", python3_12="", python3_15="3.15.0")
    found = pythons.find_interpreters([])
    assert [each.version for each in found] == ["3.11.2", "3.14.10"]
    assert [each.path.name for each in found] == ["python3.11", "python3.14"]


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (["nothing"], "nothing does not run"),
        (["broken"], "broken does not run"),
        (["old"], "old is Python 3.9.1: supported are 3.11"),
        (["mine", "python3.14"], "python3.14 is a second Python 3.14: name one of each"),
    ],
)
def test_a_named_python_that_cannot_be_tried_is_said(on_path, capsys, named, words) -> None:
    on_path(broken="", old="3.9.1", mine="3.14.1", python3_14="3.14.10")
    with pytest.raises(UnsuitableError, match=re.escape(words)):
        pythons.find_interpreters(named)
    assert pythons.main(named) == 2
    assert words in capsys.readouterr().err
    assert [each.version for each in pythons.find_interpreters(["mine"])] == ["3.14.1"]


def test_tests_are_counted_once_each(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(REPORT)
    counts = pythons.read_counts(tmp_path / "report")
    assert counts == TierCounts(1, ("tests.b::bad", "tests.b::worse"), 1)


def test_the_environment_asks_for_no_real_parts_and_brings_no_paths() -> None:
    given = {"CI": "true", "PYTHONPATH": "/x", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/h"}
    assert pythons.plain_environ(given) == {"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/h"}


class NoInstaller:
    """Installs nothing, or fails with a word."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure

    def install(self, *_: object) -> None:
        if self.failure:
            raise BootstrapError(self.failure)

    def install_project(self, *_: object) -> None:
        pass


@pytest.fixture
def trying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Try a Python whose pytest leaves this report, if any, and ends with this status."""
    monkeypatch.setattr(pythons, "ROOT", tmp_path)
    monkeypatch.setattr(pythons, "PLACE", tmp_path / "build")

    def make(python: Path, _base: Path) -> None:
        python.parent.mkdir(parents=True, exist_ok=True)

    def run(command, **_: object):
        report = Path(command[command.index("--junitxml") + 1])
        if asked["report"]:
            report.write_text(asked["report"])
        return subprocess.CompletedProcess(command, asked["status"])

    asked: dict = {}
    monkeypatch.setattr(pythons, "make_environment", make)
    monkeypatch.setattr(pythons.subprocess, "run", run)

    def attempt(report: str = "", status: int = 0, failure: str = "") -> PythonResult:
        asked.update(report=report, status=status)
        monkeypatch.setattr(pythons, "find_installer", lambda _: NoInstaller(failure))
        return pythons.try_python(Interpreter(Path("/p/python3.14"), "3.14.10"))

    return attempt


def test_what_went_well_has_no_problem_and_all_else_has(trying) -> None:
    assert trying("<testsuite><testcase/></testsuite>").problem == ""
    assert trying(REPORT, 1).problem == "see build/3.14/tests.log"
    assert trying("", 4).problem == "pytest ended with 4: build/3.14/tests.log", (
        "not the old report"
    )
    missing = trying(failure="no wheel for this")
    assert (missing.problem, missing.counts) == ("no wheel for this", None)


def test_the_table_has_a_row_for_each_supported_python() -> None:
    rows = [
        PythonResult("3.11.2", "/p/python3.11", 12.4, 60.0, TierCounts(90, (), 2)),
        PythonResult("3.13.5", "/p/python3.13", 3.0, None, None, "no wheel\nmore"),
        PythonResult(
            "3.14.10", "/p/python3.14", 9.0, 61.0, TierCounts(89, ("a::b",), 2), "see log"
        ),
    ]
    assert [" ".join(line.split()) for line in pythons.format_table(rows)] == [
        "Python install tests passed failed skipped result",
        "3.11.2 12 s 60 s 90 0 2 ok, /p/python3.11",
        "3.12 - - - - - not tried",
        "3.13.5 3 s - - - - failed: no wheel",
        "3.14.10 9 s 61 s 89 1 2 failed: see log",
    ]


@pytest.mark.parametrize(("problems", "status"), [([], 1), ([""], 0), (["", "see log"], 1)])
def test_the_status_is_bad_where_something_failed_or_nothing_ran(
    monkeypatch, problems: list[str], status: int
) -> None:
    monkeypatch.setattr(pythons, "find_interpreters", lambda _: [])
    results = [PythonResult("3.11.2", problem=words) for words in problems]
    monkeypatch.setattr(pythons, "run_all", lambda _: iter(results))
    assert pythons.main([]) == status
