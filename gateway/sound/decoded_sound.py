"""Limits and results that a worker and the decoder's process exchange.

Each is one line of JSON. A child that decodes untrusted bytes is not trusted, so its results are
parsed strictly.
"""

import json
from dataclasses import asdict, dataclass

LONGEST_MS = 500 * 3_600_000  # maximum of the ledger: `AUDIO_MS_LIMIT`
LINE_BYTES = 256

# Opus at 24 kbit/s costs 1.4 s of CPU time a MiB here, AAC at 64 kbit/s 0.3 s. A slower machine
# may take three times as long.
_CPU_S, _CPU_S_PER_MIB, _CPU_MOST_S = 5, 4, 60
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class DecodedSound:
    """Duration in milliseconds; 0 if the file has no audio.

    `most_ms` is the upper bound: it adds what FFmpeg trims, and what another decoder might find in
    bytes that FFmpeg did not decode.
    """

    heard_ms: int
    most_ms: int


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """Limits of one child: CPU time, wall time, address space, and audio duration."""

    cpu_s: int
    wall_s: float
    memory_bytes: int = 768 * _MIB
    longest_ms: int = LONGEST_MS


def limits_for(size: int) -> DecodeLimits:
    """Return the limits for `size` bytes of audio: small files may use little CPU time."""
    cpu_s = min(_CPU_S + _CPU_S_PER_MIB * size // _MIB, _CPU_MOST_S)
    return DecodeLimits(cpu_s=cpu_s, wall_s=2.0 * cpu_s)


def encode_line(value: DecodedSound | DecodeLimits) -> bytes:
    """Return the value as one line of JSON."""
    return json.dumps(asdict(value)).encode() + b"\n"


def read_limits(line: bytes) -> DecodeLimits:
    """Return the limits that `encode_line` wrote."""
    return DecodeLimits(**json.loads(line))


def read_sound(line: bytes) -> DecodedSound | None:
    """Return the result that a child wrote, or `None` if the line is not a complete one."""
    if len(line) > LINE_BYTES or line.count(b"\n") != 1 or not line.endswith(b"\n"):
        return None
    try:
        members = json.loads(line)
        heard_ms, most_ms = members["heard_ms"], members["most_ms"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(heard_ms) is not int or type(most_ms) is not int:
        return None
    if not 0 <= heard_ms <= most_ms <= LONGEST_MS or (not heard_ms and most_ms):
        return None
    return DecodedSound(heard_ms, most_ms)
