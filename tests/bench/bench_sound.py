"""CPU and wall time that the length of a sound costs, by format, and the decoder's first start.

Each format is one minute of a tone, decoded as a worker has it decoded: by a confined child of
the decoder's process. CPU is that of the child. Start it with `make bench-sound`; writes
`build/bench-sound.json`.
"""

import array
import asyncio
import io
import json
import math
import sys
import time
from fractions import Fraction
from pathlib import Path

import av

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from gateway.sound.sound_decoder import SoundDecoder  # noqa: E402  (found by the line above)

MINUTE_S, TIMES = 60, 5
FORMATS = (
    ("wav", "pcm_s16le", 16_000),
    ("mp3", "libmp3lame", 44_100),
    ("mp4", "aac", 44_100),
    ("ogg", "libopus", 48_000),
    ("webm", "libopus", 48_000),
    ("flac", "flac", 44_100),
)
WAVE = array.array("h", (int(8000 * math.sin(at / 20)) for at in range(1024))).tobytes()


def encoded(container: str, codec: str, rate: int) -> bytes:
    """Return one minute of mono sound."""
    target = io.BytesIO()
    with av.open(target, "w", format=container) as opened:
        stream = opened.add_stream(codec, rate=rate)
        stream.layout, stream.format = "mono", stream.codec.audio_formats[0].name
        resampler = av.AudioResampler(format=stream.format.name, layout="mono", rate=rate)
        for at in range(0, MINUTE_S * rate, 1024):
            frame = av.AudioFrame(format="s16", layout="mono", samples=1024)
            frame.planes[0].update(WAVE)
            frame.sample_rate, frame.pts, frame.time_base = rate, at, Fraction(1, rate)
            for piece in resampler.resample(frame):
                opened.mux(stream.encode(piece))
        opened.mux(stream.encode(None))
    return target.getvalue()


def children_cpu_s(pid: int) -> float:
    """Return user and system time of the children that the process has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / 100


async def measured() -> dict[str, dict[str, float]]:
    decoder, found = SoundDecoder(), {}
    silence = bytes(8000)
    wav = b"RIFF\0\0\0\0WAVEfmt " + bytes.fromhex("10000000010001001027000010270000 01000800")
    began = time.monotonic()
    await decoder.decode(wav + b"data" + len(silence).to_bytes(4, "little") + silence)
    found["first start"] = {"wall_ms": (time.monotonic() - began) * 1000}
    pid = decoder.pid
    assert pid is not None
    for container, codec, rate in FORMATS:
        sound = encoded(container, codec, rate)
        began, cpu_s = time.monotonic(), children_cpu_s(pid)
        for _ in range(TIMES):
            assert await decoder.decode(sound) is not None
        found[f"{container} {codec}"] = {
            "bytes": len(sound),
            "wall_ms": (time.monotonic() - began) * 1000 / TIMES,
            "cpu_ms": (children_cpu_s(pid) - cpu_s) * 1000 / TIMES,
        }
    await decoder.aclose()
    return found


def main() -> int:
    found = asyncio.run(measured())
    for name, figures in found.items():
        print(f"{name:18}", *(f"{what} {figure:10.1f}" for what, figure in figures.items()))
    target = ROOT / "build" / "bench-sound.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
