"""Refusals of any dialect come out as OpenAI's four members, without the machine's insides."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.refusal import (
    MESSAGE_LIMIT,
    is_about_account,
    is_about_model,
    is_too_long,
    openai_refusal,
)
from backends.secret import Secret


def told(body: bytes | dict | list, status: int = 400) -> dict:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    document = json.loads(openai_refusal(text, status))
    assert set(document) == {"error"}
    assert set(document["error"]) == {"message", "type", "param", "code"}
    return document["error"]


VLLM = {"message": "temperature must be at most 2", "type": "BadRequestError"}
EXPECTED = {
    "message": "temperature must be at most 2",
    "type": "invalid_request_error",
    "param": None,
    "code": None,
}


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ({"error": {**VLLM, "param": None, "code": 400}}, {}),
        ({"error": {**VLLM, "param": "temperature", "code": 400}}, {"param": "temperature"}),
        ({"object": "error", **VLLM, "code": 40001}, {}),  # vLLM before 0.10
        ({"error": {**VLLM, "type": "invalid_request_error"}}, {}),
        (
            {"error": {**VLLM, "type": "image_parse_error", "code": "invalid_value", "x": 1}},
            {"type": "image_parse_error", "code": "invalid_value"},
        ),
        ({"error": VLLM["message"]}, {}),
        ({"detail": VLLM["message"]}, {}),
        (
            {"detail": [{"loc": ["body", "n"], "msg": "too many"}, {"msg": "bad"}, 7]},
            {"message": "body.n: too many; bad"},
        ),
        ({"error": {**VLLM, "param": 3, "code": {"a": 1}}}, {}),
        ({"error": {**VLLM, "param": "a b<c>", "code": "x" * 65}}, {}),
    ],
)
def test_every_dialect_has_openais_shape(body: dict, changed: dict) -> None:
    assert told(body) == {**EXPECTED, **changed}


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>nginx at 10.0.0.5</html>", b"[1]", b"\xff", b"7", b'{"error": 7}', b'{"a": {}}',
     b'{"error": {"message": 5}}', b'{"error": {"message": " "}}', b'{"detail": {"a": 1}}',
     b"[" * 100_000],
)  # fmt: skip
def test_what_cannot_be_read_is_replaced(body: bytes) -> None:
    assert told(body, 422)["message"] == "The target refused the request with 422."


def test_a_prompt_that_is_too_long_has_openais_code() -> None:
    message = "This model's maximum context length is 4096 tokens. However, ..."
    error = told({"error": {"message": message, "type": "BadRequestError", "code": 400}})
    assert (error["code"], error["message"]) == ("context_length_exceeded", message)


LONG = "context_length_exceeded"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": "prompt is too long: 209000 tokens > 200000 maximum"}),
        (400, {"message": "Input is too long for requested model."}),
        (400, {"message": "The input (50 tokens) is longer than the model's context length (4)."}),
        (400, {"error": {"message": "The decoder prompt (length 50) is longer than the maximum "
                                    "model length of 40.", "type": "BadRequestError"}}),
        (400, {"error": {"message": "input length and `max_tokens` exceed context limit: 1 + 2"}}),
        (400, [{"error": {"message": "The input token count (12) exceeds the maximum number of "
                                     "tokens allowed (10).", "status": "INVALID_ARGUMENT"}}]),
        (400, {"error": "This model's maximum prompt length is 13 but the request contains 14"}),
        (400, {"errors": [{"message": "the number of input tokens 50 cannot exceed the total"}]}),
        (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed"}),
        (400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "no"}}),
        (400, {"error": {"message": "Your request exceeded model token limit: 8"}}),
        (400, {"error": {"message": "Range of input length should be [1, 30720]"}}),
        (413, {"error": {"message": "Please reduce the length of the messages or completion."}}),
        (413, {"error": {"message": "Request too large for model `x` on tokens per minute (TPM)",
                         "code": "rate_limit_exceeded"}}),
        (422, {"error": {"message": "`inputs` tokens + `max_new_tokens` must be <= 4097."}}),
        (422, {"error": "`inputs` must have less than 4096 tokens. Given: 5000"}),
    ],
)  # fmt: skip
def test_each_server_says_in_its_own_words_that_a_prompt_is_too_long(status, body) -> None:
    """Red before: two sentences and one code were known, so a stage for contexts was not asked."""
    assert is_too_long(json.dumps(body).encode(), status)
    assert told(body, status)["code"] == LONG


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "max_tokens is too large: 9. This model supports at most 4 completion tokens"),
        (400, "max_tokens: 10000 > 8192, which is the maximum allowed number of output tokens"),
        (400, "max_tokens=9 cannot be greater than max_model_len=8"),
        (400, "Invalid 'messages[0].name': string too long. Expected at most 64 characters."),
        (400, "Invalid 'tools': array too long. Expected an array with maximum length 128"),
        (400, "Rate limit reached: too many tokens this minute"),
        (413, "Request exceeds the maximum size"),
        (422, "prompt is too long"),
        (404, "the context window of this model"),
        (400, "x" * 500 + " prompt is too long"),
    ],
)
def test_other_bounds_are_no_prompt_that_is_too_long(status: int, message: str) -> None:
    assert not is_too_long(json.dumps({"error": {"message": message}}).encode(), status)
    assert told({"error": {"message": message}}, status)["code"] is None


@pytest.mark.parametrize(
    ("body", "ours"),
    [
        (
            [{"error": {"code": 400, "message": "API key not valid. Please pass a valid one."}}],
            True,
        ),
        ({"error": {"message": "API key expired. Please renew the API key."}}, True),
        ({"code": "Client", "error": "Incorrect API key provided: xa***12."}, True),
        ({"error": {"message": "Your credit balance is too low to access the API."}}, True),
        ({"error": {"message": "You asked: is my api key not valid?"}}, False),
        ({"error": {"message": "`temperature` is odd"}}, False),
        ([], False),
    ],
)
def test_a_400_may_say_that_our_own_account_is_refused(body: object, ours: bool) -> None:
    """Red before: Google's and xAI's 400 for a wrong key was told as the client's own fault."""
    assert is_about_account(json.dumps(body).encode()) is ours


