import json

import httpx
import pytest

from backends.errors import (
    HeadTimeout,
    InvalidResponse,
    ServerError,
    UpstreamOverloaded,
    UpstreamUnreachable,
    WrongAddress,
)
from backends.litellm_text import (
    StreamWriter,
    redact,
    refusal_body,
    translate_error,
    whole_answer,
)
from backends.secret import Secret


class Dumps:
    """As much of a pydantic model as is used."""

    def __init__(self, **value) -> None:
        self.value = value

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict:
        assert (mode, exclude_none) == ("json", True)
        return json.loads(json.dumps(self.value))


BASE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chunk(delta: dict, **more) -> Dumps:
    return Dumps(**BASE, choices=[{"index": 0, "delta": delta, **more.pop("choice", {})}], **more)


def read(event: bytes) -> dict:
    return json.loads(event.removeprefix(b"data: "))


def test_usage_beside_content_moves_to_the_end():
    writer = StreamWriter()
    first = writer.event(chunk({"content": "é"}, usage={"prompt_tokens": 1}))
    assert read(first)["choices"] == [
        {"index": 0, "delta": {"content": "é"}, "finish_reason": None}
    ]
    assert "usage" not in read(first)
    assert writer.event(chunk({}, usage={"prompt_tokens": 2, "cost": 0.5})) == b""
    told = {"prompt_tokens": 2, "cost": 0.5}
    assert read(writer.usage_event(writer.usage)) == {**BASE, "choices": [], "usage": told}


def test_a_finish_without_words_is_an_event():
    event = StreamWriter().event(chunk({}, choice={"finish_reason": "stop"}))
    assert read(event)["choices"][0]["finish_reason"] == "stop"


CUT = b'{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}'


def test_what_the_context_cut_is_told_as_cut_whole_and_streamed():
    event = StreamWriter().event(chunk({}, choice={"finish_reason": "stop"}), CUT)
    assert read(event)["choices"][0]["finish_reason"] == "length"
    stopped = Dumps(choices=[{"message": {"content": "x"}, "finish_reason": "stop"}])
    assert json.loads(whole_answer(stopped, tail=CUT))["choices"][0]["finish_reason"] == "length"
    assert json.loads(whole_answer(stopped))["choices"][0]["finish_reason"] == "stop", "control"


@pytest.mark.parametrize("encoding", [None, "float", "base64"])
@pytest.mark.parametrize("given", [[0.5, -1.25], "AAAAPwAAoL8="])
def test_vectors_come_as_they_were_asked_for(encoding, given):
    asked = "AAAAPwAAoL8=" if encoding == "base64" else [0.5, -1.25]
    told = json.loads(whole_answer(Dumps(data=[{"embedding": given}]), encoding=encoding))
    assert told["data"] == [{"embedding": asked}]


def test_without_usage_there_is_no_usage_event():
    assert StreamWriter().usage_event(None) == b""


def test_a_whole_answer_always_has_content_and_the_cost_that_its_provider_states():
    value = json.loads(
        whole_answer(Dumps(choices=[{"message": {"tool_calls": []}}], usage={"cost": 1, "a": 2}))
    )
    assert value == {
        "choices": [{"message": {"tool_calls": [], "content": None}}],
        "usage": {"cost": 1, "a": 2},
    }


class Foreign(Exception):
    def __init__(self, status: int | None, cause: Exception | None = None) -> None:
        super().__init__("secret")
        self.status_code = status
        self.__cause__ = cause


REQUEST = httpx.Request("POST", "http://x/")


@pytest.mark.parametrize(
    ("error", "wire", "expected"),
    [
        (Foreign(500), 529, UpstreamOverloaded),
        (Foreign(500), 429, UpstreamOverloaded),
        (Foreign(429), None, UpstreamOverloaded),
        (Foreign(500), 200, InvalidResponse),
        (Foreign(500), 408, HeadTimeout),
        (Foreign(503), 500, ServerError),
        (Foreign(500), 400, 400),
        (Foreign(404), None, 404),
        (Foreign(None), None, InvalidResponse),
        (Foreign(500), 302, WrongAddress),
        (Foreign(500, httpx.ConnectError("x", request=REQUEST)), None, UpstreamUnreachable),
        (Foreign(500, httpx.RemoteProtocolError("x", request=REQUEST)), None, InvalidResponse),
        (Foreign(500, Foreign(1, httpx.ReadError("x", request=REQUEST))), 200, InvalidResponse),
    ],
)
def test_the_wire_decides_over_the_exception(error, wire, expected):
    got = translate_error(error, wire, {"retry-after": "4"}, wall_s=0)
    if isinstance(expected, int):
        assert got == expected
        return
    assert type(got) is expected
    assert "secret" not in str(got)
    if expected in (UpstreamOverloaded, ServerError):
        assert got.retry_after_s == 4.0


def test_a_failure_of_litellms_own_is_told_by_its_root():
    """Not as a 500 of the target's; where an SDK of its own sends, its status is all there is."""

    def failing() -> None:
        try:
            {}["secret"]
        except KeyError as error:
            raise Foreign(500) from error

    with pytest.raises(Foreign) as caught:
        failing()
    told = translate_error(caught.value, None, {}, wall_s=0)
    assert isinstance(told, ServerError), "nothing was answered, so nothing is lost with it"
    assert told.status is None
    assert "KeyError at test_litellm_text.py:" in str(told)
    assert "secret" not in str(told)
    unwatched = translate_error(caught.value, None, {}, wall_s=0, watched=False)
    assert (type(unwatched), unwatched.status) == (ServerError, 500)
    limited = translate_error(Foreign(429), None, {}, wall_s=0, watched=False)
    assert isinstance(limited, UpstreamOverloaded)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('litellm.BadRequestError: AnthropicException - b\'{"error":{"message":"too long"}}\'',
         "too long"),
        ("litellm.BadRequestError: no such thing", "no such thing"),
        ("key is my-own-secret here", "key is *** here"),
        ("Incorrect API key: sk-proj-abcdefghijklmnop.", "Incorrect API key: ***."),
        ("?key=AIzaSyABCDEFGHIJKLMNOP", "?***"),
        ("x" * 5000, "x" * 1000),
    ],
)  # fmt: skip
def test_messages_lose_their_wrapping_and_their_secrets(text, shown):
    assert redact(text, [Secret("my-own-secret"), Secret("")]) == shown


@pytest.mark.parametrize(("status", "told"), [(400, True), (404, True), (401, False), (403, False)])
def test_refusals_have_all_four_members(status, told):
    error = json.loads(refusal_body(status, "reason"))["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["message"] == "reason") is told
