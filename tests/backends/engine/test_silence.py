import io
import wave

import pytest

from backends.engine.silence import RATE, wav


@pytest.mark.parametrize("seconds", [0.0, 0.5, 30.0])
def test_the_standard_library_reads_it(seconds: float) -> None:
    with wave.open(io.BytesIO(wav(seconds))) as opened:
        assert (opened.getnchannels(), opened.getsampwidth()) == (1, 2)
        assert opened.getnframes() == seconds * RATE
        assert set(opened.readframes(RATE)) <= {0}
