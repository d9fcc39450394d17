"""The tokenizer's files, read by the library that engines read them with."""

import json

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from backends.engine.tinytokenizer import (
    CHAT_TEMPLATE,
    SPECIAL,
    Vocabulary,
    tokenizer_files,
    train,
)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return train()


@pytest.fixture(scope="module")
def tokenizer(vocabulary) -> Tokenizer:
    return Tokenizer.from_str(json.dumps(tokenizer_files(vocabulary, 2048)["tokenizer.json"]))


@given(st.text(max_size=60))
def test_any_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_words_of_the_corpus_are_single_tokens(tokenizer):
    assert tokenizer.encode("The gateway asks the engine.").tokens == [
        "The", "Ġgateway", "Ġasks", "Ġthe", "Ġengine", ".",
    ]  # fmt: skip


def test_ids_are_places_in_the_list_and_specials_come_first(vocabulary, tokenizer):
    assert [vocabulary.id_of(token) for token in SPECIAL] == list(range(len(SPECIAL)))
    assert tokenizer.get_vocab_size() == len(vocabulary.tokens) == len(set(vocabulary.tokens))


def test_special_marks_are_one_token_and_tool_marks_stay_in_the_text(vocabulary, tokenizer):
    ids = tokenizer.encode("<|im_start|>user<tool_call>").ids
    assert ids[0] == vocabulary.id_of("<|im_start|>")
    assert tokenizer.decode(ids, skip_special_tokens=True) == "user<tool_call>"


def test_training_is_repeatable_and_bounded(vocabulary):
    assert train.__wrapped__() == vocabulary, "not the one that is remembered"
    assert len(train("ab ab ab", size=1024).tokens) < 300
    assert len(vocabulary.tokens) <= 1024


@pytest.mark.parametrize("content", ["hello", [{"type": "text", "text": "hello"}], None])
def test_the_chat_template_renders_every_form_of_content(content):
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
    call = {"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
    text = environment.from_string(CHAT_TEMPLATE).render(
        messages=[
            {"role": "user", "content": content},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ],
        tools=[{"type": "function", "function": {"name": "get_weather"}}],
        add_generation_prompt=True,
    )
    assert "<|im_start|>user\n" + ("hello" if content else "") + "<|im_end|>" in text
    assert '<tool_call>{"arguments": {"city": "Paris"}, "name": "get_weather"}</tool_call>' in text
    assert text.endswith("<|im_start|>assistant\n")
