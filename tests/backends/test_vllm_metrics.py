"""vLLM's page by itself; `test_metrics` reads it as everybody else does."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.enginesample import ProbeFailed
from backends.vllm_metrics import (
    _WANTED,
    KV_USAGE,
    KV_USAGE_OLD,
    MARK,
    _wanted_lines,
    read_vllm,
)

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


# What it is to find, as one pattern: half as fast.
_ALL = re.compile(
    rf"^({'|'.join(map(re.escape, _WANTED))})(?:\{{(.*)\}})?[ \t]+(\S+)", re.MULTILINE
)
_NAME = st.sampled_from([*_WANTED, "vllm:other", f"{KV_USAGE}_more", "# HELP", "x"])
_LABELS = st.sampled_from(["", '{a="1"}', '{a="}{ 1",b=""}', "{", "{}", "}"])
_TEXT = st.text(st.sampled_from(' \t=0.e1aé#\r"'), max_size=6)
_LINE = st.builds("{}{}{}".format, _NAME, _LABELS, _TEXT)  # no brace begins a value


@given(st.lists(_LINE, max_size=8), st.sampled_from(["", "\n"]))
def test_lines_are_found_as_one_pattern_finds_them(lines: list[str], end: str) -> None:
    page = "\n".join(lines) + end
    assert list(_wanted_lines(page)) == _ALL.findall(page)


def test_an_engine_with_a_time_below_nothing_in_its_queue_is_seen() -> None:
    """vLLM 0.32 wrote this once KV could not be loaded for a request."""
    name = "vllm:request_queue_time_seconds"
    page = f"{PAGE}{KV_USAGE} 0.25\n"
    lines = [f'{name}_sum{{engine="0"}} -32175.409229767996', f'{name}_count{{engine="0"}} 3']
    assert read_vllm(page + "\n".join(lines)) == read_vllm(page)
