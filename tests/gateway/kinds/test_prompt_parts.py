"""Sound and files are found in any spelling, and in no text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kinds import prompt_parts
from gateway.kinds.prompt_parts import (
    LONG_BYTES,
    NO_PARTS,
    PromptParts,
    cut_long_strings,
    find_parts,
    is_continued,
    roles_of_text,
)
from gateway.kinds.text_members import NO_FEATURES, media_features

SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
FILES = (
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}},
    {"type": "input_file", "file_url": "https://a/b.pdf"},
    {"type": "document_url", "document_url": "https://a/b.pdf"},
    {"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}},
    {"type": "video", "video": ["https://a/1.png"]},
    {"type": "media", "mimeType": "application/pdf", "fileUri": "gs://a/b.pdf"},
    {"fileData": {"fileUri": "gs://a/b.pdf"}},
    {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}},
    {"inline_data": {"mime_type": "video/mp4", "data": "AAAA"}},
    {"video": "https://a/b.mp4"},
    {"type": "video_url", "video_url": {"url": "https://a/b.mp4"}},
    {"document": {"format": "pdf", "source": {"bytes": "AAAA"}}},
)
PICTURES = (
    {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
    {"type": "image", "image": "https://a/b.png"},
    {"type": "image_base64", "image_base64": "AAAA"},
    {"image": "https://a/b.png"},
    {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
)


def encoded(*parts, text="a") -> bytes:
    return json.dumps(
        [{"role": "user", "content": [{"type": "text", "text": text}, *parts]}]
    ).encode()


@st.composite
def spelled(draw, text: bytes) -> bytes:
    """The same JSON, with any letters of its strings as escapes."""
    kept = st.sampled_from(
        [lambda n: b"%c" % n, lambda n: b"\\u%04x" % n, lambda n: b"\\u%04X" % n]
    )
    return b"".join(draw(kept)(n) if chr(n).isalpha() else b"%c" % n for n in text)


@given(st.data(), st.sampled_from([SOUND, *FILES, *PICTURES]))
def test_every_spelling_is_found(data, part) -> None:
    prompt = data.draw(spelled(encoded(part)))
    assert json.loads(prompt) == json.loads(encoded(part))
    found = find_parts(prompt)
    assert found.sound == (part not in PICTURES)
    assert (found.files > 0) == (part in FILES)
    assert found.pictures == (part in PICTURES)


def test_what_was_said_before_is_sound_of_any_length() -> None:
    prompt = json.dumps([{"role": "assistant", "audio": {"id": "audio_1"}}] * 2).encode()
    assert find_parts(prompt) == PromptParts(True, 2, 0)
    typed = json.dumps([{"role": "user", "content": [{"type": "audio", "audio": "AA"}]}]).encode()
    assert find_parts(typed).sound
    assert find_parts(typed).files


def test_what_says_that_there_is_none_is_none() -> None:
    """An answer of vLLM, sent back as it came."""
    message = {"role": "assistant", "content": "a", "audio": None, "file_id": None}
    assert find_parts(json.dumps([message]).encode()) == NO_PARTS


@pytest.mark.parametrize(
    "text",
    ['"file": "input_audio"', json.dumps(FILES[0]), json.dumps([SOUND]), "audio", "caf\u00e9 file"],
)
@pytest.mark.parametrize(
    "part", [{"type": "text", "text": "b"}, {"type": "document", "document": {"data": "b"}}]
)
def test_a_text_about_them_has_none(part, text) -> None:
    assert find_parts(encoded(part, text=text + ".")) == PromptParts(False, 0, 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
)
MEMBERS = st.sampled_from(["role", "content", "name", "audio", "file", "type", "image_url"])


@given(st.lists(st.dictionaries(MEMBERS, JSON | st.just([SOUND, *FILES, *PICTURES])), max_size=3))
def test_what_is_called_text_has_no_parts_and_no_media(messages) -> None:
    prompt = json.dumps(messages).encode()
    if roles_of_text(prompt) is not None:
        assert find_parts(prompt) == NO_PARTS
        assert media_features(prompt) == NO_FEATURES


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [SOUND]},
        {"role": "assistant", "content": "a", "audio": {"id": "audio_1"}},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"content": "a"},
    ],
)
def test_what_may_have_parts_is_not_called_text(message) -> None:
    text = {"role": "user", "content": '[{"type": "input_audio"}]', "name": "ann"}
    assert roles_of_text(json.dumps([text]).encode()) == [text["role"]]
    assert roles_of_text(json.dumps([text, message]).encode()) is None


def test_of_a_member_that_is_there_twice_both_are_looked_at() -> None:
    twice = b'[{"role": "user", "content": [{"type": "file"}], "content": "a"}]'
    assert roles_of_text(twice) is None


@pytest.mark.parametrize(
    ("message", "continued"), [({"prefix": True}, True), ({"prefix": False}, False), ({}, False)]
)
def test_an_answer_that_goes_on_from_a_text(message, continued) -> None:
    prompt = json.dumps([{"role": "assistant", "content": '"prefix": true', **message}]).encode()
    assert is_continued(prompt) is continued


def called(arguments, **more) -> bytes:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return json.dumps(
        [{"role": "assistant", "content": None, "tool_calls": [call], **more}]
    ).encode()


ARGUMENTS = {"file": "a.py", "file_id": "b", "audio": "loud", "image": "c", "video": "d"}


def test_what_a_tool_was_called_with_is_text() -> None:
    """It is sent as an object by some clients; a file of its own beside it is one."""
    assert find_parts(called(ARGUMENTS)) == NO_PARTS
    assert find_parts(called(ARGUMENTS, content=[FILES[0]])).files
    used = {"type": "tool_use", "id": "1", "name": "f", "input": ARGUMENTS}
    assert find_parts(encoded(used)) == NO_PARTS
    assert find_parts(encoded(used, FILES[0])).files


@pytest.mark.parametrize(
    "prompt",
    [
        called(ARGUMENTS).replace(b'"role"', b'"content": [{"type": "file"}], "role"'),
        called(ARGUMENTS).replace(b'"function": {', b'"function": 5, "function": {'),
        called(ARGUMENTS).replace(b'"function": {', b'"functions": {'),
    ],
)
def test_what_can_be_read_in_two_ways_counts_as_it_stands(prompt) -> None:
    assert find_parts(prompt).files


@pytest.mark.parametrize("nothing", [None, [], "", {}])
def test_an_empty_list_of_files_is_none(nothing) -> None:
    message = {"role": "user", "content": "a", "file_ids": nothing, "images": nothing}
    assert find_parts(json.dumps([message]).encode()) == NO_PARTS


def test_a_list_of_pictures_is_as_long_as_the_context() -> None:
    assert find_parts(json.dumps([{"content": "a", "images": ["AAAA"]}]).encode()).files


RUN = 2 * LONG_BYTES
TOKENS = st.sampled_from([
    '"', '"', '"', ":", " ", "{", "}", "[", "]", "null", "true", "\\", '\\"', "\\u0066ile", "type",
    "file", "document", "url", "image", "audio", '"type": "image"', '"file"', '"image"',
    "a" * RUN, " " * RUN, ":" + " " * RUN, "\n" * RUN + ":", "\\u0061" * RUN, "file" * RUN,
])  # fmt: skip


@given(st.lists(TOKENS, max_size=12).map("".join))
def test_without_its_long_strings_a_text_has_the_same_parts(text: str) -> None:
    data = text.encode()
    cut = cut_long_strings(data)
    assert prompt_parts._count_parts(cut) == prompt_parts._count_parts(data)


def test_the_data_of_a_picture_are_cut_and_short_strings_stay() -> None:
    url = {"url": "data:image/png;base64," + "A" * 100_000}
    picture = encoded({"type": "image_url", "image_url": url})
    assert len(cut_long_strings(picture)) < len(picture) - 100_000
    assert cut_long_strings(encoded(*FILES)) == encoded(*FILES)
