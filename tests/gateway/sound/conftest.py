"""Honest files of every format that is decoded, made by FFmpeg's own encoders."""

import array
import io
import math
from collections.abc import Callable
from fractions import Fraction

import av
import pytest

# Container, encoder, rate, layout, the encoder's options.
MADE = {
    "wav": ("wav", "pcm_s16le", 16000, "mono"),
    "wav-mulaw": ("wav", "pcm_mulaw", 8000, "stereo"),
    "mp3": ("mp3", "libmp3lame", 44100, "stereo"),
    "m4a": ("mp4", "aac", 44100, "mono"),
    "ogg-opus": ("ogg", "libopus", 48000, "mono"),
    "ogg-vorbis": ("ogg", "vorbis", 44100, "stereo"),
    "webm": ("webm", "libopus", 48000, "mono"),
    "flac": ("flac", "flac", 16000, "mono"),
}

WAVE = array.array("h", (int(8000 * math.sin(at / 20)) for at in range(2048))).tobytes()


def made(name: str, seconds: float, *, is_silent: bool = False) -> bytes:
    container, codec, rate, layout = MADE[name]
    target = io.BytesIO()
    with av.open(target, "w", format=container) as opened:
        strict = {"strict": "-2"} if codec == "vorbis" else {}
        stream = opened.add_stream(codec, rate=rate, options=strict)
        stream.layout = layout
        stream.format = stream.codec.audio_formats[0].name
        resampler = av.AudioResampler(
            format=stream.format.name, layout=layout, rate=rate, frame_size=1024
        )
        left, at = round(seconds * rate), 0
        channels = 1 if layout == "mono" else 2
        while left > 0:
            count = min(1024, left)
            frame = av.AudioFrame(format="s16", layout=layout, samples=count)
            samples = bytes(count * channels * 2) if is_silent else WAVE[: count * channels * 2]
            frame.planes[0].update(samples.ljust(frame.planes[0].buffer_size, b"\0"))
            frame.sample_rate, frame.pts, frame.time_base = rate, at, Fraction(1, rate)
            at, left = at + count, left - count
            for piece in resampler.resample(frame):
                opened.mux(stream.encode(piece))
        for piece in resampler.resample(None):
            opened.mux(stream.encode(piece))
        opened.mux(stream.encode(None))
    return target.getvalue()


@pytest.fixture(scope="session")
def encode() -> Callable[..., bytes]:
    return made


class Sounds(dict[str, bytes]):
    def __repr__(self) -> str:
        return f"sounds: {', '.join(self)}"  # Hypothesis prints it for each example


@pytest.fixture(scope="session")
def sounds() -> Sounds:
    """Two seconds in each format."""
    return Sounds({name: made(name, 2.0) for name in MADE})
