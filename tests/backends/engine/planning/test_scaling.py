"""One to eight GPUs, by layout."""

import pytest


def test_scaling_is_told_by_layout_with_what_a_gpu_of_it_brings(planned):
    made = planned("70b-fp8", "H200")
    rows = {item.layout: item for item in made.scaling}
    assert list(rows)[:3] == ["1 GPU", "TP2", "PP2"]
    assert {item.gpus for item in made.scaling} == {1, 2, 4, 8}
    assert rows["1 GPU"].efficiency == 1.0
    assert rows["TP2"].tokens_s_alone == pytest.approx(2 * rows["1 GPU"].tokens_s_alone)
    assert rows["PP2"].tokens_s_alone == pytest.approx(rows["1 GPU"].tokens_s_alone)
    assert 1.0 > rows["TP2"].efficiency > rows["PP2"].efficiency
    cards = {item.layout: item for item in planned("70b-fp8", "L40S").scaling}
    assert cards["1 GPU"].tokens_s is None
    assert cards["TP8"].efficiency < rows["TP8"].efficiency, "PCIe"
