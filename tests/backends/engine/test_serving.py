"""Measured figures: of GPUs that the catalogue has, and inside the promise that is stated."""

import pytest

from backends.engine import catalog
from backends.engine.serving import SERVED


@pytest.mark.parametrize("item", SERVED, ids=lambda item: f"{item.gpu}-{item.model}")
def test_a_figure_is_of_a_known_gpu_and_keeps_the_promise(item) -> None:
    gpu = catalog.find_gpu(item.gpu)
    assert gpu.name == item.gpu
    assert item.ttft_ms_p99 <= 1000
    assert item.tpot_ms_p90 <= 60
    assert item.weights_gib < gpu.memory_gib * item.gpus
    assert item.source


def test_no_model_is_measured_twice_on_one_gpu() -> None:
    assert len({(item.gpu, item.model) for item in SERVED}) == len(SERVED)
