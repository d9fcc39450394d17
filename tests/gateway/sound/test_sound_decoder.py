"""A worker's decoder: it answers within its limits whatever a file does, and goes on."""

import asyncio
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.sound import sound_decoder
from gateway.sound.decoded_sound import DecodedSound, DecodeLimits
from gateway.sound.sound_decoder import DecoderBusyError, SoundDecoder, sounds_for

NOTHING = DecodedSound(0, 0)
# Children that sleep for files of one byte, and crash for files of two.
ODD = (
    "import sys; sys.path.insert(0, sys.argv.pop()); import os, time; "
    "from gateway.sound import decoder_host as host; first = host.decode_sound; "
    "odd = {1: lambda: time.sleep(60), 2: os.abort}; "
    "host.decode_sound = lambda file, size, most=0: odd.get(size, lambda: first(file, size))(); "
    "host.main()"
)


def short(_: int) -> DecodeLimits:
    return DecodeLimits(cpu_s=1, wall_s=0.2)


def check_process(pid: int) -> None:
    """The process that forks has no environment, one socket, and can get no privileges."""
    process = Path(f"/proc/{pid}")
    assert process.joinpath("environ").read_bytes() == b""
    opened = [str(each.readlink()) for each in process.joinpath("fd").iterdir()]
    allowed = ("/dev/null", "socket:", "anon_inode:[eventpoll]", "/memfd:errors")
    opened = [name for name in opened if "/libffi." not in name]  # a newer one keeps itself open
    assert [name for name in opened if not name.startswith(allowed)] == []
    assert sum(name.startswith("socket:") for name in opened) == 1
    assert "NoNewPrivs:\t1" in process.joinpath("status").read_text()


@pytest.fixture
async def decoder() -> AsyncIterator[SoundDecoder]:
    found = SoundDecoder()
    yield found
    await found.aclose()


@pytest.fixture
async def odd() -> AsyncIterator[SoundDecoder]:
    found = SoundDecoder(short, command=(sys.executable, "-I", "-c", ODD))
    yield found
    await found.aclose()


async def test_the_process_starts_with_the_first_sound_and_ends_with_the_worker(
    decoder: SoundDecoder, sounds: dict[str, bytes]
) -> None:
    assert decoder.pid is None
    assert await decoder.decode(sounds["wav"]) == DecodedSound(2000, 2000)
    pid = decoder.pid
    assert pid is not None
    check_process(pid)
    await decoder.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_many_sounds_at_once_have_their_own_lengths(
    decoder: SoundDecoder, sounds: dict[str, bytes]
) -> None:
    found = await asyncio.gather(*(decoder.decode(data) for data in sounds.values()))
    assert all(length is not None and 2000 <= length.heard_ms <= 2060 for length in found)


async def test_a_killed_process_starts_again(
    decoder: SoundDecoder, sounds: dict[str, bytes]
) -> None:
    await decoder.decode(sounds["wav"])
    assert decoder.pid is not None
    os.kill(decoder.pid, signal.SIGKILL)
    assert await decoder.decode(sounds["flac"]) == DecodedSound(2000, 2000)


async def test_a_process_that_is_killed_at_work_is_started_again(
    odd: SoundDecoder, sounds: dict[str, bytes]
) -> None:
    assert await odd.decode(sounds["wav"]) == DecodedSound(2000, 2000)
    at_work = asyncio.create_task(odd.decode(b"1"))
    await asyncio.sleep(0)
    assert odd.pid is not None
    os.kill(odd.pid, signal.SIGKILL)
    assert await at_work is None  # its second try is late
    assert await odd.decode(sounds["wav"]) == DecodedSound(2000, 2000)


async def test_a_killed_child_is_tried_once_more(
    decoder: SoundDecoder, sounds: dict[str, bytes], monkeypatch
) -> None:
    lines = iter([b"crashed\n", None])
    line = decoder._line

    async def once(sound: bytes) -> bytes:
        return next(lines) or await line(sound)

    monkeypatch.setattr(decoder, "_line", once)
    assert await decoder.decode(sounds["wav"]) == DecodedSound(2000, 2000)


