"""An error in a 200 is charged for where its body counts output, or has any."""

import pytest

from backends.charged_errors import charged_error
from backends.errors import InvalidResponse, RequestDeclined, StreamError, UpstreamBroken

OUTPUT = {"prompt_tokens": 8, "completion_tokens": 5}
PROMPT = {"prompt_tokens": 8, "completion_tokens": 0, "total_tokens": 8}


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ({"usage": OUTPUT}, OUTPUT),
        ({"usage": {"input_tokens": 8, "output_tokens": 5}},
         {"input_tokens": 8, "output_tokens": 5}),
        ({"usageMetadata": {"promptTokenCount": 8, "thoughtsTokenCount": 5}},
         {"promptTokenCount": 8, "thoughtsTokenCount": 5}),
        ({"usage": {"prompt_tokens": 8, "total_tokens": 13}},
         {"prompt_tokens": 8, "total_tokens": 13}),
        ([{"usage": OUTPUT}], OUTPUT),
        ({"choices": [{"usage": OUTPUT}]}, OUTPUT),
        ({"choices": [{"message": {"role": "assistant", "content": "half"}}]}, None),
        ({"choices": [{"delta": {"content": "half"}}], "usage": PROMPT}, None),
        ({"choices": [{"text": "half"}]}, None),
        ({"data": [{"embedding": [0.5]}], "usage": PROMPT}, PROMPT),
        ({"results": [{"index": 0}], "usage": PROMPT}, PROMPT),
        ({"text": "heard", "usage": {"type": "duration", "seconds": 3}},
         {"type": "duration", "seconds": 3}),
        ({"usage": {"type": "duration", "seconds": 3}}, {"type": "duration", "seconds": 3}),
    ],
)  # fmt: skip
def test_what_was_made_is_charged(body: object, kept: dict | None) -> None:
    for kind in (StreamError, RequestDeclined):
        found = charged_error(kind("no"), body)
        assert isinstance(found, UpstreamBroken)
        assert (found.billable, found.usage) == (True, kept)


@pytest.mark.parametrize(
    "body",
    [
        {}, None, 5, [], {"usage": PROMPT}, {"usage": None},
        {"choices": [{"message": {"role": "assistant", "content": ""}}]},
        {"choices": [], "data": [], "results": [], "text": ""},
        {"usage": {"completion_time": 5, "output_tokens": 0, "completion_tokens_per_sec": 4}},
    ],
)  # fmt: skip
def test_what_was_not_is_free(body: object) -> None:
    reported = StreamError("no")
    assert charged_error(reported, body) is reported
    assert not reported.billable


def test_an_error_that_is_charged_anyway_keeps_its_kind() -> None:
    reported = InvalidResponse("no answer")
    assert charged_error(reported, {"usage": OUTPUT}) is reported
    assert reported.usage == OUTPUT
    assert charged_error(InvalidResponse("no"), {"usage": PROMPT}).usage is None
