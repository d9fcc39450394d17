"""What a target writes anew is in the bound: characters spelled out, and tools indented."""

import json
import re
import sys
import unicodedata
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.utils import htmlsafe_json_dumps
from tokenizers import Tokenizer

from gateway.http.body import decode_members
from gateway.kinds.prompt_bytes import prompt_bytes, seldom_read_bytes
from gateway.kinds.rewritten_text import (
    indented_tokens,
    longest_form,
    redumped_arguments,
    spelled_bytes,
)

TEXTS = ["\ufdfa", "\U0001d160", "\u3316 \u00bd", "\u0e17\u0e33", "\u0f79", "plain", "\u4eca\uff0c"]


def bound(text: str, *, ascii_only: bool) -> int:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    members = decode_members(json.dumps(body, ensure_ascii=ascii_only).encode())
    return prompt_bytes(members) + seldom_read_bytes(members)


@pytest.fixture(scope="module")
def published() -> Tokenizer:
    """Anthropic's published tokenizer, which normalises to NFKC, as LiteLLM brings it."""
    found = find_spec("litellm")  # it is not imported: that takes seconds
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "litellm_core_utils/tokenizers"
    return Tokenizer.from_file(str(folder / "anthropic_tokenizer.json"))


@pytest.mark.parametrize("ascii_only", [False, True], ids=["UTF-8", "escapes"])
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_no_text_has_more_tokens_than_its_bound(
    published: Tokenizer, text: str, ascii_only: bool
) -> None:
    """Red before: U+FDFA is 3 bytes and 15 tokens."""
    assert len(published.encode(text * 500).ids) <= bound(text * 500, ascii_only=ascii_only)


def test_most_texts_grow_by_nothing() -> None:
    for text in ("plain", "\u4eca\u5929\uff0c\u597d\uff01", "\u0440\u0443", "\uac00", "na\u00efve"):
        assert spelled_bytes(json.dumps(text, ensure_ascii=False).encode()) == 0


def test_each_character_that_grows_is_known() -> None:
    characters = [
        chr(code) for code in range(0x80, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000
    ]
    grows = [letter for letter in characters if unicodedata.decomposition(letter)]
    longer = sum(max(0, longest_form(letter) - len(letter.encode())) for letter in grows)
    assert spelled_bytes("".join(characters).encode()) == longer > 0


def test_halves_of_characters_and_what_is_no_text_are_read() -> None:
    assert spelled_bytes(b'"\\ud834\\udd60"') == 8
    assert spelled_bytes(b'"\\ud834 \xff \\ufdfa"') == 30


@pytest.mark.parametrize("depth", [0, 4, 50])
def test_tools_are_held_as_a_template_indents_them(depth: int) -> None:
    """Red before: Llama's template writes each item of a list on a line of its own.

    A token is at most 16 blanks here, one character that is no blank, or a line's end.
    """
    schema: dict[str, object] = {
        "enum": [1] * 200,
        "description": 'a "quoted" text, {so} [it] is\\',
    }
    for _ in range(depth):
        schema = {"a": schema}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    sent = json.dumps(tools, separators=(",", ":")).encode()
    written = json.dumps(tools, indent=4)
    blanks = [len(line) - len(line.lstrip()) for line in written.splitlines()]
    lines = sum(1 + -(-count // 16) for count in blanks)
    characters = len(written.replace("\n", "")) - sum(blanks)
    colons = written.count('": ')  # a blank behind each is no token of its own
    assert lines + characters - colons <= len(sent) + indented_tokens(sent) <= 4 * len(written)


def test_numbers_may_be_written_out() -> None:
    sent = b"[" + b"1e15," * 100 + b"1]"
    assert len(sent) + indented_tokens(sent) >= len(json.dumps(json.loads(sent)))


numbers = st.sampled_from(["1e15", "1E+20", "-2e9", "7e-6", "1e308", "1.5e3", "0.1", "-0", "12"])
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(json.dumps) | st.builds(
    lambda text: json.dumps(text, ensure_ascii=False), st.text("aé中\U0001f98a<>&'\"\\", max_size=6)
)
documents = st.recursive(
    numbers | words,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]"),
        st.dictionaries(words, inner, max_size=3).map(
            lambda members: f"{{{','.join(f'{name}:{value}' for name, value in members.items())}}}"
        ),
    ),
    max_leaves=8,
)


def written_anew(sent: str) -> list[str]:
    """What Python, its default, Jinja's filter, its `repr` and JavaScript make of JSON."""
    value = json.loads(sent)
    plain = json.dumps(value, ensure_ascii=False)
    number = re.compile(r"\d(?:\.\d+)?e\+\d\d", re.ASCII)
    long = number.sub(lambda figure: str(int(float(figure[0])))[:21], plain)
    return [plain, json.dumps(value), htmlsafe_json_dumps(value), repr(value), long]


@given(documents)
def test_json_that_is_written_anew_is_held_as_it_may_come(sent: str) -> None:
    """Red before: 1e15 has 18 characters in Python, and `é` has 6 as an escape.

    A blank behind a colon is no token of its own.
    """
    longest = max(len(text.encode()) - len(re.findall('": ', text)) for text in written_anew(sent))
    for members in (
        {"tools": json.loads(sent)},
        {"chat_template_kwargs": sent},
        {"messages": [{"tool_calls": [{"function": {"arguments": sent}}]}]},
        {"messages": [{"function_call": {"arguments": sent}}]},
    ):
        raw = json.dumps(members, ensure_ascii=False)
        if "tools" in members or "chat_template_kwargs" in members:
            raw = f"{{{json.dumps(next(iter(members)))}:{sent}}}"
        told = decode_members(raw.encode())
        assert prompt_bytes(told) + seldom_read_bytes(told) >= longest


def test_arguments_are_found_under_an_escaped_name_and_where_they_are_no_text() -> None:
    sent = "[" + ",".join(["1e15"] * 50) + "]"
    for name, value in (("arguments", json.dumps(sent)), ("arg\\u0075ments", json.dumps(sent)),
                        ("arguments", f'{{"a":{sent}}}')):  # fmt: skip
        raw = f'[{{"tool_calls":[{{"function":{{"{name}":{value}}}}}]}}]'
        assert len(raw) + redumped_arguments(raw.encode()) > 50 * 18
    quoted = json.dumps([{"role": "user", "content": f'"arguments": {json.dumps(sent)}'}])
    assert redumped_arguments(quoted.encode()) == 0
    assert redumped_arguments(b'[{"arguments":"\\ud83"}]') == 0
