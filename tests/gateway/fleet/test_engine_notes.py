"""Words about engines, left by the processes that know of them."""

from pathlib import Path

from gateway.fleet.engine_notes import PARENT, TELEMETRY, EngineStatusNotes, read_status_notes


def test_words_are_found_by_engine_and_gone_with_their_reason(tmp_path: Path) -> None:
    assert read_status_notes(tmp_path) == {}
    parent, telemetry = EngineStatusNotes(tmp_path, PARENT), EngineStatusNotes(tmp_path, TELEMETRY)
    parent.publish("pool:a/0", "exited with 1: no memory")
    telemetry.publish("pool:a/0", "refuses")
    telemetry.publish("pool:b/0", "its metrics cannot be read")
    assert read_status_notes(tmp_path) == {
        "pool:a/0": "exited with 1: no memory", "pool:b/0": "its metrics cannot be read",
    }  # fmt: skip
    parent.publish("pool:a/0")
    telemetry.publish("pool:b/0")
    assert read_status_notes(tmp_path) == {"pool:a/0": "refuses"}


def test_what_an_earlier_run_said_is_gone_with_the_first_word(tmp_path: Path) -> None:
    EngineStatusNotes(tmp_path, PARENT).publish("pool:a/0", "exited with 1")
    EngineStatusNotes(tmp_path, PARENT).publish()
    assert read_status_notes(tmp_path) == {}


def test_words_are_written_when_they_change(tmp_path: Path) -> None:
    words = EngineStatusNotes(tmp_path, PARENT)
    words.publish("pool:a/0", "blocked")
    (tmp_path / PARENT).unlink()
    words.publish("pool:a/0", "blocked")
    assert read_status_notes(tmp_path) == {}
    EngineStatusNotes(tmp_path / "nowhere", PARENT).publish("pool:a/0", "a full disk ends nothing")
