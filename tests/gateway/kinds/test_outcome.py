"""How an attempt ended, where it was cut short."""

from types import SimpleNamespace

import pytest

from backends.errors import StreamError, UpstreamBroken
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.relay import ByteRelay


def test_a_cut_keeps_the_usage_that_was_seen_last() -> None:
    assert AttemptOutcome.cut(None, "client_gone", 499).usage is None
    relay = SimpleNamespace(
        usage={"prompt_tokens": 1},
        usage_final=False,
        tier="flex",
        said_bytes=7,
        shown=True,
        earlier_usage=({"prompt_tokens": 2},),
        most_said_bytes=9,
        unnamed_bytes=3,
        usage_stands=True,
        spoken=True,
        usage_behind=True,
    )
    cut = AttemptOutcome.cut(relay, "upstream_error", 502, error="broken")
    assert (cut.usage, cut.usage_final, cut.error) == ({"prompt_tokens": 1}, False, "broken")
    assert (cut.tier, cut.said_bytes, cut.shown) == ("flex", 7, True)
    assert cut.earlier_usage == ({"prompt_tokens": 2},)
    assert (cut.most_said_bytes, cut.unnamed_bytes) == (9, 3)
    assert (cut.spoken, cut.usage_behind, cut.usage_stands) == (True, True, True)
    assert cut.billable


@pytest.mark.parametrize(
    ("ended", "error", "final"),
    [
        (False, None, False),
        (True, None, True),
        (False, "broken", True),
        (False, "idle_timeout", False),
    ],
)
def test_what_we_gave_up_before_its_end_has_no_last_figure(ended, error, final) -> None:
    """Thinking comes behind a figure that stands first, and is seen nowhere."""
    relay = ByteRelay(hide_usage=False)
    relay.feed(b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}\n\n')
    if ended:
        relay.feed(b'data: {"choices":[{"index":0,"finish_reason":"stop","delta":{}}]}\n\n')
    cut = AttemptOutcome.cut(relay, "client_gone", 499, error=error)
    assert cut.usage == {"prompt_tokens": 9, "completion_tokens": 1}
    assert cut.usage_final is final


def test_an_answer_is_not_in_its_text() -> None:
    assert "secret" not in repr(AttemptOutcome("finished", 200, answer=b"secret"))


@pytest.mark.parametrize(
    ("outcome", "whole", "given_up"),
    [
        (AttemptOutcome("finished", 200), True, False),
        (AttemptOutcome("finished", 200).without_client(), True, False),
        (AttemptOutcome("client_gone", 499), False, True),
        (AttemptOutcome("timeout", 504), False, True),
        (AttemptOutcome("timeout", 504, error="idle_timeout"), False, False),
        (AttemptOutcome("upstream_error", 502, error="upstream_broken"), False, False),
    ],
)
def test_an_answer_is_whole_given_up_or_broken(outcome, whole, given_up) -> None:
    assert (outcome.is_whole, outcome.is_given_up) == (whole, given_up)


def test_an_answer_without_its_client_keeps_all_but_its_status() -> None:
    found = AttemptOutcome("finished", 200, {"prompt_tokens": 1}, said_bytes=7).without_client()
    assert (found.status, found.http_status, found.read_on) == ("client_gone", 499, True)
    assert (found.usage, found.said_bytes) == ({"prompt_tokens": 1}, 7)


def test_what_an_error_says_of_its_use_is_the_attempts() -> None:
    error = UpstreamBroken("half")
    failed = AttemptOutcome.failed(None, error, "upstream_error", 502)
    assert (failed.usage, failed.error, failed.billable) == (None, "upstream_broken", True)
    error.usage = {"completion_tokens": 5}
    failed = AttemptOutcome.failed(ByteRelay(True), error, "upstream_error", 502)
    assert (failed.usage, failed.usage_final) == ({"completion_tokens": 5}, True)
    assert not AttemptOutcome.failed(None, StreamError("no"), "rejected", 503).billable
