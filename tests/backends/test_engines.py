"""One table of engine kinds: what the configuration may choose, and what each entry starts."""

import sys

from backends.engines import (
    ENGINE_KINDS,
    METERED,
    SIMULATED,
    STARTED,
    VLLM,
    ChildLaunch,
)
from backends.metrics import OTHER_PATHS, path_of
from backends.simulator.profiles import PROFILES

LAUNCH = ChildLaunch("h200", "tiny", 8100, ("--seed", "1"), ("a", "b"))


def test_what_serve_can_start_and_whose_page_is_known() -> None:
    assert STARTED == (VLLM, SIMULATED)
    assert METERED == (VLLM, "sglang", "tgi", "tensorrt-llm", "triton", "llama.cpp")


def test_an_engine_is_started_in_one_way() -> None:
    for name, kind in ENGINE_KINDS.items():
        assert kind.program is None or kind.child is None, name
        assert kind.starts or kind.dialect is not None, name


def test_a_simulated_engine_is_a_child_with_its_flags_and_adapters() -> None:
    child = ENGINE_KINDS[SIMULATED].child
    assert child is not None
    words = child(LAUNCH)
    assert words[:3] == [sys.executable, "-m", "backends.simulator.server"]
    assert words[3:] == [
        *("--profile", "h200", "--model", "tiny", "--port", "8100", "--seed", "1"),
        *("--lora-modules", "a", "b"),
    ]
    assert child(LAUNCH._replace(adapters=()))[-2:] == ["--seed", "1"]


def test_only_a_simulated_engine_has_parameters_by_its_models_name() -> None:
    name = next(iter(PROFILES))
    assert ENGINE_KINDS[SIMULATED].profile(name) is PROFILES[name]
    assert ENGINE_KINDS[VLLM].profile(name) is None


def test_other_paths_are_asked_where_a_page_is_no_metrics_page() -> None:
    assert (path_of("tensorrt-llm"),) == OTHER_PATHS
