"""What models and pools say of adapters that cannot be."""

import pytest

from gateway.config.crosschecks_adapters import check_adapters
from gateway.config.settings import Settings


def faults(models: dict, engine: dict) -> list[str]:
    pools = {"tiny": {"engine": engine, "gpu": {"type": "CPU"}},
             "bare": {"engine": {}, "gpu": {"type": "CPU"}}}  # fmt: skip
    settings = Settings.model_validate({"models": models, "pools": pools})
    return [fault.text("file") for fault in check_adapters(settings)]


@pytest.mark.parametrize(
    ("models", "engine", "said"),
    [
        ({"m": {"targets": ["pool:tiny"], "adapter": "sq"}}, {"adapters": {"sql": "/a"}},
         "the pool `tiny` has no adapter `sq`; did you mean `sql`?"),
        ({"m": {"targets": ["pool:bare"], "adapter": "sql"}}, {"adapters": {"sql": "/a"}},
         "the pool `bare` has no adapter `sql`"),
        ({"m": {"targets": ["openai/x"], "adapter": "sql"}}, {}, "an adapter is served by pools"),
        ({"sql": {"targets": ["pool:tiny"]}}, {"adapters": {"sql": "/a"}},
         "`sql` is also an adapter of the pool `tiny`: write `adapter: sql`"),
        ({}, {"adapters": {"tiny": "/a"}}, "`tiny` is what the engine calls the model itself"),
        ({}, {"adapters": {"a=b": "/a"}}, "leave out `=` and `,`"),
    ],
)  # fmt: skip
def test_faults(models: dict, engine: dict, said: str):
    assert any(said in line for line in faults(models, engine)), faults(models, engine)


def test_what_fits_is_no_fault():
    models = {
        "m": {"targets": ["pool:tiny"], "adapter": "sql"},
        "plain": {"targets": ["pool:tiny"]},
    }
    assert faults(models, {"adapters": {"sql": "/a"}}) == []
