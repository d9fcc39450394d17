"""Engines that this machine is to start: what they run in, and on which GPUs."""

import json
from pathlib import Path

import pytest

from gateway.config.settings import parse
from gateway.diagnosis import engines
from gateway.diagnosis.engines import look_at_engines


def settings(state: Path, **engine: object):
    pools = {"p": {"engine": {"model": "/models/a", **engine}, "gpu": {"type": "H100", "count": 2}}}
    model = {"targets": ["pool:p"], "compare_with": ["openai/gpt-4o-mini"]}
    config = {"state_dir": str(state), "models": {"m": model}, "pools": pools}
    return parse(json.dumps(config), name="test")


def look(state: Path, seen: int, monkeypatch, flavour: str = "cuda", **engine: object):
    monkeypatch.setattr(engines, "flavour_here", lambda: flavour)
    found = look_at_engines(settings(state, **engine), lambda: tuple(map(str, range(seen))))
    return {finding.subject: finding for finding in found}


@pytest.mark.parametrize(("seen", "verdict"), [(4, "ok"), (3, "error"), (0, "error")])
def test_gpus_are_counted_over_replicas(tmp_path, monkeypatch, seen, verdict) -> None:
    assert look(tmp_path, seen, monkeypatch, replicas=2)["gpus"].verdict == verdict


def test_without_a_gpu_engines_compute_on_the_cpu(tmp_path, monkeypatch) -> None:
    assert look(tmp_path, 0, monkeypatch, "cpu", replicas=1)["gpus"].verdict == "note"


def test_an_environment_without_vllm_says_how_to_install_it(tmp_path, monkeypatch) -> None:
    found = look(tmp_path, 2, monkeypatch, replicas=1)["pools.p"]
    assert (found.verdict, "engine install" in found.fix) == ("error", True)
    packages = tmp_path / "engine" / "lib" / "python3.11" / "site-packages"
    (packages / "vllm-0.32.0.dist-info").mkdir(parents=True)
    found = look(tmp_path, 2, monkeypatch, replicas=1)["pools.p"]
    assert (found.verdict, "0.32.0" in found.words) == ("ok", True)


def test_engines_elsewhere_are_not_looked_for(tmp_path, monkeypatch) -> None:
    found = look(tmp_path, 0, monkeypatch, endpoints=["http://gpu:8000/v1"])
    assert list(found) == ["engines"]
