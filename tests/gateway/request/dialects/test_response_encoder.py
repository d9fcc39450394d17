"""The fold that every dialect tells with: blocks in order, nothing early, nothing lost."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from whole_answer import encode_whole

from gateway.request.dialects.chat import ContentPiece
from gateway.request.dialects.response_encoder import ContentBlock, ResponseEncoder, event


class Plain(ResponseEncoder):
    """Says what is asked of it, a line each."""

    def on_start(self) -> Iterator[bytes]:
        yield b"began\n"

    def on_block_start(self, block: ContentBlock) -> Iterator[bytes]:
        yield f"open {block.index} {block.kind} {block.id} {block.name}\n".encode()

    def on_block_delta(self, block: ContentBlock, text: str) -> Iterator[bytes]:
        yield f"grew {block.index} {text}\n".encode()

    def on_block_stop(self, block: ContentBlock) -> Iterator[bytes]:
        yield f"close {block.index}\n".encode()

    def on_finish(self) -> Iterator[bytes]:
        yield f"finished {self.reason} {self.tokens.output}\n".encode()

    def on_error(self, error: dict[str, Any]) -> Iterator[bytes]:
        yield f"failed {error['message']}\n".encode()

    def document(self) -> dict[str, Any]:
        return {"blocks": [[block.kind, block.text] for block in self.blocks]}


def call(index: int, arguments: str = "", **members: str) -> dict:
    name = {"name": members.pop("name")} if "name" in members else {}
    return {
        "tool_calls": [{"index": index, **members, "function": {**name, "arguments": arguments}}]
    }


def lines(stream: bytes) -> list[str]:
    voice = Plain("req_1")
    return (voice.feed(stream) + voice.end()).decode().splitlines()


def test_blocks_open_grow_and_close_in_the_order_of_the_answer(stream_of) -> None:
    told = lines(stream_of({"reasoning": "hm"}, {"content": "a"}, {"content": "b"}))
    assert told == [
        "began",
        "open 0 reasoning call_1_0 ",
        "grew 0 hm",
        "close 0",
        "open 1 text call_1_1 ",
        "grew 1 a",
        "grew 1 b",
        "close 1",
        "finished stop 12",
    ]


def test_a_call_closes_when_its_arguments_are_whole_and_another_begins(stream_of) -> None:
    told = lines(
        stream_of(
            call(0, id="a", name="f"), call(0, '{"x":'), call(0, "1}"),
            call(1, id="b", name="g"), call(1, "{}"),
        )
    )  # fmt: skip
    assert told[1:-1] == [
        "open 0 call a f", 'grew 0 {"x":', "grew 0 1}", "close 0",
        "open 1 call b g", "grew 1 {}", "close 1",
    ]  # fmt: skip
    assert told[-1].startswith("finished tool_calls")


def test_a_call_is_told_once_its_name_has_come(stream_of) -> None:
    """Some servers send a call's id first; a client that is told no name cannot call anything."""
    told = lines(stream_of(call(0, id="a"), call(0, "{"), call(0, name="f"), call(0, "}")))
    assert told[1:-1] == ["open 0 call a f", "grew 0 {", "grew 0 }", "close 0"]


def test_a_call_whose_name_never_comes_is_told_at_the_end(stream_of) -> None:
    told = lines(stream_of(call(0, "{", id="a"), {"content": "x"}, call(0, "}")))
    assert told[1:-1] == [
        "open 0 text call_1_0 ", "grew 0 x", "close 0", "open 1 call a ", "grew 1 {}", "close 1",
    ]  # fmt: skip
    assert told[-1].startswith("finished tool_calls")


@pytest.mark.parametrize("finish", ["function_call", "stop"])
def test_the_call_of_an_old_server_is_a_call(stream_of, answer_of, finish: str) -> None:
    parts = ({"name": "f", "arguments": '{"x":'}, {"arguments": "1}"}, {"name": None}, {})
    told = lines(stream_of(*({"function_call": part} for part in parts), finish=finish))
    assert told[1:-1] == ["open 0 call call_1_0 f", 'grew 0 {"x":', "grew 0 1}", "close 0"]
    assert told[-1].startswith("finished tool_calls")
    whole = {"content": None, "function_call": {"name": "f", "arguments": "{}"}}
    voice = Plain("req_1")
    voice.read_whole(answer_of(whole))
    assert [(block.name, block.text) for block in voice.blocks] == [("f", "{}")]


def test_a_call_in_both_forms_is_told_once(stream_of) -> None:
    both = {**call(0, "{}", id="a", name="f"), "function_call": {"name": "f", "arguments": "{}"}}
    assert lines(stream_of(both))[1:-1] == ["open 0 call a f", "grew 0 {}", "close 0"]


