"""Installing parts: only what is missing, and a part that cannot be had is told, not raised."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from deploy import parts, partsinstall
from deploy.indexes import Places
from deploy.installer import BootstrapError, Installer
from gateway.host.stages import StartStages

INSTALLER = Installer(None, None, Places())


@pytest.fixture
def stages() -> StartStages:
    return StartStages(clock=lambda: 0.0, say=lambda _: None)


def part(name: str, *, there: bool, apt: tuple[str, ...] = ()) -> parts.Part:
    path = Path("/there") if there else None
    return parts.Part(name, f"the {name}", lambda: path, "install it", parts.is_always, apt)


def test_what_is_there_is_left_alone(stages: StartStages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PARTS", (part("vllm", there=True),))
    partsinstall.install_parts([], Path("python"), stages, INSTALLER)
    assert stages.done == []


def test_only_what_is_named_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    stages = StartStages(clock=lambda: 0.0, say=told.append)
    monkeypatch.setattr(parts, "PARTS", (part("one", there=False), part("two", there=False)))
    partsinstall.install_parts(["two"], Path("python"), stages, INSTALLER)
    assert [title for title, _ in stages.done] == ["1 parts"]
    assert told == ["-> 1 parts ...", "-> the two ...", "   the two: 0.0 s", "   1 parts: 0.0 s"]


def test_an_unknown_name_is_refused(stages: StartStages) -> None:
    with pytest.raises(BootstrapError, match="no part named nonsense: agents, anthropic"):
        partsinstall.install_parts(["nonsense"], Path("python"), stages, INSTALLER)


def test_a_part_of_the_long_tier_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    late = replace(part("chromium", there=False), late=True)
    monkeypatch.setattr(parts, "PARTS", (late, part("axe", there=True)))
    assert partsinstall.missing_parts([], late=False) == []
    assert partsinstall.missing_parts([]) == [late]


def test_each_part_is_told_when_it_is_through(
    stages: StartStages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that has come meanwhile, for which somebody may wait."""
    told: dict[str, bool] = {}

    def tell(name: str, *, is_to_be_had: bool) -> None:
        told[name] = is_to_be_had

    def install(part: parts.Part, *_: object) -> str:
        if part.name == "vllm":
            raise partsinstall.Unavailable("nowhere")
        return ""

    there, missing = part("axe", there=True), [part(name, there=False) for name in ("vllm", "docs")]
    monkeypatch.setattr(parts, "PARTS", (there, *missing))
    monkeypatch.setattr(partsinstall, "install_part", install)
    names = ["axe", "vllm", "docs"]
    found = partsinstall.install_parts(names, Path("python"), stages, INSTALLER, tell=tell)
    assert found == ["vllm"]
    assert told == {"axe": True, "vllm": False, "docs": True}


def test_what_asks_different_places_comes_beside_each_other() -> None:
    rows = partsinstall.split_rows(parts.PARTS)
    engines, debian, python = [[part.name for part in row] for row in rows]
    assert engines == ["vllm", "guidellm"], "which borrows the engine's torch"
    assert {"openai-node", "chromium", "promtool"} <= set(debian)
    assert {"openai-2", "helm", "docs"} <= set(python)
    assert len(engines) + len(debian) + len(python) == len(parts.PARTS)


def test_a_part_that_cannot_be_had_is_told(
    stages: StartStages, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parts, "PARTS", (part("chromium", there=False, apt=("chromium",)),))
    monkeypatch.setattr(parts, "with_apt", lambda: False)
    partsinstall.install_parts([], Path("python"), stages, INSTALLER)
    assert "not installed: the chromium is missing: install it" in capsys.readouterr().out


MAKE_ENGINE = """
for file in bin/python lib/python3.12/site-packages/vllm/__init__.py; do
    mkdir -p "$4/$(dirname $file)" && touch "$4/$file"
done
"""


