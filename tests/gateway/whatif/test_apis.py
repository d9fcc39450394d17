"""Draws of API latency: the same for every policy, by the seed."""

from statistics import median

from backends.simulator.latency import Latency
from gateway.whatif.apis import draw_latencies


def test_a_seed_repeats_and_the_medians_are_the_latencys() -> None:
    latency = Latency()
    found = draw_latencies(4000, latency, 3)
    assert found == draw_latencies(4000, latency, 3)
    assert found != draw_latencies(4000, latency, 4)
    assert abs(median(finding.ttft_s for finding in found) / latency.ttft_s - 1.0) < 0.05
    assert abs(median(finding.tpot_s for finding in found) / latency.tpot_s - 1.0) < 0.05