def test_interleaved_calls_keep_every_part_with_its_call(stream_of) -> None:
    told = lines(stream_of(call(0, "{", id="a", name="f"), call(1, "{", id="b", name="g"),
                           call(0, "}"), call(1, "}")))  # fmt: skip
    assert told[1:-1] == [
        "open 0 call a f", "grew 0 {", "open 1 call b g", "grew 1 {", "grew 0 }", "grew 1 }",
        "close 0", "close 1",
    ]  # fmt: skip


def test_every_event_is_told_in_the_step_in_which_it_came(stream_of) -> None:
    voice = Plain("req_1")
    steps = [voice.feed(part + b"\n\n") for part in stream_of({"content": "a"}).split(b"\n\n")[:-1]]
    assert steps == [b"began\n", b"open 0 text call_1_0 \ngrew 0 a\n", b"", b"", b""]
    assert voice.end() == b"close 0\nfinished stop 12\n"


def test_nothing_is_said_after_an_error() -> None:
    voice = Plain("req_1")
    assert voice.feed(b'data: {"error":{"message":"broken"}}\n\n') == b"failed broken\n"
    assert voice.feed(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n') == b""
    assert voice.end() == b""


def test_an_empty_answer_begins_and_ends(stream_of) -> None:
    assert lines(stream_of()) == ["began", "finished stop 12"]
    assert lines(b"") == ["began", "finished stop 0"]


@pytest.mark.parametrize(
    ("finish", "called", "reason"),
    [("stop", False, "stop"), ("stop", True, "tool_calls"), ("length", True, "length"),
     ("tool_calls", True, "tool_calls"), ("content_filter", False, "content_filter")],
)  # fmt: skip
def test_a_forced_call_that_ends_with_stop_is_a_call(stream_of, finish, called, reason) -> None:
    deltas = [call(0, "{}", id="a", name="f")] if called else [{"content": "x"}]
    assert lines(stream_of(*deltas, finish=finish))[-1] == f"finished {reason} 12"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_slicing_tells_the_same_and_loses_nothing(stream_of, answer_of, answers, data) -> None:
    deltas = data.draw(answers)
    stream = stream_of(*deltas)
    once = lines(stream)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    voice = Plain("req_1")
    told = b"".join(
        voice.feed(stream[a:b]) for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)
    )
    assert (told + voice.end()).decode().splitlines() == once
    for kind, name in (("text", "content"), ("reasoning", "reasoning")):
        said = "".join(block.text for block in voice.blocks if block.kind == kind)
        assert said == "".join(delta.get(name) or "" for delta in deltas)
    calls = [tool_call for delta in deltas for tool_call in delta.get("tool_calls", ())]
    for block in (block for block in voice.blocks if block.kind == "call"):
        mine = [call for call in calls if f"call_{call['index']}" == block.id]
        assert block.text == "".join(item["function"]["arguments"] for item in mine)
        assert block.closed
    opened = [line.split()[1] for line in once if line.startswith("open ")]
    closed = [line.split()[1] for line in once if line.startswith("close ")]
    assert sorted(closed) == sorted(opened)
    assert opened == [str(index) for index in range(len(voice.blocks))]


def test_a_whole_answer_is_told_by_the_same_fold(answer_of) -> None:
    message = {"reasoning": "hm", "content": "a", **call(0, "{}", id="a", name="f")}
    voice = Plain("req_1")
    told = encode_whole(voice, answer_of(message))
    assert told == b'{"blocks":[["reasoning","hm"],["text","a"],["call","{}"]]}'
    assert all(block.closed for block in voice.blocks)
    assert (voice.model, voice.reason, voice.tokens.cached) == ("m1", "tool_calls", 20)
    assert encode_whole(Plain("req_1"), b'"odd"') == b'{"blocks":[]}'


def test_comments_and_odd_events_say_nothing() -> None:
    voice = Plain("req_1")
    assert voice.feed(b": waiting\n\nevent: x\n\ndata: 5\n\n") == b""


def test_a_call_without_an_id_gets_one() -> None:
    block = ContentBlock("call", 3, ContentPiece("call", ""), "call_1_3")
    assert block.id == "call_1_3"
    assert not block.is_complete
    block.parts += ['{"a":1', "} "]
    assert block.is_complete


def test_events_are_named() -> None:
    assert event("ping", {"type": "ping"}) == b'event: ping\ndata: {"type":"ping"}\n\n'


def test_a_character_in_two_pieces_is_whole() -> None:
    """Red before: both halves were unknown characters. Some servers cut texts in UTF-16."""
    encoder = Plain("req_1")
    pieces = [rb"a\ud83d", rb"\ude00b"]
    chunks = [b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % piece for piece in pieces]
    told = b"".join(map(encoder.feed, chunks)) + encoder.end()
    assert told.decode().splitlines()[2:4] == ["grew 0 a", "grew 0 \U0001f600b"]
    assert encoder.document() == {"blocks": [["text", "a\U0001f600b"]]}
