import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backends.errors import (
    BackendError,
    InvalidResponse,
    RequestDeclined,
    StreamError,
    UpstreamBroken,
    UpstreamOverloaded,
    UpstreamRejected,
)
from backends.sse import EVENT_LIMIT_BYTES
from gateway.kinds import relay as relay_module
from gateway.kinds.engine_relay import EventRelay
from gateway.kinds.relay import ByteRelay, parse_answer

DONE = b"data: [DONE]\n\n"
PREFIX = '{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":['


def event(delta: str, *, finish: str | None = None, index: int = 0, tail: str = "") -> bytes:
    end = json.dumps(finish)
    return (
        f'data: {PREFIX}{{"index":{index},"delta":{delta},"finish_reason":{end}}}]{tail}}}\n\n'
    ).encode()


def usage(prompt: int, output: int, more: str = "") -> str:
    return (
        f',"usage":{{"prompt_tokens":{prompt},"total_tokens":{prompt + output},'
        f'"completion_tokens":{output}{more}}}'
    )


def said(text: str) -> str:
    return json.dumps({"content": text}, ensure_ascii=False, separators=(",", ":"))


ROLE = '{"role":"assistant","content":""}'
FINAL = f"data: {PREFIX}]{usage(9, 3, chr(44) + chr(34) + 'x' + chr(34) + ':{}')}}}\n\n".encode()


def engine_stream() -> list[bytes]:
    """What vLLM sends when running usage is asked for."""
    return [
        event(ROLE, tail=usage(9, 0) + ',"prompt_token_ids":null'),
        event(said("é"), tail=usage(9, 1)),
        event(said(' "usage":{'), tail=usage(9, 2)),
        event(said("!"), finish="stop", tail=usage(9, 3)),
        FINAL,
        DONE,
    ]


def plain_stream() -> list[bytes]:
    """The same answer to a client that asked for nothing."""
    return [
        event(ROLE, tail=',"prompt_token_ids":null'),
        event(said("é")),
        event(said(' "usage":{')),
        event(said("!"), finish="stop"),
        DONE,
    ]


def test_an_engine_stream_looks_as_if_nobody_had_asked_for_usage():
    relay, out = EventRelay(True), []
    out = [relay.feed(piece) for piece in engine_stream()]
    assert out[:3] == plain_stream()[:3]
    assert out[3:] == [b"", b"", b""]
    assert relay.finish() == b"".join(plain_stream()[3:])
    assert relay.usage == {
        "prompt_tokens": 9, "total_tokens": 12, "completion_tokens": 3, "x": {},
    }  # fmt: skip
    assert (relay.usage_final, relay.finish_reason, relay.complete) == (True, "stop", True)
    assert (relay.first_content, relay.content_events) == (True, 3)


def test_the_final_usage_stays_for_a_client_that_asked():
    relay = EventRelay(False)
    sent = b"".join(map(relay.feed, engine_stream())) + relay.finish()
    assert sent == b"".join([*plain_stream()[:4], FINAL, DONE])


def test_running_usage_stays_for_a_client_that_asked_for_it():
    relay = EventRelay(False, keep_running=True)
    sent = b"".join(map(relay.feed, engine_stream())) + relay.finish()
    assert sent == b"".join(engine_stream())


def test_usage_so_far_is_known_when_a_client_leaves():
    relay = EventRelay(True)
    for piece in engine_stream()[:3]:
        relay.feed(piece)
    assert (relay.usage["completion_tokens"], relay.usage_final) == (2, False)
    assert not relay.is_ended


@pytest.mark.parametrize("kind", [EventRelay, ByteRelay])
def test_one_segment_with_everything_lets_only_content_go(kind):
    relay = kind(True)
    out = relay.feed(b"".join(engine_stream()))
    assert b"!" not in out
    assert b"DONE" not in out
    assert out.count(b"data:") == 3
    assert relay.finish().endswith(b"[DONE]\n\n")


