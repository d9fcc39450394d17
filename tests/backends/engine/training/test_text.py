"""The corpus as tokens: what the template would write, and rows that begin at documents."""

import json

import pytest

from backends.engine.tinytokenizer import SPECIAL
from backends.engine.training.text import KINDS, as_text, read, save_tokenizer

tokenizers = pytest.importorskip("tokenizers")  # litellm brings it; the engine has its own


@pytest.fixture(scope="module")
def text(small_corpus):
    return read(small_corpus, 320)


def test_streams_begin_where_documents_do(text):
    begins = text.tokenizer.token_to_id("<|im_start|>")
    for kind in KINDS:
        stream = text.learned[kind]
        assert len(stream.starts) >= 39
        assert stream.starts[0] == 0
        assert stream.starts.max() < len(stream.tokens)
        assert len(text.held_out[kind].tokens) < len(stream.tokens) / 10
        assert text.bytes_per_token[kind] > 1
    assert text.learned["chat"].tokens[0] == begins


def test_a_chat_is_written_as_the_template_writes_it():
    asked = {"kind": "chat", "question": "What?", "text": "So."}
    assert as_text(asked) == (
        "<|im_start|>user\nWhat?<|im_end|>\n<|im_start|>assistant\nSo.<|im_end|>\n"
    )
    assert as_text({"kind": "topic", "text": "So."}) == "So.<|eos|>"


def test_the_tokenizer_is_saved_as_engines_read_it(text, tmp_path):
    ids = save_tokenizer(text, tmp_path, 4096)
    loaded = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    words = "def read(path): é\n\t"
    assert loaded.decode(loaded.encode(words).ids) == words, "any text round-trips"
    assert ids["eos_token_id"] == SPECIAL.index("<|im_end|>")
    told = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert told["model_max_length"] == 4096
    added = json.loads((tmp_path / "tokenizer.json").read_text())["added_tokens"]
    assert {item["content"] for item in added if not item["special"]} == {
        "<tool_call>",
        "</tool_call>",
    }
