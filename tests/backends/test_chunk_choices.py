"""Choices of chunks: their words, by both measures, and what is none."""

import json

import pytest

from backends.chunk_choices import NULL, is_given, odd_choice, unnamed_words
from backends.chunks import read_chunk

PAGE = "word " * 2000


@pytest.mark.parametrize(
    ("choice", "content"),
    [
        (b'"delta":{"role":"assistant","content":""}', False),
        (b'"delta":{"role":"assistant","content":null}', False),
        (b'"delta":{"content":"a"}', True),
        (b'"delta":{"content":" "}', True),
        (b'"delta":{"reasoning_content":"a"}', True),
        (b'"delta":{"reasoning":"a"}', True),
        (b'"delta":{"refusal":"no"}', True),
        (b'"delta":{"tool_calls":[{"index":0}]}', True),
        (b'"delta":{"tool_calls":[]}', False),
        (b'"delta":{"tool_calls":null}', False),
        (b'"delta":{"function_call":{"name":"f"}}', True),
        (b'"delta":{"audio":{"data":"x"}}', True),
        (b'"delta":{}', False),
        (b'"delta":null', False),
        (b'"text":"a"', True),
        (b'"text":""', False),
        (b'"delta":{"content":[{"type":"thinking"}]}', True),
        (b'"delta":{"role":"assistant","content":[]}', False),
    ],
)
def test_what_counts_as_content(choice, content):
    chunk = read_chunk(b'{"choices":[{"index":0,' + choice + b"}]}")
    assert chunk.choices[0].has_content() is content


@pytest.mark.parametrize(
    ("choice", "size"),
    [
        ('{"text":"","finish_reason":null}', 0),
        ('{"delta":{},"finish_reason":"stop"}', 0),
        ('{"text":"abc"}', 3),
        ('{"text":"abc","delta":{"content":"de"}}', 5),
    ],
)
def test_a_choice_has_said_the_bytes_of_its_texts(choice, size):
    chunk = read_chunk(b'{"choices":[%b]}' % choice.encode())
    assert chunk.choices[0].said() == (size, size)


@pytest.mark.parametrize(
    ("delta", "text", "least", "most"),
    [
        ({"content": "", "context": {"citations": [{"content": PAGE}]}}, False, 0, len(PAGE)),
        ({"annotations": [{"url_citation": {"content": PAGE}}]}, False, 0, len(PAGE)),
        ({"executed_tools": [{"output": PAGE}]}, False, 0, len(PAGE)),
        ({"thinking_blocks": [{"thinking": "abc", "signature": "sign"}]}, True, 3, 7),
        ({"thinking": "abc"}, True, 3, 3),
        ({"musings": "abc"}, True, 0, 3),  # of tomorrow: an event of words, of unknown tokens
        ({"role": "assistant", "id": "x", "signature": "sign", "name": "n"}, False, 0, 0),
        ({"content": "known"}, False, 0, 0),
    ],
)
def test_members_without_a_name_may_be_words(delta: dict, text: bool, least: int, most: int):
    found = unnamed_words({"choices": [{"index": 0, "delta": delta}, 5]})
    assert (found.text, *found.said) == (text, least, most)
    assert unnamed_words({"choices": None}) == (False, (0, 0), 0)


@pytest.mark.parametrize(
    ("delta", "said", "content"),
    [
        ({"content": [{"type": "text", "text": "abc"}]}, (3, 3), True),
        ({"content": [{"type": "text", "text": "abc"}], "context": {"a": "quoted"}}, (3, 9), True),
        ({"content": [], "annotations": [{"content": PAGE}]}, (0, len(PAGE)), False),
        ({"content": [{"type": "image_url", "image_url": {"url": "x"}}]}, (1, 1), True),
    ],
)
def test_odd_choices_are_measured_alike(delta: dict, said: tuple, content: bool) -> None:
    found = odd_choice({"index": 0, "delta": delta})
    assert (found.said(), found.has_content()) == (said, content)


def test_usage_of_an_odd_choice_is_read() -> None:
    usage = {"prompt_tokens": 1}
    chunk = {"choices": [{"index": 0, "delta": {"content": []}, "usage": usage}]}
    found = read_chunk(json.dumps(chunk).encode())
    assert json.loads(found.choices[0].usage_bytes()) == usage


def test_sound_and_pictures_are_told() -> None:
    chunk = read_chunk(b'{"choices":[{"delta":{"audio":{"data":"AAAA"},"images":[{"a":1}]}}]}')
    (choice,) = chunk.choices
    assert (choice.speaks(), choice.shows(), choice.said()) == (True, True, (0, 0))
    assert not is_given(NULL)
