"""Other engines' metrics pages: what is read from each, and that nothing untold becomes 0."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from backends.engines import METERED, VLLM
from backends.metrics import ProbeFailed, is_json, parse, path_of

OTHERS = set(METERED) - {VLLM}
PAGES = Path(__file__).parent / "pages"
SAID = {
    "sglang-0.5.23": {
        "dialect": "sglang", "running": 12, "waiting": 3, "kv_usage_ratio": 0.28,
        "kv_capacity_tokens": 442_368, "kv_block_tokens": 64, "preemptions_total": 2,
        "prompt_tokens_total": 8128, "generation_tokens_total": 7500,
        "prefix_query_tokens_total": 8128, "prefix_hit_tokens_total": 3200,
    },
    "sglang-00b08c4": {
        "dialect": "sglang", "running": 162, "waiting": 2826, "kv_usage_ratio": 0.28,
        "prompt_tokens_total": 8_128_902, "generation_tokens_total": 7_557_572,
        "prefix_query_tokens_total": 8_128_902,
    },
    "tgi-3.1": {
        "dialect": "tgi", "running": 7, "waiting": 2, "prompt_tokens_total": 21_504,
        "generation_tokens_total": 5376,
    },
    "tensorrt-llm-050f80d": {
        "dialect": "tensorrt-llm", "running": 9, "waiting": 4, "kv_usage_ratio": 0.375,
        "kv_capacity_tokens": 6400 * 32, "kv_block_tokens": 32, "prompt_tokens_total": 9000,
        "generation_tokens_total": 4100, "prefix_query_tokens_total": 9000,
        "prefix_hit_tokens_total": 2048,
    },
    "triton-23.11": {
        "dialect": "triton", "running": 1, "waiting": 0, "kv_usage_ratio": 1 / 6239,
        "kv_capacity_tokens": 6239 * 64, "kv_block_tokens": 64,
    },
    "llama.cpp-00dc805": {
        "dialect": "llama.cpp", "running": 4, "waiting": 46, "prompt_tokens_total": 33_065,
        "generation_tokens_total": 7801,
    },
}  # fmt: skip


def page(name: str) -> str:
    return (PAGES / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", SAID)
def test_whose_page_it_is_shows_and_all_that_is_not_in_it_is_unknown(name):
    found = asdict(parse(page(name)))
    told = {field: value for field, value in found.items() if value is not None}
    assert told == SAID[name]


@pytest.mark.parametrize("name", SAID)
def test_a_named_dialect_reads_the_same(name):
    assert parse(page(name), SAID[name]["dialect"]) == parse(page(name))


@pytest.mark.parametrize("name", SAID)
def test_every_line_is_needed_for_what_it_tells(name):
    """The negative control: without its line each figure is unknown, and no other one changes."""
    full, text = asdict(parse(page(name))), page(name)
    for metric in sorted(set(re.findall(r"^([\w:]+)[{ ]", text, re.MULTILINE))):
        rest = re.sub(rf"^{metric}[{{ ].*\n", "", text, flags=re.MULTILINE)
        try:
            left = asdict(parse(rest, SAID[name]["dialect"]))
        except ProbeFailed:
            continue
        for field, value in left.items():
            assert value == full[field] or value is None, metric


def test_every_page_says_where_it_is_from():
    pages = sorted(PAGES.glob("*.txt"))
    assert {file.stem for file in pages} == {*SAID, "triton-vllm-1e66a22"}
    for file in pages:
        head = "".join(line for line in file.read_text().splitlines(True) if line[0] == "#")[:600]
        assert re.search(r"^# Repository: [\w.-]+/[\w.-]+\.", head), file
        assert re.search(r"\b[0-9a-f]{40}\b", head), file
    assert {str(said["dialect"]) for said in SAID.values()} == OTHERS


def test_behind_triton_vllm_is_read_as_vllm_and_its_cache_has_no_known_size():
    sample = parse(page("triton-vllm-1e66a22"))
    assert (sample.dialect, sample.running, sample.waiting) == ("vllm", 6, 1)
    assert (sample.kv_usage_ratio, sample.kv_capacity_tokens) == (0.5, None)


def test_triton_without_a_batch_manager_tells_what_waits_and_no_more():
    rest = "\n".join(line for line in page("triton-23.11").splitlines() if "trt_llm" not in line)
    sample = parse(rest.replace('count{model="tensorrt_llm",version="1"} 0', "count 7"))
    assert (sample.running, sample.waiting, sample.load) == (None, 7, 7)
    assert sample.kv_usage_ratio is None


def test_tritons_own_count_of_what_waits_goes_first():
    line = 'nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 5\n'
    assert parse(page("triton-23.11") + line).waiting == 5


def test_old_llama_cpp_told_its_usage():
    old = page("llama.cpp-00dc805") + "llamacpp:kv_cache_usage_ratio 0.5\n"
    assert parse(old).kv_usage_ratio == 0.5


def test_a_server_of_tgi_that_answered_nothing_has_an_empty_page():
    sample = parse("", "tgi")
    assert (sample.load, sample.kv_usage_ratio, sample.prompt_tokens_total) == (None, None, None)
    with pytest.raises(ProbeFailed):  # nobody can tell whose it is
        parse("")


@pytest.mark.parametrize("dialect", sorted(OTHERS - {"tgi"}))
def test_a_page_of_somebody_else_is_refused_by_a_named_dialect(dialect):
    with pytest.raises(ProbeFailed, match="no metric that begins with"):
        parse("vllm:num_requests_running 3\n", dialect)


@pytest.mark.parametrize("value", ["-0.1", "1.5", "NaN", "+Inf"])
def test_an_absurd_usage_is_no_usage(value):
    text = page("sglang-0.5.23").replace('tp_rank="0"} 0.28', f'tp_rank="0"}} {value}')
    assert parse(text).kv_usage_ratio is None


@pytest.mark.parametrize("value", ["?", "NaN", "+Inf"])
def test_a_count_that_is_no_number_fails_the_probe(value):
    with pytest.raises(ProbeFailed, match="has the value"):
        parse(f"llamacpp:requests_processing {value}\n")


def test_trtllm_serve_has_its_page_elsewhere():
    assert path_of("tensorrt-llm") == "/prometheus/metrics"
    assert path_of(None) == path_of("vllm") == path_of("sglang") == "/metrics"
    assert is_json('[{"iter": 1}]')
    assert not is_json(page("tgi-3.1"))
