"""Simulated transcripts: as long as the sound, in every format, labelled."""

import json

import httpx
import pytest

from backends.engine import silence
from backends.simulator.dialect import RefusedError, SimulatedRules
from backends.simulator.transcripts import chunks, events, parse_form, seconds_of, whole_answer

RULES = SimulatedRules((), 100, 16)


def heard(data: bytes | None = None, **fields: str):
    sound = silence.wav(2.2) if data is None else data
    request = httpx.Request(
        "POST", "http://x", data={"model": "whisper-1", **fields}, files={"file": ("a.wav", sound)}
    )
    return parse_form(request.read(), request.headers["content-type"], RULES)


def test_seconds_and_words() -> None:
    found = heard()
    assert found.seconds == pytest.approx(2.2)
    assert found.usage == {"type": "duration", "seconds": 3}
    assert found.text.startswith("[simulated]:")
    assert heard() == found
    assert heard(silence.wav(2.0)).text != found.text
    assert seconds_of(bytes(8000)) == 2.0


def test_tokens_where_the_name_says_so() -> None:
    usage = heard(model="gpt-4o-transcribe").usage
    assert (usage["type"], usage["input_tokens"]) == ("tokens", 22)
    assert usage["total_tokens"] == 22 + usage["output_tokens"]


@pytest.mark.parametrize("shape", ["json", "verbose_json", "text", "srt", "vtt"])
def test_every_format_says_the_same(shape: str) -> None:
    found = heard(response_format=shape)
    body, (_, kind) = whole_answer(found)
    assert found.text in body.decode()
    assert (b"json" in kind) == ("json" in shape)


def test_both_streams_say_the_same() -> None:
    found = heard(stream="true", stream_include_usage="true")
    told = [json.loads(event[6:]) for event in list(events(found))[:-1]]
    assert "".join(line.get("delta", "") for line in told) == told[-1]["text"] == found.text
    pieces = [json.loads(chunk[6:]) for chunk in list(chunks(found, "id", 1))[:-1]]
    said = "".join(c["delta"]["content"] for piece in pieces for c in piece["choices"])
    assert said == found.text
    assert pieces[-1]["usage"]["completion_tokens"] == found.output_tokens


def test_refusals() -> None:
    with pytest.raises(RefusedError, match="no such format"):
        heard(response_format="pdf")
    with pytest.raises(RefusedError, match="multipart"):
        parse_form(b"{}", "application/json", RULES)
    with pytest.raises(RefusedError, match="file"):
        parse_form(
            b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
            RULES,
        )
