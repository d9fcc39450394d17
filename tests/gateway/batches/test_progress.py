"""What a runner leaves is read whole, or not at all where none ever ran."""

from gateway.batches.progress import Progress, read_progress, write_progress


def test_it_is_read_as_it_was_written(tmp_path) -> None:
    assert read_progress(tmp_path) is None
    for number in range(2):
        progress = Progress(batches=1, lines=2, out=3, ok=4, failed=5, again=number)
        write_progress(tmp_path, progress)
        assert read_progress(tmp_path) == progress
    assert [one.name for one in tmp_path.iterdir()] == ["batches.json"]
