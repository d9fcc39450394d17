"""Values that a worker and the decoder's process exchange: limits and results.

Each result is one line of JSON. A child that decodes hostile bytes is not trusted, so results are
read strictly.
"""

import json
from dataclasses import asdict, dataclass

LONGEST_MS = 500 * 3_600_000  # the ledger books no longer sound: `AUDIO_MS_LIMIT`
LINE_BYTES = 256

# Opus at 24 kbit/s costs 1.4 s of CPU time a MiB here, AAC at 64 kbit/s 0.3 s. A slower machine
# may take three times as long.
_CPU_S, _CPU_S_PER_MIB, _CPU_MOST_S = 5, 4, 60
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class DecodedSound:
    """Milliseconds as FFmpeg decodes them; both are 0 if nothing in the file is sound.

    `most_ms` adds what FFmpeg trims and what another decoder could find in bytes that FFmpeg
    did not decode.
    """

    heard_ms: int
    most_ms: int


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """Limits of one child: CPU time, time of day, address space, and length of the sound."""

    cpu_s: int
    wall_s: float
    memory_bytes: int = 768 * _MIB
    longest_ms: int = LONGEST_MS


def limits_for(size: int) -> DecodeLimits:
    """Return the limits for a sound of `size` bytes: a small file may not cost much CPU time."""
    cpu_s = min(_CPU_S + _CPU_S_PER_MIB * size // _MIB, _CPU_MOST_S)
    return DecodeLimits(cpu_s=cpu_s, wall_s=2.0 * cpu_s)


def encode_line(value: DecodedSound | DecodeLimits) -> bytes:
    """Return the value as one line of JSON."""
    return json.dumps(asdict(value)).encode() + b"\n"


def read_limits(line: bytes) -> DecodeLimits:
    """Return the limits that `encode_line` wrote."""
    return DecodeLimits(**json.loads(line))


def read_sound(line: bytes) -> DecodedSound | None:
    """Return the length that a child wrote, or `None` if the line is not one whole result."""
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
