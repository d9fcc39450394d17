"""Lock files: whole, hashed, without addresses, and in step with pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest

from deploy.lock import SETS, strip_addresses

ROOT = Path(__file__).resolve().parents[2]
LOCKS = [ROOT / each.path for each in SETS]
PINS = re.compile(r"^([a-z0-9][a-z0-9._-]*)(\[[a-z,]+\])?==(\S+)", re.MULTILINE)


def addresses(text: str) -> list[str]:
    return re.findall(r"https?://\S+", text)


def pins(path: Path) -> set[tuple[str, str]]:
    return {(name, version) for name, _, version in PINS.findall(path.read_text(encoding="utf-8"))}


def wanted(lines: list[str]) -> set[tuple[str, str]]:
    return {(name, version) for line in lines for name, _, version in PINS.findall(line)}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_package_has_one_version_and_hashes(path: Path) -> None:
    blocks = re.split(r"\n(?=[a-z0-9])", path.read_text(encoding="utf-8"))[1:]
    assert blocks
    for block in blocks:
        assert PINS.match(block), block.splitlines()[0]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]


def test_no_lock_names_an_index() -> None:
    for path in [*LOCKS, ROOT / "tests/sdk/node/package-lock.json"]:
        text = path.read_text(encoding="utf-8")
        assert addresses(text) == []
        assert '"resolved"' not in text


def test_an_address_would_be_found() -> None:
    assert addresses("--index-url https://index.example/simple\nuv==1") == [
        "https://index.example/simple"
    ]


def test_npm_records_lose_their_addresses_and_keep_their_hashes() -> None:
    record = {"packages": [{"resolved": "https://x", "integrity": "sha512-a", "funding": {}}]}
    assert strip_addresses(record) == {"packages": [{"integrity": "sha512-a"}]}


def test_pyproject_and_locks_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
    product = [*project["project"]["dependencies"], *extras["dashboard"]]
    assert len(wanted(product)) == len(product), "every direct dependency is pinned"
    assert wanted(product) <= pins(ROOT / "requirements.lock")
    assert wanted(groups["tools"]) <= pins(ROOT / "deploy/tools.lock")
    assert wanted(groups["test"]) <= pins(ROOT / "tests/requirements.lock")
    assert wanted(extras["prices"]) <= pins(ROOT / "deploy/prices/requirements.lock")
    assert wanted(extras["engine"]) <= pins(ROOT / "deploy/engine-cuda/requirements.lock")
    conflicts = project["tool"]["uv"]["conflicts"]
    assert [{"extra": "engine"}, {"extra": "engine-cpu"}] in conflicts


def test_sets_that_share_an_environment_agree() -> None:
    versions: dict[str, set[str]] = {}
    for name in ("deploy/tools.lock", "requirements.lock", "tests/requirements.lock"):
        for package, version in pins(ROOT / name):
            versions.setdefault(package, set()).add(version)
    split_by_python = {"numpy"}
    assert {
        name for name, each_version in versions.items() if len(each_version) > 1
    } <= split_by_python
