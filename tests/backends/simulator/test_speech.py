"""Speech of the simulated provider: bytes and events of one text carry the same sound."""

import json
from base64 import b64decode

import pytest

from backends.simulator.dialect import RefusedError, SimulatedRules
from backends.simulator.speech import parse_speech, pieces, speech_events

RULES = SimulatedRules((), 1000, 16)


def body(**members) -> bytes:
    return json.dumps({"model": "m", "input": "hello " * 30, "voice": "a", **members}).encode()


def test_events_carry_the_file_and_count_at_their_end() -> None:
    spoken = parse_speech(body(stream_format="sse"), RULES)
    events = [json.loads(event[6:]) for event in speech_events(spoken)]
    sound = b"".join(b64decode(event["audio"]) for event in events[:-1])
    assert sound == b"".join(pieces(spoken))
    assert events[-1] == {"type": "speech.audio.done", "usage": spoken.usage}


@pytest.mark.parametrize(
    "change",
    [{"input": ""}, {"voice": None}, {"response_format": "midi"},
     {"model": "tts-1", "stream_format": "sse"}],
)  # fmt: skip
def test_what_is_wrong_is_refused(change: dict) -> None:
    with pytest.raises(RefusedError):
        parse_speech(body(**change), RULES)
