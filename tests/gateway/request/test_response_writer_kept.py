"""What a stream keeps back while another target may begin its answer anew."""

from types import SimpleNamespace

import pytest

from gateway.request.response_writer import StreamSink


@pytest.mark.parametrize("keeps", [True, False])
def test_what_comes_before_the_first_word_leaves_with_it_where_others_may_begin_anew(keeps) -> None:
    """All of it: an answer that another target may begin shows nothing until it says something."""
    relay = SimpleNamespace(content_events=0, complete=False, error=None)

    def feed(piece: bytes) -> bytes:
        relay.content_events += piece.startswith(b"word")
        return piece

    def observe(_now_s: float, events: int) -> None:
        attempt.events = events

    relay.feed = feed
    attempt = SimpleNamespace(
        prefill=object() if keeps else None, leads_to_stage=lambda _: False, events=0,
        observe_content=observe, first_token_s=None, dispatched_s=0.0,
    )  # fmt: skip
    pushed: list[bytes] = []
    reply = SimpleNamespace(ended_by=None, push=lambda out: pushed.append(out) or b"")
    sink = StreamSink(attempt, relay, reply, lambda: 1.0, 60.0)
    for piece in (b"role,", b"ping,", b"word,", b"word;"):
        assert sink(piece)
    first = [b"role,ping,word,"] if keeps else [b"role,", b"ping,", b"word,"]
    assert (pushed, sink.kept) == ([*first, b"word;"], b"")
