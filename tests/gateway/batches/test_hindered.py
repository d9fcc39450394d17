"""What hinders a runner for a while ends nothing: batches go on once it is over."""

import errno

import pytest

from gateway.batches import runner as running


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), ValueError("a defect")]
)
def test_a_batch_made_while_the_disk_is_full_is_done(
    stack, with_runner, client, line, monkeypatch, patiently, error
) -> None:
    """What the runner tells of itself is a file, and was the end of all its work."""
    usual, tried = running.write_progress, []

    def full(*given: object) -> None:
        tried.append(given)
        raise error

    monkeypatch.setattr(running, "write_progress", full)
    with with_runner(stack):
        made = client.make([line("a"), line("b")])
        patiently(lambda: len(tried) > 1)
        monkeypatch.setattr(running, "write_progress", usual)
        assert client.ended(made)["request_counts"]["completed"] == 2
