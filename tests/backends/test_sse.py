import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backends.errors import UpstreamBroken
from backends.sse import EventSplitter, cut_usage, data_spans, is_simple, join_data, usage_members

ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
TEXT = st.text(max_size=12).filter(lambda text: "\n" not in text and "\r" not in text)


@st.composite
def streams(draw) -> tuple[bytes, list[bytes]]:
    """A stream of any legal looks, and the data its events carry."""
    raw, events = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])), []
    for _ in range(draw(st.integers(0, 6))):
        end = draw(ENDS)
        lines, data = [], []
        for _ in range(draw(st.integers(1, 4))):
            value = draw(TEXT).encode()
            form = draw(st.sampled_from(["data: ", "data:", ":", "event: ", "id:"]))
            lines.append(form.encode() + value)
            if form == "data: ":
                data.append(value)
            elif form == "data:":
                data.append(value.removeprefix(b" "))
        raw += end.join(lines) + end + end
        if data:
            events.append(b"\n".join(data))
    return raw, events


def split_at(raw: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(raw) + 1) for cut in cuts} | {0, len(raw)})
    return [raw[a:b] for a, b in pairwise(places)]


def play(pieces: list[bytes]) -> tuple[bytes, list[bytes]]:
    splitter = EventSplitter()
    raw = [event for piece in pieces for event in splitter.feed(piece)]
    data = [join_data(event, spans) for event in raw if (spans := data_spans(event))]
    return b"".join(raw) + bytes(splitter.rest), data


@given(streams(), st.lists(st.integers(0, 10_000), max_size=12))
@example((b"data: a\r\ndata: b\r\n\r\n", [b"a\nb"]), [8])  # between CR and LF
@example((b"data: a\r\rdata: b\n\n", [b"a", b"b"]), [])
def test_any_split_gives_the_same_bytes_and_events(stream, cuts):
    raw, events = stream
    assert play(split_at(raw, cuts)) == (raw, events)
    assert play([raw[at : at + 1] for at in range(len(raw))]) == (raw, events)


def test_an_unfinished_event_is_kept_back():
    splitter = EventSplitter()
    assert splitter.feed(b"data: a\n\ndata: b\n") == [b"data: a\n\n"]
    assert bytes(splitter.rest) == b"data: b\n"


@pytest.mark.parametrize("piece", [b"x" * 101, b"data: " + b"x" * 200 + b"\n\n"])
def test_an_event_has_a_size_limit(piece):
    with pytest.raises(UpstreamBroken):
        EventSplitter(limit_bytes=100).feed(piece)
    splitter = EventSplitter(limit_bytes=100)
    assert splitter.feed(b"data: good\n\n" + piece) == [b"data: good\n\n"]
    with pytest.raises(UpstreamBroken):
        splitter.feed(b"data: too late\n\n")


def test_the_size_limit_counts_over_segments():
    splitter = EventSplitter(limit_bytes=100)
    assert splitter.feed(b"x" * 60) == []
    with pytest.raises(UpstreamBroken):
        splitter.feed(b"x" * 60)


def test_many_small_events_are_no_large_one():
    splitter = EventSplitter(limit_bytes=100)
    assert len(splitter.feed(b"data: 0123456789\n\n" * 50)) == 50


@pytest.mark.parametrize(
    ("event", "simple"),
    [
        (b"data: {}\n\n", True),
        (b"data: {}\r\n\r\n", False),
        (b"data: {}\rdata: x\n\n", False),
        (b"data: {}\n", False),
        (b"data:{}\n\n", False),
        (b"data: a\ndata: b\n\n", False),
        (b": x\n\n", False),
        (b"", False),
        (b"data: \n", False),
    ],
)
def test_simple_events(event, simple):
    assert is_simple(event) is simple


@pytest.mark.parametrize("event", [b"<html>\n\n", b"HTTP/1.1 200\n\n", b'{"a":1}\n\n'])
def test_lines_that_are_no_fields(event):
    assert data_spans(event) is None


@pytest.mark.parametrize(
    "event", [b"x-trace: 1\ndata: {}\n\n", b"data: {}\r\nx\r\n\r\n", b"\xc3\xa9:\ndata:{}\n\n"]
)
def test_fields_that_the_standard_does_not_know_are_ignored_beside_data(event):
    """WHATWG HTML, 9.2.6: a provider's own were the end of its answer."""
    assert join_data(event, data_spans(event)) == b"{}"