@pytest.mark.parametrize("kind", [EventRelay, ByteRelay])
@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ('{"prompt_tokens":9,"completion_tokens":3}', (9, 3)),
        ('{"prompt_tokens":9,"completion_tokens":0}', (9, 0)),
        ('{"prompt_tokens":9}', None),
        ('{"prompt_tokens":null,"completion_tokens":3}', None),
        ("null", None),
    ],
)
def test_what_a_target_counts_so_far_is_both_counts_or_none(kind, told, counts):
    """A sequence's place in an engine is made of both."""
    relay = kind(True)
    relay.feed(b'data: {"choices":[],"usage":%b}\n\n' % told.encode())
    assert relay.counts == counts


@pytest.mark.parametrize(
    ("choices", "events", "read"),
    [
        (1, [{}] * 4, 1),  # the first says what the others are like
        (1, [{}, {"finish": "stop"}], 2),
        (2, [{}] * 4, 4),
        (1, [{"index": 1}] * 2, 2),
    ],
)
def test_chunks_like_the_last_one_are_not_read_again(monkeypatch, choices, events, read):
    """Of one choice alone: others' words would be taken for its own."""
    looks = []
    known = relay_module.read_chunk
    monkeypatch.setattr(relay_module, "read_chunk", lambda said: looks.append(said) or known(said))
    relay = EventRelay(True, choices=choices)
    for number, more in enumerate(events, 1):
        relay.feed(event(said("a"), tail=usage(9, number), **more))
        assert (relay.content_events, relay.said_bytes) == (number, number)
    assert len(looks) == read


def test_half_of_the_ending_does_not_leak():
    relay = ByteRelay(True)
    ending = event(said("!"), finish="stop")
    assert relay.feed(event(said("a")) + ending[:40]) == event(said("a"))
    assert relay.feed(ending[40:]) == b""


def test_an_api_stream_goes_on_untouched_but_for_the_chunk_nobody_asked_for():
    stream = [
        b": OPENROUTER PROCESSING\n\n",
        event(ROLE, tail=',"usage":null'),
        event(said("a"), tail=',"usage":null'),
        event("{}", finish="stop", tail=',"usage":null'),
        FINAL,
        DONE,
    ]
    relay = ByteRelay(True)
    out = [relay.feed(piece) for piece in stream]
    assert out == [*stream[:3], b"", b"", b""]
    assert relay.finish() == stream[3] + DONE
    assert (relay.usage["completion_tokens"], relay.usage_final) == (3, True)
    shown = ByteRelay(False)
    assert b"".join(map(shown.feed, stream)) + shown.finish() == b"".join(stream)


def test_usage_beside_the_finish_is_final_and_hidden_like_its_chunk():
    plain, told = event("{}", finish="stop"), event("{}", finish="stop", tail=usage(5, 6))
    for hide, shown in ((True, plain), (False, told)):
        relay = ByteRelay(hide)
        sent = b"".join(map(relay.feed, [event(said("a")), told, DONE]))
        assert sent + relay.finish() == event(said("a")) + shown + DONE
        assert (relay.usage_final, relay.usage["completion_tokens"]) == (True, 6)


def test_an_api_that_reports_usage_all_along_is_not_bunched():
    relay = ByteRelay(True)
    piece = event(said("a"), tail=usage(5, 1))
    assert relay.feed(piece) == event(said("a"))
    assert ByteRelay(False).feed(piece) == piece
    assert (relay.usage["completion_tokens"], relay.usage_final) == (1, False)


def test_tool_calls_leave_delta_by_delta():
    relay = EventRelay(True)
    for number in range(5):
        call = f'{{"tool_calls":[{{"index":0,"function":{{"arguments":"{number}"}}}}]}}'
        assert relay.feed(event(call, tail=usage(9, number))) == event(call)
    assert relay.content_events == 5


