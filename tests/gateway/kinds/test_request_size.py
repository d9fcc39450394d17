"""Small texts that ask an engine for much are refused, with their limit; what is usual is not."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds import request_size
from gateway.kinds.request_size import check

DEEP = "((a{99}){99}){99}"  # a million states
PICTURE = {"type": "image_url", "image_url": {"url": "data:,"}}


def nested(levels: int) -> dict:
    found: dict = {"type": "string"}
    for _ in range(levels):
        found = {"type": "object", "properties": {"a": found}}
    return found


def asked(**members) -> None:
    prompt = json.dumps(members.pop("messages", [])).encode()
    check(decode_members(json.dumps(members).encode()), prompt)


def parts(**members) -> dict:
    return {"messages": [{"role": "user", "content": [members]}]}


def schema(value: dict) -> dict:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": value}}


@pytest.mark.parametrize(
    ("members", "param", "words"),
    [
        ({"response_format": schema(nested(33))}, "response_format", "nested more than 64 deep"),
        ({"guided_json": nested(33)}, "guided_json", "nested more"),
        ({"structured_outputs": {"json": nested(33)}}, "structured_outputs", "nested more"),
        ({"tools": [{"function": {"parameters": nested(33)}}]}, "tools", "nested more"),
        ({"tools": ["x" * 300_000]}, "tools", "longer than 262144 bytes"),
        ({"guided_grammar": "x" * 300_000}, "guided_grammar", "longer than"),
        ({"guided_regex": "a" * 513}, "guided_regex", "more than 512 bytes"),
        ({"regex": "(a{1,5000}){9}"}, "regex", "more than 1000 times"),
        ({"structured_outputs": {"regex": "a{9999}"}}, "structured_outputs", "repeats"),
        ({"response_format": schema({"pattern": "a{,2000}"})}, "response_format", "repeats"),
        ({"response_format": schema({"pattern": "a" * 600})}, "response_format", "of more than"),
        ({"response_format": schema({"pattern": DEEP})}, "response_format", "repeats"),
        (
            {"response_format": schema({"patternProperties": {"a": {}, DEEP: {}}})},
            "response_format",
            "repeats",
        ),
        ({"guided_whitespace_pattern": "a{9999}"}, "guided_whitespace_pattern", "repeats"),
        (
            {"structured_outputs": {"json": {}, "whitespace_pattern": "a{9999}"}},
            "structured_outputs",
            "repeats",
        ),
        (
            {"structured_outputs": {"json": json.dumps({"pattern": DEEP})}},
            "structured_outputs",
            "repeats",
        ),
        ({"structured_outputs": {"json": json.dumps(nested(33))}}, "structured_outputs", "nested"),
        ({"guided_json": json.dumps({"pattern": DEEP})}, "guided_json", "repeats"),
        (
            {"structural_tag": json.dumps({"schema": json.dumps({"pattern": DEEP})})},
            "structural_tag",
            "repeats",
        ),
        (
            {"structured_outputs": {"grammar": 'root ::= ("a"{99}){99}'}},
            "structured_outputs",
            "repeats",
        ),
        ({"guided_grammar": f"root ::= [a]{{{'9' * 9999}}}"}, "guided_grammar", "repeats"),
        ({"guided_grammar": "(a{2})" * 2000 + "{2}"}, "guided_grammar", "8192 bytes"),
        ({"top_logprobs": 21}, "top_logprobs", "between 0 and 20"),
        ({"logprobs": 10**9}, "logprobs", "between 0 and 20"),
        ({"top_logprobs": -1}, "top_logprobs", "between 0 and 20"),
        ({"messages": [{"role": "user", "content": [PICTURE] * 65}]}, "messages", "64 pictures"),
        ({"messages": [{"content": [{"image_url": "data:,"}] * 65}]}, "messages", "64 pictures"),
        (parts(type="image_url", image_url=None, uuid="another's"), "messages", "`uuid`"),
        (parts(type="text", text="", prompt_embeds="AA"), "messages", "`prompt_embeds`"),
        (parts(type="prompt_embeds", data="AA"), "messages", "`prompt_embeds`"),
        (parts(type="image_embeds"), "messages", "`image_embeds`"),
    ],
)
def test_too_much_is_refused_with_its_limit(members, param, words) -> None:
    with pytest.raises(RequestError, match=words) as refused:
        asked(**members)
    assert (refused.value.row.status, refused.value.param) == (400, param)


@pytest.mark.parametrize(
    "text",
    [
        b'{"response_format": {"p\\u0061ttern": "a{9999}"}}',
        b'{"response_format": {"pattern": "a\\u007b9999\\u007d"}}',
    ],
)
def test_escapes_hide_nothing(text) -> None:
    with pytest.raises(RequestError, match="repeats"):
        check(decode_members(text), b"")


def test_nor_in_messages() -> None:
    with pytest.raises(RequestError, match="`uuid`"):
        check({}, b'[{"content":[{"image_url":null,"uu\\u0069d":"x"}]}]')
    part = json.dumps(PICTURE).replace('"type"', '"typ\\u0065"')
    with pytest.raises(RequestError, match="64 pictures"):
        check({}, f"[{','.join([part] * 65)}]".encode())


@pytest.mark.parametrize(
    "members",
    [
        {"response_format": schema(nested(30)), "top_logprobs": 20, "logprobs": True},
        {"response_format": schema({"pattern": "^[a-z]{1,64}$"}), "logprobs": 5},
        {"response_format": {"type": "json_object"}, "tools": [], "logprobs": None},
        {"tools": [{"function": {"parameters": {"a": "{" * 400 + '\\"' * 9}}}]},
        {"messages": [{"role": "user", "content": [PICTURE] * 64}]},
        {"messages": [{"role": "tool", "content": '{"uuid": "1", "image_embeds": 2}'}]},
        {"response_format": schema({"pattern": r"^\d{4}-\d{2}-\d{2}T(\d{2}:){2}\d{2}\({999}$"})},
        {"response_format": schema({"pattern": "[a-z({999}]{64}@([a-z]{63}\\.){8}[a-z]{63}"})},
        {"structured_outputs": {"grammar": 'root ::= "{2026}" | [a]{5} "{9999}"'}},
        {"tools": [{"function": {"description": '{"pattern": "a{9999}"}'}}]},
        {"messages": [{"role": "user", "content": '"type":"image_url"' * 200}]},
    ],
)
def test_what_is_usual_is_not(members) -> None:
    asked(**members)


def test_without_the_look_all_of_it_would_go_on(monkeypatch) -> None:
    """The negative control: with other limits nothing is too much."""
    for name in ("SCHEMA_LEVELS", "PATTERN_BYTES", "REPEATED", "ALTERNATIVES", "MEDIA_PARTS"):
        monkeypatch.setattr(request_size, name, 10**12)
    asked(response_format=schema(nested(33)), top_logprobs=21, regex="a{9999}")


@pytest.mark.parametrize("name", ["Image_URL", "FILE_ID", "\\u0049mage_url", "Input_Audio"])
def test_a_parts_member_in_another_case_is_refused(name) -> None:
    """Servers in Go read it as the usual one, and it would be held as text."""
    text = '[{"role": "user", "content": [{"Type": "image_url", "NAME": "x"}]}]'.replace(
        "NAME", name
    )
    with pytest.raises(RequestError, match="is written"):
        check({}, text.encode())
    told = json.dumps([{"role": "user", "content": [{"type": "text", "text": text}]}])
    check({}, told.encode())
