"""Streams whose events name their type: content goes on, the end is withheld, errors are told."""

import json

import pytest

from backends.errors import BackendError
from gateway.kinds.typed_events import TypedRelay

DONE = "speech.audio.done"
USAGE = {"input_tokens": 4, "output_tokens": 9, "total_tokens": 13}


def event(kind: str, **members) -> bytes:
    return b"data: " + json.dumps({"type": kind, **members}).encode() + b"\n\n"


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_last_event_is_withheld(size: int) -> None:
    relay = TypedRelay(DONE)
    delta, done = event("speech.audio.delta", audio="AAAA"), event(DONE, usage=USAGE)
    text = delta + done
    passed = b"".join(relay.feed(text[at : at + size]) for at in range(0, len(text), size))
    assert passed == delta
    assert relay.usage == USAGE
    assert relay.usage_final
    assert relay.is_ended
    assert relay.finish() == done


def test_each_part_has_its_end() -> None:
    relay = TypedRelay("done", choices=2)
    first = event("done")
    assert relay.feed(first) == first
    assert not relay.is_ended
    assert relay.feed(event("done", usage=USAGE)) == b""
    assert relay.is_ended


@pytest.mark.parametrize(
    ("told", "is_final"),
    [((1, 0, 0), False), ((1, 1, 0), True), ((1, 0, 1), True), ((0, 0, 0), True)],
)
def test_usage_that_sound_came_behind_is_not_of_all(told: tuple[int, ...], is_final: bool) -> None:
    """Red before: a figure of the first sound was that of the whole, once an end came."""
    relay = TypedRelay(DONE)
    for kind, counts in zip(("delta", "delta", DONE), told, strict=True):
        relay.feed(event(kind, audio="AAAA", **({"usage": USAGE} if counts else {})))
    assert (relay.usage_final, relay.usage_behind) == (is_final, not is_final)


def test_a_stream_without_its_end_is_broken() -> None:
    relay = TypedRelay(DONE)
    relay.feed(event("speech.audio.delta", audio="AAAA"))
    with pytest.raises(BackendError):
        relay.finish()


def test_an_error_is_told() -> None:
    relay = TypedRelay(DONE)
    with pytest.raises(BackendError):
        relay.feed(event("error", error={"message": "no", "code": "server_error"}))


def test_sound_in_events_counts_as_a_file_of_it_does() -> None:
    """Red before: 300 KB of it were believed to be one token."""
    relay = TypedRelay(DONE, sound_bytes_per_s=8_000)
    for _ in range(2):
        relay.feed(event("speech.audio.delta", audio="A" * 16_000))
    assert relay.said_bytes == pytest.approx(3 * 25 * 4, abs=4)  # three seconds
    silent = TypedRelay(DONE)
    silent.feed(event("speech.audio.delta", audio="A" * 16_000))
    assert silent.said_bytes == 0
