"""Flags are judged by the installed vLLM, or it is said that they were not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.engine.environment import Environment
from backends.engine.flags import BadFlags, EngineLaunch, command
from gateway.config.checks.engine_flags import judge_flags
from gateway.config.examination import examine
from gateway.config.schema import Settings

KNOWN = frozenset({"--model", "--max-model-len", "--enable-prefix-caching", "--compilation-config"})


def pool(place: Path | None, **engine: object) -> Settings:
    described = {"model": "m", "replicas": 1, **engine}
    if place is not None:
        described["environment"] = str(place)
    return Settings.model_validate({
        "state_dir": "nowhere", "pools": {"a": {"engine": described, "gpu": {"type": "CPU"}}},
    })  # fmt: skip


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """An environment with a vLLM whose flags are known already."""
    place = tmp_path / "engine"
    (place / "lib" / "python3.11" / "site-packages" / "vllm-0.11.0.dist-info").mkdir(parents=True)
    (place / "bin").mkdir()
    (place / "breakeven-flags.json").write_text(json.dumps(sorted(KNOWN)))
    return place


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-model-length", "1"], "no flag --max-model-length; did you mean --max-model-len?"),
        (["--max_model_length=4096"], "no flag --max-model-length"),
        (["--zebra"], "this vLLM has no flag --zebra"),
        (["--apple", "--zebra"], "no flag --apple; this vLLM has no flag --zebra"),
    ],
)  # fmt: skip
def test_what_the_installed_engine_lacks_is_a_fault_as_at_the_start(installed, flags, said) -> None:
    verdict = judge_flags(pool(installed, flags=flags))
    assert said in verdict.wrong["pools", "a", "engine", "flags"]
    assert verdict.notes == ()
    launch = EngineLaunch(Environment(installed), Path("m"), "m", flags=tuple(flags))
    with pytest.raises(BadFlags) as caught:
        command(launch, KNOWN, 1)
    assert str(caught.value) in verdict.wrong["pools", "a", "engine", "flags"]


def test_a_profile_is_judged_likewise(installed, tmp_path) -> None:
    profile = tmp_path / "p.json"
    profile.write_text('{"breakeven_profile": 1, "flags": ["--zebra"]}')
    verdict = judge_flags(pool(installed, profile=str(profile)))
    assert list(verdict.wrong) == [("pools", "a", "engine", "profile")]


def test_known_flags_have_no_fault(installed) -> None:
    flags = ["--max-model-len", "4096", "--no-enable-prefix-caching", "--compilation-config.x=1"]
    assert judge_flags(pool(installed, flags=flags)) == ({}, ())


def _fails(environment: Environment) -> frozenset[str]:
    raise BadFlags(f"vLLM in {environment.directory} does not run:\nTraceback")


def _never(environment: Environment) -> frozenset[str]:
    raise AssertionError(environment)


@pytest.mark.parametrize(
    ("is_installed", "ask", "said"),
    [(False, _never, "there is no vLLM in"), (True, _fails, "does not run: Traceback")],
)
def test_what_cannot_be_asked_is_one_line(
    installed: Path, is_installed: bool, ask: Callable[[Environment], frozenset[str]], said: str
) -> None:
    verdict = judge_flags(pool(installed if is_installed else None, flags=["--zebra"]), ask)
    assert verdict.wrong == {}
    (note,) = verdict.notes
    assert note.startswith("pools.a.engine.flags were not checked: ")
    assert said in note
    assert "\n" not in note


@pytest.mark.parametrize(
    "engine",
    [{"flags": []}, {"kind": "simulated", "flags": ["--x"]},
     {"replicas": 0, "endpoints": ["http://10.0.0.1/v1"], "flags": ["--x"]}],
)  # fmt: skip
def test_nothing_is_asked_or_said_where_there_is_nothing_to_judge(engine) -> None:
    assert judge_flags(pool(None, **engine), _never) == ({}, ())


def test_the_file_is_refused_with_the_line(installed, tmp_path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(f"""
models: {{chat: {{targets: ["pool:a"], compare_with: [openai/gpt-4o-mini]}}}}
pools:
  a:
    engine: {{model: {tmp_path}, replicas: 1, environment: {installed}, flags: [--zebra]}}
    gpu: {{type: CPU}}
""")
    (tmp_path / "config.json").write_text("{}")
    at_us = 1_795_000_000_000_000
    assert [fault.path for fault in examine(path, at_us=at_us).errors] == []
    (fault,) = examine(path, at_us=at_us, asks_engines=True).errors
    assert (fault.line, fault.path) == (5, "pools.a.engine.flags")
    path.write_text(path.read_text().replace(str(installed), str(tmp_path / "gone")))
    assert len(examine(path, at_us=at_us, asks_engines=True).notes) == 1
