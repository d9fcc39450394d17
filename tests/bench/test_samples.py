"""What was measured before a run ended is there for the next."""

import pytest
from samples import KeptSamples

ORIGIN = {"commit": "abc", "lengths": {"closed_s": 5.0}}


def test_a_run_goes_on_where_one_ended(tmp_path) -> None:
    path = tmp_path / "build" / "samples.json"
    first = KeptSamples(path, ORIGIN, resume=False)
    first.add("closed 2 KB", "ours", {"cpu_ms": 0.5})
    first.add("closed 2 KB", "ours", {"cpu_ms": 0.6})
    first.add("closed 2 KB", "peer", {"cpu_ms": 0.1, "rps": 9.0})
    second = KeptSamples(path, ORIGIN, resume=True)
    assert second.samples == first.samples
    assert second.samples["closed 2 KB"]["ours"] == {"cpu_ms": [0.5, 0.6]}
    rounds = [second.rounds("closed 2 KB", target) for target in ("ours", "peer", "other")]
    assert rounds == [2, 1, 0]
    assert KeptSamples(path, ORIGIN, resume=False).samples == {}  # the control: from the beginning


def test_figures_of_another_checkout_are_not_mixed_in(tmp_path) -> None:
    path = tmp_path / "samples.json"
    KeptSamples(path, ORIGIN, resume=False).add("paced", "ours", {"p50_ms": 1.0})
    with pytest.raises(SystemExit, match="commit abc, this is def"):
        KeptSamples(path, {**ORIGIN, "commit": "def"}, resume=True)
