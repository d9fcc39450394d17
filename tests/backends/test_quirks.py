"""What a provider wants otherwise: its words, its limits, and the rest as it came."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.quirks import NO_QUIRKS, Quirks

ALL = Quirks(
    path="/v1", renames={"max_completion_tokens": "max_tokens", "seed": "random_seed"},
    leaves_out=("user", "stream_options"), temperature_max=1, joins_texts=True,
)  # fmt: skip


def applied(body: dict, quirks: Quirks = ALL) -> tuple[dict, tuple[str, ...]]:
    text, left_out = quirks.apply(json.dumps(body).encode())
    return json.loads(text), left_out


@pytest.mark.parametrize(
    ("body", "sent", "left_out"),
    [
        ({"max_completion_tokens": 5}, {"max_tokens": 5}, ()),
        ({"max_completion_tokens": 5, "max_tokens": 9}, {"max_tokens": 5}, ()),
        ({"max_completion_tokens": 9, "max_tokens": 5}, {"max_tokens": 5}, ()),
        ({"max_completion_tokens": None, "max_tokens": 5}, {"max_tokens": 5}, ()),
        ({"seed": 1}, {"random_seed": 1}, ()),
        ({"user": "u", "stream_options": {"include_usage": True}}, {}, ("user",)),
        ({"user": None}, {}, ()),
        ({"temperature": 1.5}, {"temperature": 1.0}, ()),
        ({"temperature": 0.2}, {"temperature": 0.2}, ()),
        ({"temperature": "hot"}, {"temperature": "hot"}, ()),
        ({"messages": "none"}, {"messages": "none"}, ()),
    ],
)
def test_members_are_told_in_its_words(body, sent, left_out) -> None:
    assert applied(body) == (sent, left_out)


def test_texts_are_joined_and_pictures_are_left() -> None:
    text, picture = {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}
    messages = [
        {"role": "user", "content": [text, text]}, {"role": "user", "content": [text, picture]},
        {"role": "user", "content": []}, {"role": "assistant", "content": None}, "?",
    ]  # fmt: skip
    sent, _ = applied({"messages": messages})
    assert sent["messages"] == [{"role": "user", "content": "aa"}, *messages[1:]]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text().filter(lambda name: name not in {"messages", "random_seed"})


@given(st.dictionaries(NAMES | st.sampled_from(["user", "seed", "max_tokens"]), VALUES))
def test_what_it_has_a_word_for_stays_as_it_came(body: dict) -> None:
    sent, left_out = applied(body)
    changed = {"user", "stream_options", "seed", "max_completion_tokens", "max_tokens",
               "temperature", "random_seed"}  # fmt: skip
    assert {name: body[name] for name in body if name not in changed} == {
        name: sent[name] for name in sent if name not in changed
    }
    assert left_out == (("user",) if body.get("user") is not None else ())


@pytest.mark.parametrize("body", [b"", b"[1]", b"\xff", b'{"a": 1}', b'{ "a":1 }'])
def test_a_body_without_its_members_keeps_its_bytes(body: bytes) -> None:
    assert ALL.apply(body) == (body, ())


def test_where_chats_path_stands() -> None:
    assert (
        ALL.base("http://x/")
        == ALL.base("http://x/v1")
        == ALL.base("http://x/v1/")
        == "http://x/v1"
    )
    assert NO_QUIRKS.base("http://x/") == "http://x"
