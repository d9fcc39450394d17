"""The metrics page: what is read from it, and what may never be guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.metrics import EngineSample, ProbeFailed, parse

PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 9.0
vllm:engine_sleep_state{engine="0",model_name="tiny",sleep_state="awake"} 1.0
vllm:engine_sleep_state{engine="0",model_name="tiny",sleep_state="discard_all"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:num_preemptions_total{engine="0",model_name="tiny"} 58.0
vllm:num_preemptions_created{engine="0",model_name="tiny"} 1.795202228691263e+09
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 654.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_compute"} 398.0
vllm:generation_tokens_total{engine="0",model_name="tiny"} 591.0
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 645.0
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 256.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="tiny"} 7.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"} 4.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 28.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="tiny"} 0.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 32.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="tiny"} 51.5
vllm:inter_token_latency_seconds_count{engine="0",model_name="tiny"} 559.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="tiny"} 1.25
vllm:cache_config_info{block_size="128",cache_dtype="auto",engine="0",num_gpu_blocks="24"} 1.0
process_start_time_seconds 1.79520220097e+09
"""

SECOND_RANK = """\
vllm:num_requests_running{engine="1",model_name="tiny"} 5.0
vllm:num_requests_waiting{engine="1",model_name="tiny"} 0.0
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 1.0
vllm:prompt_tokens_total{engine="1",model_name="tiny"} 46.0
vllm:cache_config_info{block_size="128",engine="1",num_gpu_blocks="70"} 1.0
"""


def without(page: str, name: str) -> str:
    return "".join(line for line in page.splitlines(keepends=True) if not line.startswith(name))


def test_a_page_becomes_one_sample():
    assert parse(PAGE) == EngineSample(
        running=3,
        waiting=2,
        kv_usage_ratio=0.25,
        kv_capacity_tokens=23 * 128,  # one of the 24 blocks is reserved
        kv_block_tokens=128,
        preemptions_total=58,
        prompt_tokens_total=654,
        generation_tokens_total=591,
        prefix_query_tokens_total=645,
        prefix_hit_tokens_total=256,
        started_at_s=1.79520220097e09,
    )


def test_free_tokens_follow_from_usage_and_capacity():
    assert parse(PAGE).kv_free_tokens == int(23 * 128 * 0.75)


def test_ranks_add_up_and_usage_is_weighted_by_their_blocks():
    sample = parse(PAGE + SECOND_RANK)
    assert (sample.running, sample.waiting, sample.prompt_tokens_total) == (8, 2, 700)
    assert sample.kv_capacity_tokens == (23 + 69) * 128
    assert sample.kv_usage_ratio == pytest.approx((0.25 * 23 + 1.0 * 69) / 92)


def test_the_older_name_of_the_usage_gauge_is_read():
    old = PAGE.replace("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
    assert parse(old) == parse(PAGE)


def test_without_a_usage_gauge_the_probe_fails_and_says_so():
    with pytest.raises(ProbeFailed, match=r"kv_cache_usage_perc nor vllm:gpu_cache_usage_perc"):
        parse(without(PAGE, "vllm:kv_cache_usage_perc"))


@pytest.mark.parametrize(
    "name",
    [
        "vllm:num_requests_running",
        "vllm:num_requests_waiting{",
        "vllm:num_preemptions_total",
        "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total",
    ],
)
def test_what_routing_depends_on_is_never_taken_as_zero(name: str):
    with pytest.raises(ProbeFailed, match=name.rstrip("{")):
        parse(without(PAGE, name))


@pytest.mark.parametrize("value", ["?", "NaN", "+Inf", "-1"])
@pytest.mark.parametrize("figure", ["0.25", "654.0", "1.79520220097e+09"])
def test_a_value_that_is_no_number_fails_the_probe(figure: str, value: str):
    with pytest.raises(ProbeFailed, match="has the value"):
        parse(PAGE.replace(f" {figure}\n", f" {value}\n"))


def test_a_size_that_is_no_number_is_no_size():
    """Python's `isdigit` takes a superscript for a digit, `int` does not."""
    assert parse(PAGE.replace('num_gpu_blocks="24"', 'num_gpu_blocks="²"')).kv_free_tokens is None


def test_without_cache_configuration_capacity_is_unknown_and_the_fullest_rank_counts():
    page = without(PAGE + SECOND_RANK, "vllm:cache_config_info")
    sample = parse(page)
    assert sample.kv_capacity_tokens is None
    assert sample.kv_free_tokens is None
    assert sample.kv_usage_ratio == 1.0


def test_label_values_may_hold_braces_and_quotes():
    page = PAGE.replace('cache_dtype="auto"', r'cache_dtype="a{b}\"c"')
    assert parse(page).kv_capacity_tokens == 23 * 128


@given(st.text(max_size=400))
def test_any_text_is_read_or_refused_but_never_breaks(text: str):
    try:
        parse(text)
    except ProbeFailed:
        return
    assert "vllm:num_requests_running" in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("vllm:num_requests_running 1e308\nvllm:num_requests_running 1e308", "impossible figures"),
        ("vllm:prompt_tokens_total 1e300", r"reports 1e\+300 for prompt_tokens_total"),
        ("vllm:generation_tokens_total 9.3e18", r"reports 9.3e\+18 for generation_tokens_total"),
        ('vllm:kv_cache_usage_perc{engine="0"} 37', "times its KV cache is in use"),
        (
            f'vllm:cache_config_info{{engine="3",block_size="1",num_gpu_blocks="{"9" * 400}"}} 1.0',
            "impossible figures",
        ),
        (
            'vllm:cache_config_info{engine="3",block_size="99999999",num_gpu_blocks="999999999"} 1',
            r"reports 1e\+17 for kv_capacity_tokens",
        ),
    ],
)
def test_figures_beyond_what_can_be_are_a_failed_probe(line: str, said: str):
    """They ended telemetry, and with it the health of every other engine."""
    with pytest.raises(ProbeFailed, match=said):
        parse(PAGE + line + "\n")


@pytest.mark.parametrize(
    "line", ["llamacpp:requests_processing -3", "llamacpp:prompt_tokens_total 1e300"]
)
def test_so_are_those_of_other_engines(line: str):
    with pytest.raises(ProbeFailed, match="its metrics page reports "):
        parse(line + "\n")