async def test_hostile_files_end_within_their_limits_and_the_next_sound_is_decoded(
    odd: SoundDecoder, sounds: dict[str, bytes]
) -> None:
    found = await asyncio.gather(*(odd.decode(data) for data in (b"1", b"22", b"1", b"22")))
    assert found == [None] * 4
    assert await odd.decode(sounds["wav"]) == DecodedSound(2000, 2000)


async def test_a_sound_that_gets_no_child_in_time_is_not_at_fault(sounds: dict[str, bytes]) -> None:
    command = (sys.executable, "-I", "-c", ODD)
    odd = SoundDecoder(lambda _: DecodeLimits(9, 60.0), queue_s=0.05, command=command)
    teams = map(str, range(sound_decoder.CHILDREN))
    busy = [asyncio.create_task(odd.decode(b"1", team)) for team in teams]
    await asyncio.sleep(0)
    with pytest.raises(DecoderBusyError):
        await odd.decode(sounds["wav"])
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    odd._queue_s = 30.0
    assert await odd.decode(sounds["wav"]) == DecodedSound(2000, 2000)  # places are free again
    await odd.aclose()


async def test_one_teams_sounds_stop_nobody_elses(sounds: dict[str, bytes]) -> None:
    command = (sys.executable, "-I", "-c", ODD)
    odd = SoundDecoder(lambda _: DecodeLimits(9, 60.0), command=command)
    hostile = sounds_for(odd, "a")
    busy = [asyncio.create_task(hostile.decode(b"1")) for _ in range(2 * sound_decoder.CHILDREN)]
    await asyncio.sleep(0)
    assert await sounds_for(odd, "b").decode(sounds["wav"]) == DecodedSound(2000, 2000)
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    await hostile.aclose()


async def test_a_decoder_that_does_not_start_is_not_started_for_each_sound(caplog) -> None:
    broken = SoundDecoder(command=(sys.executable, "-c", "raise SystemExit('no library')"))
    assert [await broken.decode(b"x"), await broken.decode(b"x")] == [None, None]
    assert "no library" in caplog.text
    assert "a moment ago" in caplog.text


def flac_bomb() -> bytes:
    """Silence of 18 hours at 1 Hz in constant subframes: 12 bytes for each 65,535 samples."""
    info = struct.pack(">HH6xQ16x", 65_535, 65_535, 1 << 44 | 15 << 36)
    return b"fLaC\x80\0\0\x22" + info


def endless_mp4() -> bytes:
    """Boxes inside boxes without end."""
    return b"\0\0\0\x18ftypM4A \0\0\0\0M4A mp42" + b"\0\0\0\x08moov" * 100_000


@pytest.mark.parametrize(
    "data",
    [
        b"", flac_bomb(), endless_mp4(), b"\x1a\x45\xdf\xa3" + b"\x01" * 50_000,
        b"RIFF\xff\xff\xff\xffWAVE" + b"junk\0\0\0\0" * 100_000,
        b"OggS\0\2" + b"\0" * 50_000, b"ID3\4\0\0\x7f\x7f\x7f\x7f" + b"\xff\xfb" * 50_000,
    ],
)  # fmt: skip
async def test_a_file_of_heads_alone_has_no_sound(decoder: SoundDecoder, data: bytes) -> None:
    assert await decoder.decode(data) == NOTHING


async def test_a_wav_of_endless_seconds_has_no_length(sounds: dict[str, bytes]) -> None:
    """Two million seconds in two megabytes: past its CPU time, or past the longest sound."""
    decoder = SoundDecoder(lambda _: DecodeLimits(cpu_s=1, wall_s=20.0))
    head = bytes.fromhex("10000000 0100 0100 01000000 01000000 0100 0800")
    data = b"RIFF\0\0\0\0WAVEfmt " + head + b"data\xff\xff\xff\x7f" + bytes(2_000_000)
    assert await decoder.decode(data) is None
    assert await decoder.decode(sounds["wav"]) == DecodedSound(2000, 2000)
    await decoder.aclose()
