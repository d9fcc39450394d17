"""Instants as billing exports spell them, for properties over all of them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from hypothesis import strategies as st

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = (int(datetime(year, 1, 2, tzinfo=UTC).timestamp()) for year in (2001, 2099))
# Any microsecond, and those at which days, hours, minutes and seconds begin.
INSTANTS = st.builds(
    lambda at_s, grain_s, rest_us: (at_s - at_s % grain_s) * 10**6 + rest_us,
    st.integers(_FIRST, _LAST),
    st.sampled_from((86_400, 3_600, 60, 1)),
    st.one_of(st.just(0), st.integers(0, 999_999)),
)


class SpelledInstant(NamedTuple):
    """How an instant is written, and the unit below which it drops the rest."""

    write: Callable[[datetime], str]
    drops_us: int = 1
    zoned: bool = False  # it states an offset, so any will do


def _offset(at: datetime, form: str) -> str:
    text = f"{at:%z}"
    return f"{text[:3]}:{text[3:]}" if form == "colon" else text


SPELLINGS = (
    SpelledInstant(lambda at: f"{at:%Y-%m-%dT%H:%M}{_offset(at, 'colon')}", 60_000_000, zoned=True),
    SpelledInstant(lambda at: f"{at:%Y-%m-%d}", 86_400_000_000),
    SpelledInstant(lambda at: f"{at:%Y-%m-%dT%H:%MZ}", 60_000_000),
    SpelledInstant(lambda at: f"{at:%Y-%m-%dT%H:%M:%SZ}", 1_000_000),
    SpelledInstant(lambda at: f"{at:%Y-%m-%dt%H:%M:%S.%fz}"),
    SpelledInstant(lambda at: f"{at:%Y-%m-%d %H:%M:%S.%f}"),
    SpelledInstant(lambda at: f"{at:%Y-%m-%d %H:%M:%S.%f}999Z"),
    SpelledInstant(lambda at: f"{at:%Y-%m-%d %H:%M:%S UTC}", 1_000_000),
    SpelledInstant(lambda at: f"{at:%Y-%m-%d %H:%M:%S.%f UTC}"),
    SpelledInstant(lambda at: f"{at:%Y-%m-%d %H:%M:%S.%f} {_offset(at, 'plain')}", zoned=True),
    SpelledInstant(lambda at: f"{at:%Y-%m-%dT%H:%M:%S.%f}{_offset(at, 'colon')}", zoned=True),
    SpelledInstant(
        lambda at: f"{at:%Y-%m-%d %H:%M:%S} {_offset(at, 'plain')}", 1_000_000, zoned=True
    ),
    SpelledInstant(lambda at: f"{at:%Y-%m-%d %H:%M:%S.%f} +0000 UTC"),
)


def spelled(at_us: int, spelling: SpelledInstant, offset_minutes: int) -> tuple[str, int]:
    """The text, and the instant that it denotes: cut as the spelling cuts."""
    zone = timezone(timedelta(minutes=offset_minutes)) if spelling.zoned else UTC
    meant_us = at_us - at_us % spelling.drops_us
    return spelling.write((EPOCH + timedelta(microseconds=meant_us)).astimezone(zone)), meant_us