def test_with_several_choices_only_the_last_finish_waits():
    relay = EventRelay(True, choices=2, n=2)
    steps = [
        event(said("a"), tail=usage(9, 1)),
        event(said("b"), index=1, tail=usage(9, 1)),
        event(said("c"), finish="stop", tail=usage(9, 2)),
        event(said("d"), index=1, tail=usage(9, 2)),
    ]
    assert all(relay.feed(step) for step in steps)
    assert relay.usage == {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    assert not relay.is_ended
    assert relay.feed(event(said("e"), index=1, finish="length", tail=usage(9, 3))) == b""
    assert relay.is_ended
    assert relay.usage["completion_tokens"] == 5


def test_what_follows_done_is_dropped():
    relay = ByteRelay(False)
    relay.feed(event(said("a"), finish="stop") + DONE + event(said("evil")))
    assert relay.feed(event(said("evil"))) == b""
    assert b"evil" not in relay.finish()


@pytest.mark.parametrize("streams", [plain_stream()[:3], [], [b": hello\n\n"]])
def test_an_end_without_an_ending_is_an_error(streams):
    relay = EventRelay(True)
    for piece in streams:
        relay.feed(piece)
    with pytest.raises((UpstreamBroken, InvalidResponse)):
        relay.check_end()
    with pytest.raises((UpstreamBroken, InvalidResponse)):
        relay.finish()


@pytest.mark.parametrize("kind", [ByteRelay, EventRelay])
def test_an_end_after_the_finish_is_none_and_gets_its_last_word(kind):
    relay, ending = kind(True), event(said("a"), finish="stop")
    assert relay.feed(ending) == b""
    relay.check_end()
    assert relay.is_ended
    assert not relay.complete
    assert relay.finish() == ending + DONE


GARBAGE = {
    "html": b"<html><body>\n\n502 Bad Gateway\n\n",
    "bad json": b'data: {"choices":[\n\n',
    "a bare value": b"data: 17\n\n",
    "invalid UTF-8": b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
    "an endless line": b"data: " + b"x" * EVENT_LIMIT_BYTES,
    "nested without end": b'data: {"choices":' + b"[" * 250_000 + b"]" * 250_000 + b"}\n\n",
}


@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.parametrize("kind", [EventRelay, ByteRelay])
def test_garbage_breaks_the_stream_but_not_what_came_before(kind, name):
    with pytest.raises((InvalidResponse, UpstreamBroken)):
        kind(True).feed(GARBAGE[name])
    late = kind(True)
    good = event(said("a"))
    assert late.feed(good) == good
    with pytest.raises(UpstreamBroken):
        late.feed(GARBAGE[name])
    together = kind(True)
    assert together.feed(good + GARBAGE[name]) == good
    for call in (together.check_end, together.finish, lambda: together.feed(DONE)):
        with pytest.raises(UpstreamBroken):
            call()


@pytest.mark.parametrize("value", [b"-1", b"1e300", b'"7"', b"null", b"[1]"])
def test_odd_usage_is_passed_to_the_ledger_as_it_is(value):
    relay = ByteRelay(True)
    relay.feed(b'data: {"choices":[],"usage":{"prompt_tokens":' + value + b"}}\n\n" + DONE)
    assert relay.usage == {"prompt_tokens": json.loads(value)}


def test_the_last_usage_of_several_counts():
    relay = ByteRelay(True)
    relay.feed(FINAL + FINAL.replace(b'_tokens":3', b'_tokens":4') + DONE)
    assert relay.usage["completion_tokens"] == 4


def test_usage_before_the_words_holds_nothing_back() -> None:
    """A first chunk without choices: what it says is of the beginning."""
    relay = ByteRelay(hide_usage=True)
    first = f"data: {PREFIX}]{usage(9, 1)}}}\n\n".encode()
    assert relay.feed(first) == b""
    words = [event(said("a")), event(said("b"))]
    assert b"".join(map(relay.feed, words)) == b"".join(words)
    assert (relay.usage["completion_tokens"], relay.usage_final) == (1, False)
    assert relay.feed(event("{}", finish="stop")) == b""
    assert relay.feed(FINAL) == b""
    assert (relay.usage["completion_tokens"], relay.usage_final) == (3, True)
    assert [earlier["completion_tokens"] for earlier in relay.earlier_usage] == [1]


def test_usage_without_a_finish_is_the_last_where_no_word_follows() -> None:
    relay = ByteRelay(hide_usage=False)
    relay.feed(event(said("a")))
    relay.feed(FINAL)
    assert relay.usage_final
    relay.feed(DONE)
    assert relay.finish() == DONE
    assert relay.usage_final


def test_figures_that_were_taken_back_are_kept_and_bounded() -> None:
    relay = ByteRelay(hide_usage=False)
    relay.feed(event(said("a"), finish="stop"))
    for output in (300, 1, 1, 2, 3, 4):
        relay.feed(f"data: {PREFIX}]{usage(9, output)}}}\n\n".encode())
    assert relay.usage["completion_tokens"] == 4
    assert [earlier["completion_tokens"] for earlier in relay.earlier_usage] == [300, 2, 3]


@pytest.mark.parametrize(
    ("figures", "kept"),
    [
        ([(9, n, 0) for n in range(1, 20)], [(9, 16, 0), (9, 17, 0), (9, 18, 0)]),  # they grow
        ([(9, 95, 0), *((9, n, 0) for n in range(21, 25))], [(9, 95, 0), (9, 22, 0), (9, 23, 0)]),
        ([(9, 1, 2), *((9, n, 0) for n in range(2, 9))], [(9, 1, 2), (9, 6, 0), (9, 7, 0)]),
    ],
)
def test_a_figure_that_has_the_most_of_anything_is_kept(figures, kept) -> None:
    """Red before: four low figures pushed a high one out."""
    relay = ByteRelay(hide_usage=False)
    relay.feed(event(said("a"), finish="stop"))
    for prompt, output, searches in figures:
        told = {"prompt_tokens": prompt, "completion_tokens": output, "searches": [searches]}
        relay.feed(f'data: {PREFIX}],"usage":{json.dumps(told)}}}\n\n'.encode())
    assert [
        (told["prompt_tokens"], told["completion_tokens"], *told["searches"])
        for told in relay.earlier_usage
    ] == kept


def test_figures_none_of_which_has_all_of_another_are_bounded() -> None:
    relay = ByteRelay(hide_usage=False)
    relay.feed(event(said("a"), finish="stop"))
    for number in range(100):
        relay.feed(f"data: {PREFIX}]{usage(100 + number, 500 - number)}}}\n\n".encode())
    assert len(relay.earlier_usage) <= 8


def test_an_error_before_any_word_leaves_no_usage_behind() -> None:
    """Neither the last figure nor the one before it: nothing was worked on."""
    relay = ByteRelay(hide_usage=True)
    for prompt in (9, 10):
        relay.feed(f"data: {PREFIX}]{usage(prompt, 0)}}}\n\n".encode())
    assert len(relay.earlier_usage) == 1, "the control"
    with pytest.raises(BackendError):
        relay.feed(b'data: {"error":{"code":429,"message":"later"}}\n\n')
    assert (relay.usage, relay.earlier_usage) == (None, ())


def test_usage_inside_a_choice_is_read_and_left_there() -> None:
    relay = ByteRelay(hide_usage=True)
    counted = '"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}'
    last = f'data: {PREFIX}{{"index":0,"delta":{{}},"finish_reason":"stop",{counted}}}]}}\n\n'
    relay.feed(event(said("a")))
    relay.feed(last.encode())
    relay.feed(DONE)
    assert (relay.usage["completion_tokens"], relay.usage_final) == (3, True)
    assert counted.encode() in relay.finish()


@pytest.mark.parametrize("name", ["thinking", "reasoning_text", "audio_transcript"])
def test_words_in_members_without_a_name_are_counted(name: str) -> None:
    relay = ByteRelay(hide_usage=True)
    relay.feed(event(json.dumps({"role": "assistant", "id": "x" * 50})))
    assert relay.content_events == 0, "the control: these are no words"
    relay.feed(event(json.dumps({name: "nine byte"})))
    assert (relay.content_events, relay.said_bytes, relay.first_content) == (1, 9, True)


def test_an_error_event_is_translated():
    error = b'data: {"error":{"message":"secret prompt","code":"overloaded"}}\n\n'
    relay = EventRelay(True)
    with pytest.raises(UpstreamOverloaded, match="overloaded") as caught:
        relay.feed(error + DONE)
    assert "secret" not in str(caught.value)
    late = EventRelay(True)
    assert late.feed(event(said("a")) + error + DONE) == event(said("a"))
    with pytest.raises(UpstreamBroken):
        late.check_end()


def test_an_ending_that_never_ends_is_bounded():
    relay = ByteRelay(True)
    relay.feed(event(said("a"), finish="stop"))
    with pytest.raises(UpstreamBroken):
        relay.feed(event(said("x" * 60_000)) * 100)


def test_exactly_as_much_as_may_be_withheld_is_withheld(monkeypatch):
    more = event(said("x"))
    monkeypatch.setattr(relay_module, "WITHHELD_LIMIT_BYTES", 2 * len(more))
    relay = ByteRelay(True)
    relay.feed(event(said("a"), finish="stop"))
    relay.feed(more * 2)
    with pytest.raises(UpstreamBroken):
        relay.feed(b": one byte more\n\n" + more)


def test_the_last_tier_that_a_stream_names_is_kept():
    relay = ByteRelay(hide_usage=False)
    relay.feed(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
    assert relay.tier is None
    for tier in (b'"auto"', b'"priority"', b"null"):
        relay.feed(b'data: {"choices":[],"service_tier":' + tier + b"}\n\n")
    assert relay.tier == "priority"


def test_the_words_of_a_stream_are_bounded_and_printable():
    relay = ByteRelay(hide_usage=False)
    relay.feed(b'data: {"choices":[{"index":0,"finish_reason":"a\\u0000b"}]}\n\n')
    relay.feed(b'data: {"choices":[],"service_tier":"' + b"x" * 70_000 + b'"}\n\n')
    assert (relay.finish_reason, relay.tier) == ("a?b", "x" * 64)


def test_a_whole_answer_is_read_without_a_change():
    body = b'{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}'
    assert parse_answer(body) == ({"prompt_tokens": 3}, "stop", None)


TEXTS = st.lists(st.text(min_size=1, max_size=8) | st.just('"usage":{"x":1}'), max_size=6)


@given(TEXTS, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(0, 9999), max_size=9))
@example([], b"\r\n", [384])  # between the CR and the LF that end the hidden usage event
def test_any_split_relays_the_same_bytes(texts, end, cuts):
    shown, wired = [b": comment\n\n"], [b": comment\n\n"]
    for number, text in enumerate(texts):
        shown.append(event(said(text)))
        wired.append(event(said(text), tail=usage(9, number)))
    shown += [event("{}", finish="stop"), DONE]
    wired += [event("{}", finish="stop", tail=usage(9, 9)), FINAL, DONE]
    raw = b"".join(wired).replace(b"\n", end)
    places = sorted({cut % (len(raw) + 1) for cut in cuts} | {0, len(raw)})
    relay = EventRelay(True)
    early = b"".join(relay.feed(raw[a:b]) for a, b in pairwise(places))
    assert early == b"".join(shown[:-2]).replace(b"\n", end)
    assert early + relay.finish() == b"".join(shown).replace(b"\n", end)
    assert (relay.content_events, relay.usage["completion_tokens"]) == (len(texts), 3)


@pytest.mark.parametrize(
    "told",
    [
        b'data: {"object":"error","message":"boom","type":"ServerError","code":500}\n\n',
        b'data: {"type":"error","message":"boom"}\n\n',
        b'event: error\ndata: {"message":"boom"}\n\n',
        b'event:error\r\ndata: {"message":"boom"}\r\n\r\n',
    ],
)
@pytest.mark.parametrize("kind", [EventRelay, ByteRelay])
def test_an_error_is_one_in_whatever_words(kind, told):
    """Before it was relayed, and the answer booked as finished."""
    with pytest.raises(StreamError):
        kind(True).feed(told + DONE)
    begun = kind(True)
    assert begun.feed(event(said("a")) + told + DONE) == event(said("a"))
    with pytest.raises(UpstreamBroken):
        begun.check_end()


def test_what_else_has_no_choices_goes_on():
    relay = ByteRelay(True)
    for other in (b'data: {"type":"ping"}\n\n', b'event: errors\ndata: {"a":1}\n\n'):
        assert relay.feed(other) == other


@pytest.mark.parametrize("stream", [DONE, FINAL + DONE, b": hi\n\n" + DONE])
def test_an_ending_alone_is_no_answer(stream):
    relay = ByteRelay(True)
    relay.feed(stream)
    with pytest.raises((InvalidResponse, UpstreamBroken)):
        relay.finish()


EMPTY = [b"data:\n\n", b"data: \n\n", b"event: ping\ndata:\n\n", b"data:\r\ndata: \r\n\r\n"]


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("kind", [EventRelay, ByteRelay])
def test_empty_data_keeps_a_connection_alive_and_is_not_passed_on(kind, empty):
    """It was taken for a broken answer; OpenAI's SDKs look for JSON in it, and raise."""
    relay, end = kind(True), event("{}", finish="stop") + DONE
    parts = [empty, event(said("a")), empty, end, empty]
    assert b"".join(map(relay.feed, parts)) == event(said("a"))
    assert relay.finish() == end


def test_an_error_without_a_word_is_one():
    with pytest.raises(StreamError):
        ByteRelay(True).feed(b"event: error\ndata:\n\n")


@pytest.mark.parametrize("kind", [EventRelay, ByteRelay])
def test_a_character_over_two_chunks_goes_on_as_it_came(kind):
    relay = kind(True)
    halves = [event('{"content":"\\ud83d"}'), event('{"content":"\\ude00"}')]
    assert [relay.feed(half) for half in halves] == halves
    assert relay.content_events == 2


OPENING = event('{"role":"assistant","content":""}')
ERRORS = [
    ('{"error":{"code":429,"message":"Rate limited upstream"}}', UpstreamOverloaded),
    ('{"error":{"code":"rate_limit_exceeded"}}', UpstreamOverloaded),
    ('{"type":"error","error":{"type":"overloaded_error"}}', UpstreamOverloaded),
    ('{"error":{"code":"insufficient_quota"}}', UpstreamRejected),
    ('{"error":{"status":"INVALID_ARGUMENT"}}', RequestDeclined),
    ('[{"error":{"code":503,"status":"UNAVAILABLE"}}]', UpstreamOverloaded),
    ('{"choices":[{"index":0,"delta":{"content":""},"error":{"code":502}}]}', StreamError),
    ('{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}', StreamError),
    ('{"choices":[{"index":0,"delta":{},"error":{"code":"server_overloaded"}}]}',
     UpstreamOverloaded),
]  # fmt: skip


def read_to_end(relay: ByteRelay, text: bytes) -> None:
    relay.feed(text)
    relay.check_end()


@pytest.mark.parametrize(("payload", "expected"), ERRORS)
@pytest.mark.parametrize("before", [b"", b": hi\n\n", OPENING])
@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""])
@pytest.mark.parametrize("kind", [EventRelay, ByteRelay])
def test_an_error_before_words_is_judged_by_what_it_says(kind, end, before, payload, expected):
    """Also behind comments and a role, and at an end without an empty line."""
    relay = kind(True)
    with pytest.raises(expected) as caught:
        read_to_end(relay, before + b"data: " + payload.encode() + end)
    assert not caught.value.billable
    assert relay.usage is None


