"""Lines of an input file: read, or told with OpenAI's words and the line's number."""

import json

import pytest

from gateway.batches.inputlines import InputFault, InputLines

URL = "/v1/chat/completions"
GOOD = {"custom_id": "a", "method": "POST", "url": URL, "body": {"model": "own", "n": 1}}


def reader() -> InputLines:
    return InputLines(URL, known={"own", "x\ny"}.__contains__)


def test_a_good_line_keeps_its_body_byte_for_byte() -> None:
    body = b'{"model":  "own", "n":1.50, "messages": [{"content":"\\u00e4"}]}'
    text = b'{"custom_id":"a","method":"POST","url":"' + URL.encode() + b'","body":' + body + b"}"
    line = reader().read(text, 7)
    assert (line.number, line.custom_id, line.model, line.body) == (7, "a", "own", body)


def test_an_endpoint_may_be_spelled_as_azure_does() -> None:
    """Its documents write `/chat/completions`, in lines and for the batch."""
    line = reader().read(json.dumps({**GOOD, "url": "/chat/completions"}).encode(), 1)
    assert not isinstance(line, InputFault)


@pytest.mark.parametrize("text", [b"", b"  ", b"\r"])
def test_empty_lines_are_none(text: bytes) -> None:
    assert reader().read(text, 1) is None


@pytest.mark.parametrize(
    ("changes", "code", "param"),
    [
        ({"custom_id": ""}, "invalid_custom_id", "custom_id"),
        ({"custom_id": "x" * 257}, "invalid_custom_id", "custom_id"),
        ({"custom_id": "\0"}, "invalid_custom_id", "custom_id"),
        ({"custom_id": 5}, "invalid_type", "custom_id"),
        ({"method": "GET"}, "invalid_method", "method"),
        ({"url": "/v1/embeddings"}, "invalid_url", "url"),
        ({"url": "/embeddings"}, "invalid_url", "url"),
        ({"url": "/v2/chat/completions"}, "invalid_url", "url"),
        ({"body": []}, "invalid_json_line", "body"),
        ({"body": {}}, "missing_required_parameter", "body.model"),
        ({"body": {"model": "none"}}, "model_not_found", "body.model"),
        ({"body": {"model": "x\ny"}}, "model_not_found", "body.model"),
        ({"body": {"model": 1}}, "invalid_type", "body.model"),
        ({"body": {"model": "own", "stream": True}}, "unsupported_parameter", "body.stream"),
    ],
)
def test_a_fault_names_the_line_and_the_member(changes: dict, code: str, param: str) -> None:
    found = reader().read(json.dumps({**GOOD, **changes}).encode(), 3)
    assert isinstance(found, InputFault)
    told = found.document()
    assert (told["code"], told["line"], told["param"]) == (code, 3, param)
    assert told["message"]


@pytest.mark.parametrize(
    "changes", [{"method": "x" * 10**6}, {"url": "x" * 10**6}, {"body": {"model": "x" * 10**6}}]
)
def test_what_a_line_says_is_not_told_back_at_length(changes: dict) -> None:
    found = reader().read(json.dumps({**GOOD, **changes}).encode(), 3)
    assert "x" * 20 in found.message
    assert len(found.message) < 250


@pytest.mark.parametrize("name", ["custom_id", "method", "url", "body"])
def test_every_member_is_needed(name: str) -> None:
    text = json.dumps({key: value for key, value in GOOD.items() if key != name}).encode()
    assert reader().read(text, 1).code == "missing_required_parameter"


@pytest.mark.parametrize("text", [b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, b"{}x"])
def test_what_is_no_json_object_is_said_to_be(text: bytes) -> None:
    assert reader().read(text, 1).code in ("invalid_json_line", "missing_required_parameter")
    assert reader().read(text, 1).line == 1


def test_a_custom_id_stands_once_also_on_a_bad_line() -> None:
    lines = reader()
    assert lines.read(json.dumps({**GOOD, "method": "GET"}).encode(), 1).code == "invalid_method"
    assert lines.read(json.dumps(GOOD).encode(), 2).code == "duplicate_custom_id"


@pytest.mark.parametrize(
    "text",
    [
        b'{"custom_id": "1", "custom_id": "2", "method": "POST"}',
        b'{"custom_id": "1", "body": {}, "bo\\u0064y": {"model": "m"}}',
    ],
)
def test_a_name_that_stands_twice_is_a_fault(text: bytes) -> None:
    fault = reader().read(text, 1)
    assert isinstance(fault, InputFault)
    assert fault.code == "duplicate_key"
