"""`/metrics` in vLLM's words, readable by a Prometheus parser."""

from prometheus_client.parser import text_string_to_metric_families

from backends.simulator.meters import Meters, SimulatedHistogram
from backends.simulator.model import SimulatedEngine


def samples(text):
    families = text_string_to_metric_families(text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families for s in f.samples}


def test_the_names_and_labels_that_load_signals_need(shape):
    engine, meters = SimulatedEngine(shape), Meters("sim")
    engine.submit("a", 0.0, prompt_tokens=100, output_tokens=50)
    engine.advance(0.01)
    meters.record_ended("stop")
    meters.record_ended("tool_calls")
    meters.record_aborted()
    found = samples(meters.exposition(engine).decode())
    labels = (("engine", "0"), ("model_name", "sim"))
    assert found["vllm:num_requests_running", labels] == 1
    assert found["vllm:num_requests_waiting", labels] == 0
    assert found["vllm:kv_cache_usage_perc", labels] == 7 / 100
    assert found["vllm:prompt_tokens_total", labels] == 100
    info = next(dict(key[1]) for key in found if key[0] == "vllm:cache_config_info")
    assert info["num_gpu_blocks"] == "101"
    assert info["block_size"] == "16"
    success = "vllm:request_success_total"
    by_reason = {dict(k[1])["finished_reason"]: v for k, v in found.items() if k[0] == success}
    assert by_reason == {"stop": 2, "length": 0, "abort": 1, "error": 0, "repetition": 0}


def test_histograms_are_cumulative():
    histogram = SimulatedHistogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    lines = list(histogram.lines("h", 'a="b"'))
    assert lines[1:] == [
        'h_bucket{a="b",le="1.0"} 2.0',
        'h_bucket{a="b",le="2.0"} 3.0',
        'h_bucket{a="b",le="+Inf"} 4.0',
        'h_count{a="b"} 4.0',
        'h_sum{a="b"} 12.0',
    ]
