"""Lengths as FFmpeg decodes them: no head, table or tag makes a sound shorter."""

import io
import struct
from collections.abc import Callable
from fractions import Fraction

import av
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.sound.decoded_sound import DecodedSound
from gateway.sound.decoding import decode_sound

NOTHING = DecodedSound(0, 0)
NAMES = ("wav", "wav-mulaw", "mp3", "m4a", "ogg-opus", "ogg-vorbis", "webm", "flac")
ROUNDED_MS = 1000  # what a hold adds


def decoded(data: bytes) -> DecodedSound:
    return decode_sound(io.BytesIO(data), len(data))


def heard_by_ffmpeg(data: bytes) -> float:
    """Milliseconds of the longest stream, with FFmpeg as it is without options."""
    lengths: dict[int, float] = {}
    try:
        with av.open(io.BytesIO(data), "r") as opened:
            audio = [each for each in opened.streams.audio if each.codec_context is not None]
            for packet in opened.demux(audio) if audio else ():
                try:
                    frames = packet.decode()
                except (av.error.FFmpegError, EOFError):
                    continue
                for frame in frames:
                    if frame.sample_rate:
                        so_far = lengths.get(packet.stream_index, 0.0)
                        lengths[packet.stream_index] = (
                            so_far + frame.samples * 1000 / frame.sample_rate
                        )
    except (av.error.FFmpegError, EOFError, ValueError):
        pass
    return max(lengths.values(), default=0.0)


def heard_by_libsndfile(data: bytes) -> float:
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as opened:
            heard = 0  # what is read: `blocks` counts to the stated length, however long that is
            while count := len(opened.read(65_536, dtype="float32")):
                heard += count
            return heard * 1000 / opened.samplerate
    except (soundfile.SoundFileError, RuntimeError, ValueError):
        return 0.0


@pytest.mark.parametrize("name", NAMES)
def test_an_honest_file_is_as_long_as_it_is(sounds: dict[str, bytes], name: str) -> None:
    found = decoded(sounds[name])
    assert 2000 <= found.heard_ms <= 2060
    assert found.heard_ms <= found.most_ms <= 2120
    if name.startswith("wav"):
        assert found == DecodedSound(2000, 2000)
    assert found.most_ms >= heard_by_ffmpeg(sounds[name]) > 1950


def two_streams(second: str) -> bytes:
    """Half a second that is decoded, and a minute of silence in another codec beside it."""
    target = io.BytesIO()
    with av.open(target, "w", format="matroska") as opened:
        streams = [opened.add_stream(codec, rate=8000) for codec in ("pcm_s16le", second)]
        for stream in streams:
            stream.layout = "mono"
            stream.format = stream.codec.audio_formats[0].name
        for stream, seconds in zip(streams, (0.5, 60.0), strict=True):
            resampler = av.AudioResampler(stream.format.name, "mono", 8000, 1000)
            for at in range(0, round(seconds * 8000), 1000):
                frame = av.AudioFrame("s16", "mono", 1000)
                frame.planes[0].update(bytes(frame.planes[0].buffer_size))
                frame.sample_rate, frame.pts, frame.time_base = 8000, at, Fraction(1, 8000)
                for piece in resampler.resample(frame):
                    opened.mux(stream.encode(piece))
            opened.mux(stream.encode(None))
    return target.getvalue()


def test_sound_that_cannot_be_decoded_beside_some_that_can_has_no_length() -> None:
    """A minute of silence takes WavPack some 9 KB in a file, and a codec of tomorrow less."""
    file = two_streams("wavpack")
    assert decoded(file).heard_ms == 60_000
    assert decoded(file.replace(b"A_WAVPACK4", b"A_TOMORROW")) == NOTHING


def flac_that_states_one_sample(data: bytes) -> bytes:
    (packed,) = struct.unpack_from(">Q", data, 18)
    return data[:18] + struct.pack(">Q", packed >> 36 << 36 | 1) + data[26:]


def flac_with_another_rate(data: bytes) -> bytes:
    (packed,) = struct.unpack_from(">Q", data, 18)
    return data[:18] + struct.pack(">Q", packed & (1 << 44) - 1 | 4_000 << 44) + data[26:]


def mp4_that_states_one_millisecond(data: bytes) -> bytes:
    for box, at in ((b"mvhd", 16), (b"mdhd", 16), (b"tkhd", 24)):
        place = data.index(box) + 4 + at
        data = data[:place] + struct.pack(">I", 1) + data[place + 4 :]
    return data


def mp4_with_an_edit_of_one_millisecond(data: bytes) -> bytes:
    place = data.index(b"elst") + 12
    return data[:place] + struct.pack(">I", 1) + data[place + 4 :]


def mp3_that_states_one_frame(data: bytes) -> bytes:
    place = next(at for at in (data.find(b"Xing"), data.find(b"Info")) if at >= 0)
    return data[: place + 8] + struct.pack(">I", 1) + data[place + 12 :]


def ogg_that_ends_at_one_sample(data: bytes) -> bytes:
    place = data.rindex(b"OggS") + 6
    return data[:place] + struct.pack("<q", 1) + data[place + 8 :]


def webm_that_states_one_millisecond(data: bytes) -> bytes:
    place = data.index(b"\x44\x89\x88") + 3
    return data[:place] + struct.pack(">d", 1.0) + data[place + 8 :]


