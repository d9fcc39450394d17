"""Duration of audio by decoding all of it. Runs only in a confined child.

FFmpeg may skip samples that other decoders play: `DiscardPadding` of WebM, gapless tags of MP3,
edit lists of MP4. Skipping is therefore disabled, and skipped samples are counted separately.
"""

import errno
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

import av
from av.audio.frame import AudioFrame
from av.codec.context import Flags2
from av.container import InputContainer
from av.error import FFmpegError
from av.packet import Packet
from av.sidedata.sidedata import Type
from av.stream import Stream

from gateway.sound.decoded_sound import LONGEST_MS, DecodedSound
from gateway.sound.wav_bytes import wav_lengths

# What OpenAI's API takes (flac, mp3, mp4, mpeg, mpga, m4a, ogg, wav, webm) and formats near them.
# Formats that name other files or addresses (hls, concat, dash) are not among them.
FORMATS = (
    "aac", "aiff", "amr", "au", "caf", "flac", "matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2", "mp3",
    "mpeg", "mpegts", "ogg", "w64", "wav",
)  # fmt: skip
_CODECS = (
    "aac", "aac_latm", "ac3", "adpcm_ima_qt", "adpcm_ima_wav", "adpcm_ms", "alac", "amrnb",
    "amrwb", "eac3", "flac", "gsm", "gsm_ms", "libopencore_amrnb", "libopencore_amrwb", "libopus",
    "mp1", "mp1float", "mp2", "mp2float", "mp3", "mp3float", "opus", "speex", "vorbis",
)  # fmt: skip
LEAST_BYTES_PER_S = 750  # Opus for voice goes down to 6 kbit/s (RFC 6716 section 2.1)
# Valid files also contain headers, tables, tags and covers.
_BESIDE_BYTES, _BESIDE_SHARE = 64 * 1024, 4
_SAMPLE_BYTES = 8  # no codec writes more than 64 bits for one
_TRIMMED_MS = 250  # encoders' delay and padding: MP3 52 ms, AAC 46 ms, Opus 80 ms at most in use


_FAILURES = (FFmpegError, ValueError, EOFError)


