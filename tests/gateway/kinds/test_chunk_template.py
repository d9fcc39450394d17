"""Chunks that are alike are taken as they would be read, and no others are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.errors import BackendError
from gateway.kinds import relay as relays
from gateway.kinds.chunk_template import LIMIT_BYTES, TemplateMatch, likeness_of
from gateway.kinds.engine_relay import EventRelay
from gateway.kinds.relay import ByteRelay

HEAD = 'data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":'
USAGE = '{"prompt_tokens":9,"total_tokens":12,"completion_tokens":3}'


def chunk(delta: str, *, finish: str = "null", usage: str = USAGE, tail: str = "") -> bytes:
    rest = f',"logprobs":null,"finish_reason":{finish}}}],"usage":{usage}{tail}}}\n\n'
    return f"{HEAD}{delta}{rest}".encode()


def said(text: str) -> bytes:
    return chunk(f'{{"content":{json.dumps(text, ensure_ascii=False)}}}')


class ReadInFull(EventRelay):
    """The control: the same without the short way."""

    feed = ByteRelay.feed
    _event = ByteRelay._event


def batched(events: list[bytes], size: int) -> list[list[bytes]]:
    return [events[start : start + size] for start in range(0, len(events), size)]


def state(relay: EventRelay) -> tuple:
    return (
        relay.usage, relay.counts, relay.said_bytes, relay.content_events, relay.first_content,
        relay.finish_reason, relay.is_ended, relay.tier,
    )  # fmt: skip


def test_a_piece_of_text_is_taken_without_its_usage() -> None:
    read = TemplateMatch(
        5, USAGE.encode(), said("first").replace(b',"usage":' + USAGE.encode(), b"")
    )
    like = likeness_of(said("first"), read)
    assert like is not None
    taken = like.match_event(said("and more"))
    assert taken.said_bytes == 8
    assert taken.event == said("and more").replace(b',"usage":' + USAGE.encode(), b"")


ODD = {
    "an escape": said('a"b'),
    "another alphabet": said("é"),
    "no text": said(""),
    "a control character": said("x").replace(b"x", b"\t"),
    "its end": chunk('{"content":"x"}', finish='"stop"'),
    "another member": chunk('{"content":"x","refusal":"y"}'),
    "usage that is not a count": chunk('{"content":"x"}', usage='{"prompt_tokens":9.5}'),
    "a number that is none": chunk('{"content":"x"}', usage='{"prompt_tokens":007}'),
    "a member behind the usage": chunk('{"content":"x"}', tail=',"more":1'),
    "two events": said("x") + said("y"),
    "half an event": said("x")[:-1],
    "an error": b'data: {"error":{"message":"x"}}\n\n',
    "the end": b"data: [DONE]\n\n",
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_whatever_differs_is_read_in_full(odd: bytes) -> None:
    read = TemplateMatch(
        5, USAGE.encode(), said("first").replace(b',"usage":' + USAGE.encode(), b"")
    )
    like = likeness_of(said("first"), read)
    assert like.match_event(odd) is None


def test_nothing_is_learned_from_what_says_more_than_its_text() -> None:
    both = chunk('{"content":"x","reasoning":"why"}')
    shown = both.replace(b',"usage":' + USAGE.encode(), b"")
    assert likeness_of(both, TemplateMatch(4, USAGE.encode(), shown)) is None
    assert likeness_of(both, TemplateMatch(1, USAGE.encode(), shown)) is not None


pieces = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=12).map(said),
    st.text(alphabet="abc ", min_size=1, max_size=12).map(said),
    st.sampled_from([*ODD.values(), chunk('{"role":"assistant","content":""}')]),
)


@given(st.lists(pieces, max_size=12), st.integers(0, 40), st.integers(1, 4))
def test_a_stream_is_relayed_and_counted_as_if_all_were_read(
    events: list[bytes], cut: int, joined: int
) -> None:
    """Also where a segment ends within an event, or has several."""
    short, full = EventRelay(True), ReadInFull(True)
    for part in batched([said("begin"), *events], joined):
        event = b"".join(part)
        for segment in (event[:cut], event[cut:]) if len(event) % 3 == 0 else (event,):
            outcomes = []
            for relay in (short, full):
                try:
                    outcomes.append(relay.feed(segment))
                except BackendError as error:
                    outcomes.append((type(error), str(error)))
            assert outcomes[0] == outcomes[1]
            assert state(short) == state(full)


def test_what_is_long_around_its_text_is_not_kept() -> None:
    said = chunk('{"content":"a","more":"%s"}' % ("x" * LIMIT_BYTES))
    shown = said.replace(b',"usage":' + USAGE.encode(), b"")
    assert likeness_of(said, TemplateMatch(1, USAGE.encode(), shown)) is None


def test_most_of_a_stream_takes_the_short_way(monkeypatch) -> None:
    read = []
    feed = ByteRelay.feed

    def reading(relay, segment):
        read.append(segment)
        return feed(relay, segment)

    monkeypatch.setattr(ByteRelay, "feed", reading)
    relay = EventRelay(True)
    for place in range(50):
        relay.feed(said(f"word {place}"))
    assert len(read) == 1
    assert relay.content_events == 50


def test_several_in_one_segment_take_it_too(monkeypatch) -> None:
    """A gateway that is late finds several: reading them in full would make it later still."""
    read = []
    in_full = relays.read_chunk

    def reading(payload):
        read.append(payload)
        return in_full(payload)

    monkeypatch.setattr(relays, "read_chunk", reading)
    relay = EventRelay(True)
    relay.feed(said("first"))
    out = relay.feed(b"".join(said(f"word {place}") for place in range(50)))
    assert len(read) == 1
    assert (relay.content_events, out.count(b"\n\n"), out.count(b"usage")) == (51, 50, 0)
