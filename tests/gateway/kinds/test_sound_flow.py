"""A file of sound flows: all of it arrives, its last piece not before the settle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.errors import BackendError
from gateway.kinds.sound_flow import BYTES_PER_S, TOKENS_PER_S, SoundFlow


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1), st.sampled_from(["wav", "mp3"]))
def test_every_byte_arrives_and_the_last_piece_is_withheld(pieces, form: str) -> None:
    relay = SoundFlow(form)
    passed = b"".join(relay.feed(piece) for piece in pieces)
    assert passed == b"".join(pieces[:-1])
    assert passed + relay.finish() == b"".join(pieces)
    assert relay.spoken
    assert relay.usage is None
    rate = BYTES_PER_S.get(form, 8_000)
    assert relay.said_bytes // 4 == -(-sum(map(len, pieces)) * TOKENS_PER_S // rate)


def test_no_byte_is_no_answer() -> None:
    relay = SoundFlow("mp3")
    assert relay.feed(b"") == b""
    with pytest.raises(BackendError):
        relay.finish()
