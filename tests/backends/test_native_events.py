"""What a target said travels inside chat's events, and only by our own hand."""

from backends.native_events import MEMBER, native_comment, native_document
from backends.sse import data_spans, join_data


def test_an_event_carries_another_ones_data() -> None:
    chat = b'data: {"choices": []}\n\n'
    event = native_comment(b'{"type": "ping"}') + chat
    assert native_document(event) == b'{"type": "ping"}'
    assert join_data(event, data_spans(event)) == b'{"choices": []}'
    assert data_spans(native_comment(b"{}") + b"\n") == []


def test_lines_between_members_stay_one_event() -> None:
    event = native_comment(b'{\n"type":\r\n "ping"}') + b"\n"
    assert native_document(event) == b'{ "type":   "ping"}'


def test_a_target_cannot_write_one() -> None:
    """Its name is drawn by each process; a comment of that form under another name is a comment."""
    assert native_document(b': native_0 {"type": "ping"}\n\n') is None
    assert native_document(b"data: {}\n\n") is None
    assert len(MEMBER) > 24
