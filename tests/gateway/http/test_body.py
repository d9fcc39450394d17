"""The top level of a request's JSON: bytes kept, repeats refused, the deny-list gone."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import RequestError
from gateway.http import body as module
from gateway.http.body import (
    MEMBERS_LIMIT,
    SEARCHED_BYTES,
    decode_member,
    decode_members,
    decode_object,
    encode,
    encode_raw,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=8), st.sampled_from([None, 2]))
def test_values_keep_their_bytes(document: dict, indent: int | None) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        text.decode()
    except UnicodeDecodeError:
        return  # lone surrogates are no UTF-8: covered below
    members = decode_members(text)
    assert json.loads(encode(members)) == document
    assert all(bytes(value) in text for value in members.values())


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"a":12}',
        b'{"a":12,"a":1}',
        b'{"b":0, "a" : {"x":1} ,\n"a": {"x":1}}',
        b'{"\\u0061":1,"a":2}',
        b'{"a":2,"\\u0061":2}',
    ],
)
def test_a_repeated_key_is_refused(text: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        decode_members(text)
    assert caught.value.kind == "duplicate_key"
    assert caught.value.param == "a"


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b'"x"', b'{"a":NaN}', b'{"a":1}x', b'{"a":1,}', b"\xff{}", b"[" * 100_000,
     b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"],
)  # fmt: skip
def test_what_is_no_object_is_a_400(text: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        decode_members(text)
    assert caught.value.row.status == 400


@pytest.mark.parametrize("text", [b"", b" \r\n"])
def test_an_empty_body_is_told_so(text: bytes) -> None:
    with pytest.raises(RequestError, match="body is empty"):
        decode_members(text)


def test_members_without_end_are_a_400() -> None:
    members = ",".join(f'"k{number}":{number}' for number in range(MEMBERS_LIMIT + 1))
    with pytest.raises(RequestError, match="more than 1024 members"):
        decode_members(b"{%s}" % members.encode())


def test_repeats_deeper_down_are_the_targets_business() -> None:
    assert bytes(decode_members(b'{"a":{"b":1,"b":2}}')["a"]) == b'{"b":1,"b":2}'


def test_a_member_of_the_wrong_type_names_itself() -> None:
    members = {"n": msgspec.Raw(b'"three"')}
    with pytest.raises(RequestError) as caught:
        decode_member(members, "n", int)
    assert caught.value.param == "n"
    assert decode_member({"n": msgspec.Raw(b"null")}, "n", int, 1) == 1
    assert decode_member({"n": encode_raw(4)}, "n", int) == 4


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b'{"model":"\\ud800"}', "model"),
        (b'{"model":"\\ud83d x"}', "model"),
        (b'{"user":"m","messages":[{"content":"\\udc00"}]}', "messages[0].content"),
        (b'{"messages":[1,{"content":[{"text":"\\udfff"}]}]}', "messages[1].content[0].text"),
        (b'{"messages":[[[[[["\\udfff"]]]]]]}', "messages[0][0][0][0]"),
        (b'{"prompt":"\xed\xa0\x80"}', "prompt"),
        (b'{"model":"m","prompt":"\xff"}', "prompt"),
        (b'{"\\ud800":1}', None),
        (b'{"\xff":1}', None),
        (b'{"a":{"b":"\xff","b":"x"}}', None),  # only the last of both is read
        (b'{"a":"\xff","b":%s}' % (b"9" * 5000), None),
    ],
)
def test_invalid_unicode_is_told_with_its_place(text: bytes, place: str | None) -> None:
    with pytest.raises(RequestError, match="contains invalid Unicode") as caught:
        decode_members(text)
    assert (caught.value.row.status, caught.value.param) == (400, place)
    assert caught.value.message.startswith(f"`{place}` contains" if place else "The body contains")
    caught.value.message.encode()


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":"\\ud83d\\ude00"',
        b'{"a":"\\ud83d\\ude00", "b":',
        b'{"a":"\\ud83d\\ude00' + b" " * SEARCHED_BYTES,
    ],
)
def test_whole_characters_are_not_blamed_for_broken_json(text: bytes) -> None:
    with pytest.raises(RequestError, match="not valid JSON"):
        decode_members(text)


@pytest.mark.parametrize("text", [b'{"a":"\\ud83d\\ude00"}', '{"a":"h\u00e9 \U0001f600"}'.encode()])
def test_whole_characters_pass(text: bytes) -> None:
    assert bytes(decode_members(text)["a"]) in text


def test_a_long_body_is_refused_without_a_search() -> None:
    with pytest.raises(RequestError, match="The body contains invalid Unicode"):
        decode_members(b'{"a":"%s\xff"}' % (b"x" * SEARCHED_BYTES))


def test_a_number_out_of_range_is_told_without_a_nameless_place() -> None:
    text = b'{"messages": [{"n": 1e999}]}'
    with pytest.raises(RequestError) as told:
        decode_member(decode_members(text), "messages", list[dict[str, float]])
    assert told.value.message == "`messages`: Number out of range."


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_body_in_a_usual_way_is_not_walked(monkeypatch, separators) -> None:
    monkeypatch.setattr(module, "_repeated_key", None)
    document = {"model": "m", "messages": [{"role": "user", "content": "h\u00e9"}], "n": 1}
    for some in ({}, document):
        text = json.dumps(some, separators=separators, ensure_ascii=False).encode()
        assert {key: json.loads(bytes(raw)) for key, raw in decode_members(text).items()} == some


def test_a_repeat_as_long_as_spaces_would_be_is_found() -> None:
    """Three more bytes are two spaces and a comma's, or a key that stands twice."""
    text = b'{"a":1,"bcd":{"x":[1,2]},"e":3,"f":4,"g":5,"a":1}'
    members = {"a": 1, "bcd": {"x": [1, 2]}, "e": 3, "f": 4, "g": 5}
    usual = json.dumps(members, separators=(",", ":"))
    assert len(text) - len(usual) < 2 * len(members) - 1
    padded = text.replace(b'"a":1}', b'"a":  1}')
    assert len(padded) - len(usual) <= 2 * len(members) - 1
    for repeated in (text, padded):
        with pytest.raises(RequestError, match="stands twice"):
            decode_members(repeated)


def test_integers_may_be_written_with_a_point() -> None:
    members = decode_members(b'{"n": 5.0, "ids": [1.0, 2], "x": 5.5, "s": "5.0"}')
    assert decode_member(members, "n", int) == 5
    assert bytes(members["n"]) == b"5"  # what a target is sent
    assert decode_member(members, "ids", list[int]) == [1, 2]
    for name in ("x", "s"):
        with pytest.raises(RequestError, match=name):
            decode_member(members, name, int)


def test_integers_inside_a_whole_body_may_be_written_with_a_point() -> None:
    kind = dict[str, dict[str, int]]
    assert decode_object(b'{"kept": {"seconds": 3600.0}}', kind) == {"kept": {"seconds": 3600}}
    with pytest.raises(msgspec.ValidationError, match="float"):
        decode_object(b'{"kept": {"seconds": 3600.5}}', kind)
