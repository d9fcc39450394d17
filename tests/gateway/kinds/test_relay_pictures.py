"""Events of several MiB: models that answer with pictures send each in one delta."""

import json

import pytest

from backends.errors import InvalidResponse, UpstreamBroken
from backends.sse import EVENT_LIMIT_BYTES
from gateway.kinds.engine_relay import EventRelay
from gateway.kinds.relay import ByteRelay
from gateway.kinds.stream_usage import USAGE_LIMIT_BYTES

MIB = 1024 * 1024
SEGMENT = 16 * 1024  # what is read at once
DONE = b"data: [DONE]\n\n"
COUNTS = '"usage":{"prompt_tokens":7,"completion_tokens":1290,"total_tokens":1297}'
RUNNING = '"usage":{"prompt_tokens":7,"completion_tokens":1}'


def picture(size: int) -> str:
    url = "data:image/png;base64," + "iVBORw0KGgo+"[: size % 12 or 12] + "A/+z" * (size // 4)
    part = {"type": "image_url", "image_url": {"url": url}, "index": 0}
    return json.dumps([part], separators=(",", ":"))


def event(delta: str, finish: str | None = None, tail: str = "") -> bytes:
    choice = f'{{"index":0,"delta":{delta},"finish_reason":{json.dumps(finish)}}}'
    return f'data: {{"id":"a","choices":[{choice}]{tail}}}\n\n'.encode()


USAGE = f'data: {{"id":"a","choices":[],{COUNTS}}}\n\n'.encode()


def fed(relay: ByteRelay, raw: bytes) -> bytes:
    """As segments come from a socket."""
    return b"".join(relay.feed(raw[at : at + SEGMENT]) for at in range(0, len(raw), SEGMENT))


@pytest.mark.parametrize("kind", [ByteRelay, EventRelay])
@pytest.mark.parametrize(
    "delta",
    [
        '{"role":"assistant","content":"","images":@}',
        '{"content":@}',
        '{"content":null,"images":@}',
    ],
)
def test_a_picture_in_one_delta_is_relayed_and_its_usage_known(kind, delta) -> None:
    shown = event('{"content":"here"}') + event(delta.replace("@", picture(8 * MIB)))
    relay = kind(True)
    assert fed(relay, shown + event("{}", "stop") + USAGE + DONE) == shown
    assert relay.usage == json.loads(f"{{{COUNTS}}}")["usage"]
    assert relay.usage_final
    assert relay.content_events == 2
    assert relay.said_bytes <= len("here") + 1
    assert relay.finish() == event("{}", "stop") + DONE


@pytest.mark.parametrize("kind", [ByteRelay, EventRelay])
def test_a_picture_in_the_event_that_ends_the_answer_waits_for_the_books(kind) -> None:
    last = event('{"images":@}'.replace("@", picture(6 * MIB)), "stop")
    relay = kind(False)
    assert fed(relay, last + USAGE + DONE) == b""
    relay.check_end()
    assert relay.finish() == last + USAGE + DONE


@pytest.mark.parametrize("size", [100, 5 * MIB])
def test_running_usage_is_cut_out_beside_a_picture(size) -> None:
    delta = '{"content":"a","images":@}'.replace("@", picture(size))
    relay = EventRelay(True)
    raw = event(delta, tail="," + RUNNING) * 2 + event('{"content":"b"}', tail="," + RUNNING)
    assert fed(relay, raw) == event(delta) * 2 + event('{"content":"b"}')
    assert relay.counts == (7, 1)


def test_what_is_kept_of_a_stream_is_small_beside_its_pictures() -> None:
    relay = EventRelay(True)
    fed(relay, event('{"content":"a","images":@}'.replace("@", picture(MIB)), tail="," + RUNNING))
    assert relay._like is None
    assert len(relay._splitter.rest) == 0


@pytest.mark.parametrize("kind", [ByteRelay, EventRelay])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_pictures_in_other_framing(kind, end) -> None:
    said = event('{"images":@}'.replace("@", picture(3 * MIB))).decode().replace("\n", end)
    lines = f": waiting{end}{end}event: message{end}{said}"
    relay = kind(True)
    assert fed(relay, lines.encode()) == lines.encode()
    assert relay.content_events == 1


@pytest.mark.parametrize("kind", [ByteRelay, EventRelay])
def test_an_event_without_an_end_is_given_up_at_the_limit(kind) -> None:
    relay, segment = kind(True), b"x" * MIB
    relay.feed(b"data: ")
    for _ in range(EVENT_LIMIT_BYTES // MIB - 1):
        relay.feed(segment)
    with pytest.raises(UpstreamBroken):
        relay.feed(segment)
    assert len(relay._splitter.rest) <= EVENT_LIMIT_BYTES + MIB


@pytest.mark.parametrize("running", [False, True])
def test_usage_that_no_counter_can_have_written_is_not_kept(running) -> None:
    usage = f'"usage":{{"note":"{"x" * USAGE_LIMIT_BYTES}","prompt_tokens":7}}'
    last = f'data: {{"choices":[],{usage}}}\n\n'.encode()
    raw = event('{"content":"a"}', tail="," + usage) if running else last
    with pytest.raises(InvalidResponse):
        fed(EventRelay(True), raw)


SHOWING = [
    '{"content":"","images":[{"type":"image_url","image_url":{"url":"https://e/a.png"}}]}',
    '{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}',
    '{"content":[{"type":"text","text":"x"}],"images":[{"index":0}]}',
    '{"content":"![a](data:image/png;base64,AAAA)"}'.replace("AAAA", "AAAA" * 100),
]


@pytest.mark.parametrize("delta", SHOWING)
def test_a_picture_has_tokens_that_no_text_tells(delta) -> None:
    relay = ByteRelay(True)
    relay.feed(event(delta))
    assert (relay.shown, relay.content_events) == (True, 1)
    assert relay.said_bytes < 100


@pytest.mark.parametrize(
    "delta", ['{"content":"images"}', '{"images":[]}', '{"images":null}', '{"content":[]}']
)
def test_what_shows_nothing(delta) -> None:
    relay = ByteRelay(True)
    relay.feed(event(delta))
    assert not relay.shown