def test_a_content_filters_refusal_has_a_code() -> None:
    error = told({"code": "no", "error": "Content violates usage guidelines. Failed check: X"}, 403)
    assert (error["code"], error["type"]) == ("content_filter", "invalid_request_error")


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("no answer from 10.0.0.5:8000 yet", "no answer from *** yet"),
        ("see http://10.0.0.5:8000/v1/x?y=1.", "see ***"),
        ("at https://user:pass@engine-3:8443/v1", "at ***"),
        ("host localhost:8100, then [::1]:80", "host ***, then ***"),
        ("from engine.pool.svc:8000 and db.internal", "from *** and ***"),
        ("model `/models/llama-8b/x.bin` failed", "model `***` failed"),
        ('File "/opt/venv/lib/vllm/engine.py", line 3', 'File "***", line 3'),
    ],
)
def test_addresses_and_paths_stay_inside(message: str, kept: str) -> None:
    assert told({"error": {"message": message}})["message"] == kept


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens=9 cannot be greater than max_model_len=8 (parameter=max_tokens, value=9)",
        "See https://platform.openai.com/docs/guides/error-codes for details.",
        "top_p must be in (0, 1], got 1.5; use n/2 and/or 3.14",
        "Version 1.2.3 of application/json is not supported: 12:30",
    ],
)
def test_a_message_about_the_request_is_kept(message: str) -> None:
    assert told({"error": {"message": message}})["message"] == message


OURS = "4f0c9e-our-own"


def test_our_own_key_is_struck_out() -> None:
    said = {"message": f"key {OURS} may not", "code": OURS, "type": OURS, "param": OURS}
    body = json.dumps({"error": said}).encode()
    assert OURS not in openai_refusal(body, 400, [Secret(OURS), Secret("")]).decode()
    assert openai_refusal(body, 400).decode().count(OURS) == 3
    assert (
        json.loads(openai_refusal(body, 400, [Secret("key")]))["error"]["message"]
        == said["message"]
    )


@pytest.mark.parametrize(
    "key",
    ["sk-proj-abc123DEF456", "sk-ab****yz", "gsk_0123456789abcdefgh", "AKIAIOSFODNN7EXAMPLE",
     "Bearer abc.def-123", "AIzaSyA0123456789abcdefghij"],
)  # fmt: skip
def test_what_looks_like_a_key_is_struck_out(key: str) -> None:
    error = told({"error": {"message": f"Incorrect: {key}, sorry", "code": key, "param": key}})
    assert (error["message"], error["code"], error["param"]) == (
        "Incorrect: ***, sorry",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("body", "model"),
    [
        ({"error": {"message": "The model `x` does not exist.", "code": 404}}, True),
        ({"error": {"message": "no", "code": "model_not_found"}}, True),
        ({"detail": "Model not found"}, True),
        ({"detail": "Not Found"}, False),
        ({"error": {"message": "Invalid URL (POST /v1/v1/models/chat)"}}, False),
        ([1], False),
    ],
)
def test_a_404_about_the_model_is_told_from_one_about_the_path(body, model: bool) -> None:
    assert is_about_model(json.dumps(body).encode()) == model


def test_a_message_without_end_is_cut() -> None:
    assert len(told({"error": {"message": "x" * 10**6}})["message"]) == MESSAGE_LIMIT


@given(
    st.binary(max_size=300) | st.text(max_size=300).map(lambda t: json.dumps({"error": t}).encode())
)
def test_whatever_comes_the_shape_holds(body: bytes) -> None:
    error = told(body)
    assert error["message"]
    assert error["type"] == "invalid_request_error"
    assert error["code"] is None or isinstance(error["code"], str)
