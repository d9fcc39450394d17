"""Usage in bytes: what is none, what is nothing that can be read, and sums of running figures."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.usage_bytes import (
    BESIDE,
    UNREADABLE_USAGE,
    count_of,
    decode_object,
    decode_told,
    decode_usage,
    read_counts,
    sum_running,
    usage_bytes,
)


@pytest.mark.parametrize("raw", [b"null", b"{}", b"[]", b'""', b"false", b"0"])
def test_a_place_without_usage(raw) -> None:
    assert usage_bytes(msgspec.Raw(raw)) is None


@pytest.mark.parametrize("raw", [b"1", b'"many"', b"[1]", b'{"a":1}'])
def test_what_stands_there_is_kept(raw) -> None:
    assert usage_bytes(msgspec.Raw(raw)) == raw


@pytest.mark.parametrize("value", [b"-5", b"1e30", b'"12"', b"null", b"99999999999999999999999"])
def test_odd_counts_are_left_to_the_ledger(value):
    assert "prompt_tokens" in decode_usage(b'{"prompt_tokens":' + value + b"}")


@pytest.mark.parametrize("raw", [b'{"prompt_tokens":1e999}', b'"many"', b'[{"prompt_tokens":1}]'])
def test_usage_that_cannot_be_read_is_no_silence(raw):
    assert decode_usage(raw) == UNREADABLE_USAGE
    assert decode_usage(None) is None
    assert decode_usage(b"{ }") is None, "an empty one says nothing, however it is written"


REPEATED = b'{"prompt_tokens":9,"completion_tokens":20%b,"completion_tokens":5}'


def test_what_a_repeated_name_told_before_is_kept_beside_the_last() -> None:
    last = {"prompt_tokens": 9, "completion_tokens": 5}
    first = {**last, "completion_tokens": 20}
    assert decode_usage(REPEATED % b"") == {**last, BESIDE: [first, first]}
    most = {**last, "completion_tokens": 300}
    middle = REPEATED % b',"completion_tokens":300'
    assert decode_usage(middle) == {**last, BESIDE: [first, most]}
    hidden = REPEATED % rb',"why":"\u0022\u0022"'
    assert BESIDE in (decode_usage(hidden) or {})
    again = b'{"prompt_tokens":9,"prompt_tokens":9,"note":"a\\"b"}'
    assert decode_usage(again) == {"prompt_tokens": 9, "note": 'a"b'}, "the same is no other"


@given(st.dictionaries(st.text(), st.text() | st.integers(0, 9) | st.lists(st.text())))
def test_an_object_without_repeated_names_is_as_it_stands(value) -> None:
    for raw in (msgspec.json.encode(value), json.dumps(value).encode()):
        assert decode_told(raw) == value


def test_counts_that_both_are_whole_numbers() -> None:
    assert read_counts(b'{"prompt_tokens":3,"completion_tokens":4}') == (3, 4)
    for raw in (b"{", b'{"prompt_tokens":3}', b'{"prompt_tokens":3,"completion_tokens":"4"}'):
        assert read_counts(raw) is None
    assert (count_of(4), count_of("4"), decode_object(b"[]")) == (4, 0, None)


def test_running_usage_adds_outputs_over_choices_and_inputs_over_prompts():
    def usage(prompt: int, output: int) -> bytes:
        return b'{"prompt_tokens":%d,"completion_tokens":%d}' % (prompt, output)

    running = {0: usage(10, 3), 1: usage(10, 4), 2: usage(20, 5), 3: usage(20, 6)}
    assert sum_running(running, 4)["prompt_tokens"] == 20
    assert sum_running(running, 2) == {
        "prompt_tokens": 30, "completion_tokens": 18, "total_tokens": 48,
    }  # fmt: skip