MEMBER = b'"usage":{"prompt_tokens":1,"completion_tokens_details":{"usage":2}}'
VALUE = MEMBER[8:]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"a":1,%s}', b'{"a":1}'),
        (b'{%s,"a":1}', b'{"a":1}'),
        (b"{%s}", b"{}"),
        (b'{"a":1,%s,"b":2}', b'{"a":1,"b":2}'),
        (b'{"a":"\\"usage\\":{}",%s}', b'{"a":"\\"usage\\":{}"}'),
        (b'{"a":",\\"usage\\":' + VALUE.replace(b'"', b'\\"') + b'",%s}',
         b'{"a":",\\"usage\\":' + VALUE.replace(b'"', b'\\"') + b'"}'),
        (b'{"a":{"b":1,' + MEMBER + b"},%s}", b'{"a":{"b":1,' + MEMBER + b"}}"),
        (b'{%s,"a":{"b":1,' + MEMBER + b"}}", b'{"a":{"b":1,' + MEMBER + b"}}"),
        (b'{"a":[{"b":1,' + MEMBER + b'}],%s,"c":"usage"}',
         b'{"a":[{"b":1,' + MEMBER + b'}],"c":"usage"}'),
        (b'{"a":"usage",%s}', b'{"a":"usage"}'),
        (b'{"a":"\\\\",%s,"b":"}"}', b'{"a":"\\\\","b":"}"}'),
        (b'{%s,%s,"a":1}', b'{"a":1}'),
        (b'{"a":1,%s,%s}', b'{"a":1}'),
    ],
)  # fmt: skip
def test_the_top_level_member_is_cut_and_nothing_else(before, after):
    raw = b"data: " + before.replace(b"%s", MEMBER) + b"\n\n"
    assert cut_usage(raw, VALUE) == b"data: " + after + b"\n\n"


@pytest.mark.parametrize(
    ("payload", "after"),
    [
        (b'{ "a" : 1 , "usage" : {"x": [1, 2]} , "b" : 2 }', b'{ "a" : 1  , "b" : 2 }'),
        (b'{ "usage" : {} , "b" : 2 }', b'{  "b" : 2 }'),
        (b'{"a":1,"usage":null}', b'{"a":1}'),
        (b'{"a":1}', b'{"a":1}'),
    ],
)
def test_spaces_around_the_member(payload, after):
    spans = usage_members(payload)
    for start, end in reversed(spans):
        payload = payload[:start] + payload[end:]
    assert payload == after


def test_a_member_over_several_data_lines_keeps_the_lines():
    event = b'data: {"a":1,\r\ndata: "usage":\r\ndata: {"x":1},\r\ndata: "b":2}\r\n\r\n'
    cut = cut_usage(event, b'{"x":1}')
    assert json.loads(join_data(cut, data_spans(cut))) == {"a": 1, "b": 2}
    assert cut.count(b"data: ") == 4


JSON = st.recursive(
    st.none() | st.integers(-9, 9) | st.sampled_from(["usage", '"usage":{', "}", "é\\"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["usage", "a", "b", ",", '"']), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(["usage", "a", "choices", 'x"', "u"]), JSON, min_size=1),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\t")]),
    st.booleans(),
)
def test_cutting_equals_removing_the_key(value, separators, ascii_only):
    text = json.dumps(value, separators=separators, ensure_ascii=ascii_only)
    if "usage" not in value:
        assert usage_members(text.encode()) == []
        return
    raw = f"data: {text}\n\n".encode()
    encoded = json.dumps(value["usage"], separators=separators, ensure_ascii=ascii_only)
    cut = cut_usage(raw, encoded.encode())
    assert json.loads(cut[6:]) == {key: value[key] for key in value if key != "usage"}


class CountingBuffer(bytearray):
    """Counts the bytes that are searched."""

    searched = 0

    def find(self, what: bytes, start: int = 0) -> int:  # type: ignore[override]  # as it is called
        self.searched += len(self) - start
        return super().find(what, start)


def test_an_event_in_many_segments_is_searched_once():
    """Each further segment cost as much as all before it, else: 8 MiB came to 2 GiB."""
    splitter, event = EventSplitter(), b"data: " + b"x" * 2**23 + b"\n\n"
    splitter.rest = rest = CountingBuffer()
    pieces = [event[at : at + 16384] for at in range(0, len(event), 16384)]
    assert [item for piece in pieces for item in splitter.feed(piece)] == [event]
    assert 0.9 * len(event) <= rest.searched <= 1.01 * len(event)