@pytest.mark.parametrize(("payload", "expected"), ERRORS)
@pytest.mark.parametrize("kind", [EventRelay, ByteRelay])
def test_an_error_behind_words_breaks_the_answer_off(kind, payload, expected):
    relay = kind(True)
    assert relay.feed(event(said("a"))) == event(said("a"))
    with pytest.raises(UpstreamBroken) as caught:
        relay.feed(b"data: " + payload.encode() + b"\n\n")
    assert caught.value.billable


def test_output_that_was_counted_and_not_shown_is_charged():
    relay = ByteRelay(True)
    relay.feed(event("{}", tail=usage(7, 900)))
    with pytest.raises(UpstreamBroken) as caught:
        read_to_end(relay, b'data: {"error":{"code":529}}\n\n')
    assert caught.value.billable
    assert relay.usage["completion_tokens"] == 900


def test_one_choice_of_two_may_fail():
    relay = ByteRelay(True, choices=2)
    failed = event("{}", finish="error", index=1)
    good = event(said("a"), index=0), event("{}", finish="stop", index=0)
    assert relay.feed(failed + good[0]) == failed + good[0]
    relay.feed(good[1])
    assert relay.finish() == good[1] + DONE


@pytest.mark.parametrize(
    ("code", "was_full"), [("overloaded", True), (429, True), (529, True), ("internal", False)]
)
def test_an_answer_that_is_broken_off_keeps_whether_its_target_was_full(
    code: object, was_full: bool
) -> None:
    relay = ByteRelay(True)
    relay.feed(event(said("a")))
    told = json.dumps({"error": {"code": code, "message": "m"}}).encode()
    with pytest.raises(UpstreamBroken) as broken:
        relay.feed(b"data: " + told + b"\n\n")
    assert broken.value.was_full is was_full
