"""How an attempt ended, where it was cut short."""

from types import SimpleNamespace

from gateway.kinds.outcome import AttemptOutcome


def test_a_cut_keeps_the_usage_that_was_seen_last() -> None:
    assert AttemptOutcome.cut(None, "client_gone", 499).usage is None
    relay = SimpleNamespace(
        usage={"prompt_tokens": 1},
        usage_final=False,
        tier="flex",
        said_bytes=7,
        shown=True,
        earlier_usage=({"prompt_tokens": 2},),
    )
    cut = AttemptOutcome.cut(relay, "upstream_error", 502, error="broken")
    assert (cut.usage, cut.usage_final, cut.error) == ({"prompt_tokens": 1}, False, "broken")
    assert (cut.tier, cut.said_bytes, cut.shown) == ("flex", 7, True)
    assert cut.earlier_usage == ({"prompt_tokens": 2},)
    assert cut.billable


def test_an_answer_is_not_in_its_text() -> None:
    assert "secret" not in repr(AttemptOutcome("finished", 200, answer=b"secret"))
