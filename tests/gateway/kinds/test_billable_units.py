"""Tokens of sound: ten a second, and at most what an encoder sees."""

from gateway.kinds.billable_units import sound_tokens
from router.prompts import RequestUnits


def test_sound_is_counted_in_tokens_rounded_up() -> None:
    assert sound_tokens(RequestUnits(audio_ms=1001, audio_ms_bound=2001)) == (11, 101)
    assert sound_tokens(RequestUnits()) == (0, 0)
