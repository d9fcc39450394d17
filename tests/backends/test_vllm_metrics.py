"""vLLM's page by itself; `test_metrics` reads it as everybody else does."""

import pytest

from backends.enginesample import ProbeFailed
from backends.vllm_metrics import KV_USAGE, KV_USAGE_OLD, MARK, read_vllm

PAGE = """\
vllm:num_requests_running 3
vllm:num_requests_waiting 2
vllm:num_preemptions_total 0
vllm:prompt_tokens_total 654
vllm:generation_tokens_total 591
"""


@pytest.mark.parametrize("gauge", [KV_USAGE, KV_USAGE_OLD])
def test_the_usage_gauge_of_both_names_is_read_and_marks_the_page(gauge: str) -> None:
    page = f"{PAGE}{gauge} 0.25\n"
    assert MARK.search(page)
    assert read_vllm(page).kv_usage_ratio == 0.25


def test_a_page_without_it_is_a_failed_probe() -> None:
    assert not MARK.search(PAGE)
    with pytest.raises(ProbeFailed, match="has neither"):
        read_vllm(PAGE)
