"""The protocol without a socket: what is told arrives, and what nobody told does not count."""

import math
import struct

import pytest

from backends.secret import Secret
from gateway.fleet.peers.frames import (
    HELLO_BYTES,
    LENGTH_BYTES,
    LONGEST,
    MAGIC,
    MOST_ENTRIES,
    TAG_BYTES,
    BadFrame,
    FrameReader,
    FrameWriter,
    Handshake,
    hello_frame,
    id_of,
)
from gateway.fleet.peers.peer_load import PeerEngineLoad

SECRET = Secret("s" * 32)
HEARS, DIALS = hello_frame(b"h" * 16, b"1" * 32), hello_frame(b"d" * 16, b"2" * 32)
ENGINE, OTHER = b"e" * 16, b"o" * 16
SHARES = {
    ENGINE: PeerEngineLoad(2, 300.5, 0, 1024, 0, 30, 0),
    OTHER: PeerEngineLoad(1, 0, 77, 512, 1, 0, 0.25),
}


@pytest.fixture
def ends() -> tuple[FrameWriter, FrameReader]:
    key = Handshake(SECRET, HEARS, DIALS).key()
    return FrameWriter(key), FrameReader(key)


def read(reading: FrameReader, frame: bytes) -> dict[bytes, PeerEngineLoad]:
    head, rest = frame[:LENGTH_BYTES], frame[LENGTH_BYTES:]
    assert reading.length(head) == len(rest)
    return reading.shares(head, rest)


def test_what_is_told_is_heard(ends) -> None:
    writing, reading = ends
    for shares in (SHARES, {}, {ENGINE: PeerEngineLoad()}):
        assert read(reading, writing.frame(shares)) == shares


def test_a_greeting_says_who_it_is() -> None:
    assert len(HEARS) == HELLO_BYTES
    assert id_of(HEARS) == b"h" * 16
    for wrong in (b"", HEARS[:-1], HEARS + b"x", b"x" + HEARS[1:], b"GET / HTTP/1.1\r\n" * 4):
        with pytest.raises(BadFrame, match="no hello"):
            id_of(wrong)


def test_a_proof_is_of_one_secret_one_side_and_one_connection() -> None:
    ours = Handshake(SECRET, HEARS, DIALS)
    ours.check("dials", Handshake(SECRET, HEARS, DIALS).proof("dials"))
    again = hello_frame(b"h" * 16, b"3" * 32)  # another challenge
    for proof in (
        Handshake(Secret("t" * 32), HEARS, DIALS).proof("dials"),
        ours.proof("hears"),
        Handshake(SECRET, again, DIALS).proof("dials"),
        b"\0" * TAG_BYTES,
        b"",
    ):
        with pytest.raises(BadFrame, match="another secret"):
            ours.check("dials", proof)


def test_a_frame_counts_once_and_in_its_turn(ends) -> None:
    writing, reading = ends
    first, second, third = (writing.frame(SHARES) for _ in range(3))
    read(reading, first)
    for wrong in (first, third):
        with pytest.raises(BadFrame, match="out of its turn"):
            read(reading, wrong)
    read(reading, second)


def test_a_frame_of_another_connection_does_not_count(ends) -> None:
    later = Handshake(SECRET, HEARS, hello_frame(b"d" * 16, b"4" * 32))
    with pytest.raises(BadFrame, match="changed or sent before"):
        read(ends[1], FrameWriter(later.key()).frame(SHARES))


def test_any_bit_that_is_changed_is_found(ends) -> None:
    writing, reading = ends
    frame = writing.frame(SHARES)
    for place in range(LENGTH_BYTES, len(frame)):
        changed = bytearray(frame)
        changed[place] ^= 1
        with pytest.raises(BadFrame, match="changed or sent before"):
            read(reading, bytes(changed))
    assert read(reading, frame) == SHARES  # and it is the one that was waited for


@pytest.mark.parametrize(
    "length", [0, 1, 8 + TAG_BYTES - 1, 8 + TAG_BYTES + 1, LONGEST + 1, 2**32 - 1]
)
def test_no_frame_is_of_such_a_length(length: int) -> None:
    with pytest.raises(BadFrame, match=f"of {length} bytes"):
        FrameReader.length(struct.pack("!I", length))


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, -math.inf, 1e300])
def test_numbers_that_no_host_has_do_not_count_even_with_the_secret(ends, value) -> None:
    writing, reading = ends
    with pytest.raises(BadFrame, match="numbers that no host has"):
        read(
            reading,
            writing.frame({ENGINE: PeerEngineLoad(), OTHER: PeerEngineLoad(context_tokens=value)}),
        )


def test_an_engine_is_told_of_once_in_a_frame(ends) -> None:
    class Twice(dict):
        def items(self):
            return [*super().items(), *super().items()]

    with pytest.raises(BadFrame, match="numbers that no host has"):
        read(ends[1], ends[0].frame(Twice({ENGINE: PeerEngineLoad(1)})))


def test_the_busiest_go_into_a_frame_that_is_full(ends) -> None:
    writing, reading = ends
    many = {index.to_bytes(16, "big"): PeerEngineLoad(index) for index in range(MOST_ENTRIES + 5)}
    frame = writing.frame(many)
    assert len(frame) <= LENGTH_BYTES + LONGEST
    heard = read(reading, frame)
    assert min(share.sequences for share in heard.values()) == 5.0
    assert MAGIC not in frame