@pytest.mark.parametrize(
    ("name", "lie"),
    [
        ("flac", flac_that_states_one_sample),
        ("flac", flac_with_another_rate),
        ("m4a", mp4_that_states_one_millisecond),
        ("m4a", mp4_with_an_edit_of_one_millisecond),
        ("mp3", mp3_that_states_one_frame),
        ("webm", webm_that_states_one_millisecond),
    ],
)
def test_a_stated_length_makes_no_sound_shorter(
    sounds: dict[str, bytes], name: str, lie: Callable[[bytes], bytes]
) -> None:
    data = lie(sounds[name])
    assert data != sounds[name]
    found = decoded(data)
    assert found.heard_ms >= 2000
    assert found.most_ms <= (2100 if lie is not flac_with_another_rate else 8100)


def test_an_ogg_file_whose_last_page_lies_keeps_its_other_pages(encode) -> None:
    whole = encode("ogg-opus", 10.0)
    assert decoded(ogg_that_ends_at_one_sample(whole)).most_ms >= 9_000


@pytest.mark.parametrize("bits", [0, 1, 8, 65_528])
def test_the_bits_of_mu_law_are_eight(sounds: dict[str, bytes], bits: int) -> None:
    data = sounds["wav-mulaw"]
    place = data.index(b"fmt ") + 22
    found = decoded(data[:place] + struct.pack("<H", bits) + data[place + 2 :])
    assert found.heard_ms == 2000


def test_a_wav_that_states_fewer_bytes_is_as_long_as_its_bytes(sounds: dict[str, bytes]) -> None:
    data = sounds["wav"]
    at = data.index(b"data") + 4
    assert decoded(data[:at] + struct.pack("<I", 16) + data[at + 4 :]) == DecodedSound(2000, 2000)


def test_of_two_formats_the_longer_counts(sounds: dict[str, bytes]) -> None:
    data = sounds["wav-mulaw"]
    lie = b"fmt \x10\0\0\0" + struct.pack("<HHIIHH", 7, 2, 3_999_999, 8000, 1, 8)
    at = data.index(b"data")
    start = data.index(b"fmt ")
    assert decoded(data[:at] + lie + data[at:]).heard_ms >= 2000
    assert decoded(data[:start] + lie + data[start:]).heard_ms >= 2000


def test_sound_behind_what_ffmpeg_decodes_is_in_the_bound(sounds: dict[str, bytes]) -> None:
    """FFmpeg stops at the end of the first file; another decoder may go on."""
    found = decoded(sounds["flac"] + bytes(300_000))
    assert found.heard_ms == 2000
    assert found.most_ms >= 120_000
    chained = decoded(sounds["ogg-opus"] + sounds["ogg-opus"])
    assert 4000 <= chained.heard_ms <= chained.most_ms <= 4100


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 5000, b"#EXTM3U\nfile:///etc/passwd\n", b"RIFF", b"fLaC", b"OggS\0\2"]
)
def test_a_file_without_sound_has_no_length(data: bytes) -> None:
    assert decoded(data) == NOTHING


def test_a_stream_of_no_known_codec_has_no_length(sounds: dict[str, bytes]) -> None:
    data = sounds["wav"]
    assert decoded(data[:20] + b"\xfe\xfd" + data[22:]) == NOTHING


def test_past_the_longest_sound_there_is_no_length(sounds: dict[str, bytes]) -> None:
    with pytest.raises(OverflowError):
        decode_sound(io.BytesIO(sounds["mp3"]), len(sounds["mp3"]), longest_ms=1000)
    slow = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0" + struct.pack("<HHIIHH", 1, 1, 1, 1, 1, 8)
    data = slow + b"data" + struct.pack("<I", 200) + bytes(200)
    assert decoded(data).heard_ms == 200_000
    with pytest.raises(OverflowError):
        decode_sound(io.BytesIO(data), len(data), longest_ms=100_000)


VALUES = (0, 1, 2, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1)
CHANGES = st.tuples(
    st.integers(0, 600),
    st.booleans(),
    st.sampled_from((1, 2, 4, 8)),
    st.sampled_from(VALUES),
    st.sampled_from(("big", "little")),
)


def changed(data: bytes, change: tuple[int, bool, int, int, str]) -> bytes:
    """With another number near its head or near its end."""
    near, is_head, width, value, order = change
    at = min(near, len(data) - width) if is_head else max(0, len(data) - width - near)
    number = (value % 256**width).to_bytes(width, order)  # type: ignore[arg-type]  # a word
    return data[:at] + number + data[at + width :]


@given(
    st.sampled_from(NAMES),
    st.lists(CHANGES, min_size=1, max_size=4),
    st.integers(0, 1000),
    st.binary(max_size=64),
)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_decoder_hears_more_than_the_bound(
    sounds: dict[str, bytes], name: str, changes: list, kept: int, tail: bytes
) -> None:
    """An honest file with other numbers in its head or tail, cut, or followed by junk."""
    file = sounds[name]
    for change in changes:
        file = changed(file, change)
    file = (file[: len(file) * kept // 500] if kept < 500 else file) + tail
    try:
        found = decoded(file)
    except (OverflowError, MemoryError):
        return  # such a file has no bound, and is held at the longest sound
    bytes_ms = len(file) * 1000 // 750
    bound = (found.most_ms or bytes_ms) + ROUNDED_MS
    assert bound >= heard_by_ffmpeg(file), "ffmpeg"
    if name != "mp3":  # libsndfile fills up a cut MP3 with silence to its stated length
        assert bound >= heard_by_libsndfile(file), "libsndfile"