class ReadableSound(Protocol):
    """File interface for FFmpeg, implemented by `_MemoryFile` of `decoder_host`."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def tell(self) -> int: ...


class _StreamLength:
    """Samples of one stream, by sample rate."""

    __slots__ = ("samples", "trimmed")

    def __init__(self) -> None:
        self.samples: defaultdict[int, int] = defaultdict(int)
        self.trimmed: defaultdict[int, int] = defaultdict(int)

    def add(self, frame: AudioFrame, least_rate: int) -> None:
        rate = min(frame.sample_rate, least_rate or frame.sample_rate)
        if rate <= 0:
            return
        self.samples[rate] += frame.samples
        beside: Any = frame.side_data  # PyAV's stub names video's side data only
        for place in range(len(beside)):  # no call for the frames in the middle, which have none
            if beside[place].type is Type.SKIP_SAMPLES:
                start, end = struct.unpack_from("<II", bytes(beside[place]))
                self.trimmed[rate] += min(start + end, frame.samples)

    @property
    def whole_ms(self) -> int:
        return sum(-(-count * 1000 // rate) for rate, count in self.samples.items())

    @property
    def trimmed_ms(self) -> int:
        return sum(count * 1000 // rate for rate, count in self.trimmed.items())


def decode_sound(file: ReadableSound, size: int, longest_ms: int = LONGEST_MS) -> DecodedSound:
    """Decode all audio of a file of `size` bytes; the longest stream counts.

    A file without audio has the duration 0. Raises `OverflowError` beyond `longest_ms`, and
    `MemoryError` if FFmpeg runs out of memory.
    """
    try:
        container = av.open(file, mode="r", options=_options())
    except _FAILURES as error:
        _check_memory(error)
        return DecodedSound(0, 0)
    with container:
        lengths, heard_bytes, other_bytes = _lengths(container, longest_ms)
        is_wav = container.format.name == "wav"
    whole_ms = max((length.whole_ms for length in lengths), default=0)
    if not whole_ms:
        return DecodedSound(0, 0)
    trimmed_ms = min(
        (length.trimmed_ms for length in lengths if length.whole_ms == whole_ms), default=0
    )
    heard_ms = max(1, whole_ms - min(trimmed_ms, _TRIMMED_MS))
    most_ms = whole_ms
    if is_wav:
        by_bytes = wav_lengths(_all(file))
        most_ms = max(most_ms, *by_bytes.formats_ms, 0)
        if by_bytes.is_cut or len(by_bytes.formats_ms) > 1:
            heard_ms = most_ms
    else:
        most_ms += _unheard_ms(size - heard_bytes - other_bytes, size, heard_bytes, whole_ms)
    if most_ms > longest_ms:
        raise OverflowError(f"the sound lasts longer than {longest_ms} ms")
    return DecodedSound(heard_ms, most_ms)


def _options() -> dict[str, str]:
    pcm = (name for name in av.codecs_available if name.startswith("pcm_"))
    return {
        "format_whitelist": ",".join(FORMATS),
        "codec_whitelist": ",".join((*_CODECS, *sorted(pcm))),
        "protocol_whitelist": "",
        "ignore_editlist": "1",
    }


def _lengths(container: InputContainer, longest_ms: int) -> tuple[list[_StreamLength], int, int]:
    """Return the lengths of audio streams, the decoded bytes, and the bytes of other streams.

    The lengths are empty if a stream has audio that cannot be decoded at all.
    """
    audio = {stream.index for stream in container.streams.audio}
    # A stream whose codec FFmpeg does not know has no context, in spite of PyAV's stub.
    known = [stream for stream in container.streams.audio if stream.codec_context is not None]
    streams = {stream.index: _StreamLength() for stream in known}
    least_rates = {stream.index: _stated_rate(stream) for stream in known}
    for stream in known:
        stream.codec_context.flags2 |= Flags2.skip_manual.value
        stream.codec_context.thread_count = 1
    heard_bytes = 0
    sizes = Counter[int]()
    for packet in _packets(container):
        index = packet.stream_index
        sizes[index] += packet.size
        if index not in streams:
            continue
        try:
            frames = packet.decode()
        except _FAILURES as error:
            _check_memory(error)
            continue  # FFmpeg goes on behind a damaged packet; its bytes count as not decoded
        used = 0
        for frame in frames:
            if isinstance(frame, AudioFrame):
                streams[index].add(frame, least_rates[index])
                used += frame.samples * frame.layout.nb_channels * _SAMPLE_BYTES
        # A parser may hand a decoder junk in one packet with a frame.
        heard_bytes += min(packet.size, used)
        if frames and streams[index].whole_ms > longest_ms:
            raise OverflowError(f"the sound lasts longer than {longest_ms} ms")
    # Sound in a codec that is not known here may be of any length: WavPack needs 7 bytes a second.
    lengths = {index: stream for index, stream in streams.items() if stream.samples}
    if any(sizes[index] for index in audio - lengths.keys()):
        return [], 0, 0
    other_bytes = sum(size for index, size in sizes.items() if index not in audio)
    return list(lengths.values()), heard_bytes, other_bytes


def _packets(container: InputContainer) -> "Iterable[Packet[Stream]]":
    """Yield packets up to the end, or up to the first unreadable position."""
    try:
        yield from container.demux()
    except _FAILURES as error:
        _check_memory(error)


def _check_memory(error: Exception) -> None:
    """Raise `MemoryError` if FFmpeg ran out of memory: the file may be valid."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        raise MemoryError from error


def _stated_rate(stream: av.AudioStream) -> int:
    """Return the sample rate in FLAC's STREAMINFO, 0 for other formats.

    FFmpeg uses the rates of FLAC's frames, libFLAC that of the header.
    """
    extra = stream.codec_context.extradata
    if stream.codec_context.name != "flac" or extra is None or len(extra) < 13:
        return 0
    return int.from_bytes(extra[10:13], "big") >> 4


def _unheard_ms(unheard: int, size: int, heard_bytes: int, whole_ms: int) -> int:
    """Return the maximum duration that another decoder can find in undecoded bytes."""
    unheard -= _BESIDE_BYTES + size // _BESIDE_SHARE
    if unheard <= 0:
        return 0
    bytes_per_s = max(1, min(LEAST_BYTES_PER_S, heard_bytes * 1000 // whole_ms))
    return unheard * 1000 // bytes_per_s


def _all(file: ReadableSound) -> bytes:
    file.seek(0)
    return file.read()
