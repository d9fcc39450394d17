"""Lines between a worker and the decoder's process."""

import pytest

from gateway.sound.decoded_sound import (
    LONGEST_MS,
    DecodedSound,
    DecodeLimits,
    encode_line,
    limits_for,
    read_limits,
    read_sound,
)
from ledger.journals.token_kinds import AUDIO_MS_LIMIT


def test_lines_are_read_as_they_were_written() -> None:
    sound, limits = DecodedSound(1000, 1031), DecodeLimits(5, 2.5)
    assert read_sound(encode_line(sound)) == sound
    assert read_limits(encode_line(limits)) == limits


@pytest.mark.parametrize(
    "line",
    [
        b"", b"late\n", b"{}\n", b"[]\n", b'{"heard_ms": 1, "most_ms": 1}',
        b'{"heard_ms": 2, "most_ms": 1}\n', b'{"heard_ms": 0, "most_ms": 9}\n',
        b'{"heard_ms": -1, "most_ms": 1}\n', b'{"heard_ms": true, "most_ms": 1}\n',
        b'{"heard_ms": 1.5, "most_ms": 2}\n', b'{"heard_ms": "1", "most_ms": 2}\n',
        b'{"heard_ms": 1, "most_ms": 9999999999}\n', b"[" * 250 + b"\n", b"{" * 999 + b"\n",
        b'{"heard_ms": 1, "most_ms": 1}\n{"heard_ms": 1, "most_ms": 1}\n', b"\xff\n",
    ],
)  # fmt: skip
def test_a_line_that_is_not_one_result_is_none(line: bytes) -> None:
    assert read_sound(line) is None


def test_the_longest_sound_is_the_longest_that_the_ledger_books() -> None:
    assert LONGEST_MS == AUDIO_MS_LIMIT


@pytest.mark.parametrize(("size", "cpu_s"), [(0, 5), (1 << 20, 9), (10 << 20, 45), (1 << 30, 60)])
def test_cpu_time_grows_with_the_file_up_to_a_limit(size: int, cpu_s: int) -> None:
    limits = limits_for(size)
    assert (limits.cpu_s, limits.wall_s) == (cpu_s, 2.0 * cpu_s)
