"""The catalogue: figures that fit together, names that are found, sources on everything."""

import pytest

from backends.engine.catalog import GPUS, UnknownGpu, find_gpu
from backends.simulator.profiles import PROFILES


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_every_figure_has_a_source_with_a_year(gpu):
    assert any(str(year) in gpu.source for year in range(2017, 2027))
    assert gpu.flops
    if gpu.price:
        assert gpu.price.low_usd_per_hour <= gpu.price.high_usd_per_hour
        assert gpu.price.source
    assert bool(gpu.measured_source) == bool(gpu.measured_bandwidth_bytes_s or gpu.measured_flops)


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_figures_are_plausible(gpu):
    assert 0.9 < gpu.visible_bytes / (gpu.memory_gib * 2**30) < 1.0
    # Dense FLOPs per byte of bandwidth: a sparse figure taken for dense would stand out.
    best = gpu.flops.get("bf16", gpu.flops["fp16"])
    assert 100 < best / gpu.bandwidth_bytes_s < 450
    if gpu.measured_bandwidth_bytes_s:
        assert gpu.measured_bandwidth_bytes_s < gpu.bandwidth_bytes_s
    for number, measured in gpu.measured_flops.items():
        assert measured < gpu.flops[number]


def test_measured_memory_of_an_h200():
    assert find_gpu("H200").visible_bytes == pytest.approx(150_109_880_320, rel=1e-6)


@pytest.mark.parametrize("name", ["h200", "H200", "h-200", "A100 80GB", "rtx4090", "mi300x"])
def test_names_are_found_whatever_their_spelling(name):
    assert find_gpu(name) in GPUS


@pytest.mark.parametrize(
    ("driver", "name"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H200 + NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB-PCIe"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("Tesla T4", "T4"),
    ],
)
def test_a_drivers_longer_name_is_recognised(driver, name):
    assert find_gpu(driver).name == name


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 3090", "NVIDIA GH200 480GB", "L40", "H20"])
def test_a_name_that_only_looks_alike_is_not(name):
    with pytest.raises(UnknownGpu):
        find_gpu(name)


def test_an_unknown_name_is_answered_with_those_that_are_near():
    with pytest.raises(UnknownGpu, match="A100-40GB, A100-80GB"):
        find_gpu("A100")


def test_profiles_name_their_gpu_as_the_catalogue_does():
    assert {profile.gpu for profile in PROFILES.values()} <= {gpu.name for gpu in GPUS}


def test_measured_figures_win_over_the_data_sheet():
    gpu = find_gpu("H200")
    assert gpu.best_bandwidth_bytes_s == 4.3e12
    assert gpu.best_flops("bf16") == 790e12
    assert gpu.best_flops("fp8") == 1979e12
    assert find_gpu("T4").best_flops("bf16") is None