@pytest.mark.parametrize(
    ("script", "unavailable", "told"),
    [
        ("echo no torch; echo for this", ["vllm"], "not installed: no torch for this"),
        ("echo the disk is full; exit 1", [], "not installed: the disk is full"),
        (MAKE_ENGINE, [], ""),
    ],
)
def test_an_engine_that_is_nowhere_to_be_had_is_no_fault(
    stages: StartStages,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    unavailable: list[str],
    told: str,
) -> None:
    """`breakeven engine install --directory FOLDER` ends well with it, and without torch for it."""
    monkeypatch.setenv("BREAKEVEN_ENGINE", str(tmp_path / "engine"))
    command = tmp_path / "breakeven"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    found = partsinstall.install_parts(["vllm"], tmp_path / "python", stages, INSTALLER)
    assert found == unavailable
    assert capsys.readouterr().out.strip() == told


def test_apt_is_asked_once_for_everything(
    stages: StartStages, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(partsinstall, "apt_install", lambda names: asked.append(list(names)) or "")
    monkeypatch.setattr(parts, "with_apt", lambda: True)
    wanted = (part("a", there=False, apt=("one",)), part("b", there=False, apt=("two", "three")))
    monkeypatch.setattr(parts, "PARTS", wanted)
    partsinstall.install_parts([], Path("python"), stages, INSTALLER)
    assert asked == [["one", "two", "three"]]


def test_a_node_from_elsewhere_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert partsinstall.is_needed("nodejs")
    (tmp_path / "node").touch(mode=0o755)
    assert not partsinstall.is_needed("nodejs")
    assert partsinstall.is_needed("npm")


@pytest.mark.parametrize(
    "major",
    [
        pytest.param("2", marks=pytest.mark.part("openai-2")),
        pytest.param("3", marks=pytest.mark.part("openai-3")),
    ],
)
def test_sdk_environments_hold_their_major_and_nothing_of_ours(
    major: str, request: pytest.FixtureRequest
) -> None:
    python = request.getfixturevalue(f"openai_{major}")
    script = "import openai, importlib.util as u; print(openai.__version__, u.find_spec('gateway'))"
    answer = subprocess.run(
        [python, "-c", script], check=True, capture_output=True, text=True, cwd="/"
    )
    version, gateway = answer.stdout.split()
    assert version.startswith(f"{major}.")
    assert gateway == "None"


def test_without_python_312_there_is_no_validator_to_be_had(
    stages: StartStages, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parts, "PARTS", (part("focus-validator", there=False),))
    monkeypatch.setattr(parts, "find_python_312", lambda: None)
    unavailable = partsinstall.install_parts([], Path("python"), stages, INSTALLER)
    assert unavailable == ["focus-validator"]
    assert "runs on Python 3.12, and PATH has none" in capsys.readouterr().out


def test_without_an_engine_there_is_no_guidellm_to_be_had(
    stages: StartStages,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BREAKEVEN_ENGINE", str(tmp_path / "engine"))
    monkeypatch.setattr(parts, "PARTS", (part("guidellm", there=False),))
    assert partsinstall.install_parts([], Path("python"), stages, INSTALLER) == ["guidellm"]
    assert "borrows the engine's torch" in capsys.readouterr().out


def test_without_an_engine_there_is_nothing_to_lay_the_compressor_over(
    stages: StartStages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BREAKEVEN_ENGINE", str(tmp_path / "engine"))
    monkeypatch.setattr(parts, "PARTS", (part("compressor", there=False),))
    assert partsinstall.install_parts([], Path("python"), stages, INSTALLER) == ["compressor"]


def test_guidellm_sees_the_engines_torch_and_keeps_its_own_packages(guidellm: Path) -> None:
    script = "import torch, transformers, sys; print(torch.__file__, transformers.__file__)"
    answer = subprocess.run(
        [guidellm.with_name("python"), "-c", script],
        check=True, capture_output=True, text=True, cwd="/",
    )  # fmt: skip
    torch, transformers = (Path(word) for word in answer.stdout.split())
    assert torch.is_relative_to(parts.engine_folder())
    assert transformers.is_relative_to(parts.GUIDELLM)
