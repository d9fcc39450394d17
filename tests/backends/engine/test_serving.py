"""Measured figures: of GPUs that the catalogue has, and inside the promise that is stated."""

import pytest

from backends.engine import catalog
from backends.engine.serving import SERVED


@pytest.mark.parametrize("one", SERVED, ids=lambda one: f"{one.gpu}-{one.model}")
def test_a_figure_is_of_a_known_gpu_and_keeps_the_promise(one) -> None:
    gpu = catalog.find(one.gpu)
    assert gpu.name == one.gpu
    assert one.ttft_ms_p99 <= 1000
    assert one.tpot_ms_p90 <= 60
    assert one.weights_gib < gpu.memory_gib * one.gpus
    assert one.source


def test_no_model_is_measured_twice_on_one_gpu() -> None:
    assert len({(one.gpu, one.model) for one in SERVED}) == len(SERVED)
