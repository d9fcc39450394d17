"""Frames of format 1 survive cutting, flipping and garbage: whole ones come out."""

from hypothesis import given
from hypothesis import strategies as st
from old_journal import encode_old as encode

from ledger.journals.frames import decode
from ledger.journals.records import RequestRefused


def refusal(number: int, padding: int = 0) -> RequestRefused:
    return RequestRefused(
        f"r{number}", number, "k", "t", "o", "m", "p", "budget", 429, decision=b"x" * padding
    )


def records(data: bytes, *, sealed: bool = True) -> list[object]:
    return [frame.record for frame in decode(data, 0, sealed=sealed)]


@given(st.lists(st.integers(0, 2000), max_size=8), st.data())
def test_a_cut_anywhere_keeps_every_whole_frame(paddings, data):
    expected = [refusal(number, padding) for number, padding in enumerate(paddings)]
    frames = [encode(record) for record in expected]
    whole = b"".join(frames)
    cut = data.draw(st.integers(0, len(whole)))
    ends = [sum(map(len, frames[: place + 1])) for place in range(len(frames))]
    kept = sum(end <= cut for end in ends)
    assert records(whole[:cut]) == expected[:kept]


@given(st.integers(0, 2), st.data())
def test_a_flipped_payload_byte_is_one_fault_and_the_rest_is_read(victim, data):
    expected = [refusal(number) for number in range(3)]
    frames = [bytearray(encode(record)) for record in expected]
    frames[victim][data.draw(st.integers(8, len(frames[victim]) - 1))] ^= 0x40
    found = list(decode(b"".join(frames), 0, sealed=True))
    assert [frame.record for frame in found] == [
        None if place == victim else record for place, record in enumerate(expected)
    ]
    assert [frame.fault for frame in found if frame.record is None] == ["checksum"]


def test_garbage_ends_a_sealed_segment_with_a_fault_and_an_open_one_waits():
    good = encode(refusal(1))
    data = good + b"\xff" * 64
    assert [frame.fault for frame in decode(data, 0, sealed=True)] == [None, "no frame"]
    assert records(data, sealed=False) == [refusal(1)]


def test_zeros_after_power_loss_are_a_torn_tail():
    assert records(encode(refusal(1)) + b"\0" * 4096) == [refusal(1)]


def test_a_foreign_payload_with_a_good_checksum_is_a_fault():
    class Other(RequestRefused, tag="other"):
        pass

    foreign = Other("r", 1, "k", "t", "o", "m", "p", "budget", 429)
    (frame,) = decode(encode(foreign), 0, sealed=True)
    assert frame.record is None
    assert frame.fault.startswith("not a record")


def test_places_count_from_the_base():
    data = encode(refusal(1)) + encode(refusal(2))
    first, second = decode(data, 1000, sealed=True)
    assert (first.start, first.end) == (1000, second.start)
    assert second.end == 1000 + len(data)


@given(st.integers(0, 31), st.integers(0, 5))
def test_a_flipped_length_costs_its_frame_alone(bit, victim):
    expected = [refusal(number) for number in range(6)]
    frames = [bytearray(encode(record)) for record in expected]
    frames[victim][bit // 8] ^= 1 << bit % 8
    found = list(decode(b"".join(frames), 0, sealed=True))
    del expected[victim]
    assert [frame.record for frame in found if frame.record is not None] == expected
    is_torn_tail = victim == 5  # its bytes look like those of a write that a kill cut short
    assert is_torn_tail or any(frame.fault for frame in found)
