"""What a pool's sampling may not name."""

import pytest

from gateway.config.crosschecks_sampling import check_sampling
from gateway.config.settings import Settings


def faults(**changes: object) -> list[str]:
    rule = {"teams": ["search"], "model": "own", "baseline": "base", "key_env": "K"} | changes
    pool = {"engine": {}, "gpu": {"type": "CPU"}}
    models = {
        "own": {"targets": ["pool:tiny"]},
        "base": {"targets": ["pool:bf16"]},
        "chat": {"targets": ["pool:tiny", "openai/x"]},
    }
    settings = Settings.model_validate(
        {"models": models, "pools": {"tiny": pool | {"sampling": rule}, "bf16": pool}}
    )
    return [fault.text("file") for fault in check_sampling(settings)]


def test_what_fits_is_no_fault():
    assert faults() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "owm"}, "no model named `owm`; did you mean `own`?"),
        ({"model": "chat"}, "it must have `pool:tiny` as its only target"),
        ({"model": "base"}, "it must have `pool:tiny` as its only target"),
        ({"baseline": "chat"}, "has a target that is not a pool: sampled prompts stay here"),
        ({"baseline": "own"}, "is the model itself"),
        ({"teams": []}, "name the teams that agreed to it"),
    ],
)
def test_faults(changes: dict, said: str):
    assert any(said in line for line in faults(**changes)), faults(**changes)
