"""The composition root: what it makes of settings and secrets; it closes what it opened."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.worker.bootstrap import readiness


@pytest.mark.parametrize(
    ("draining", "connected", "recorded", "stalled", "missing"),
    [
        (False, True, True, None, []),
        (True, True, True, None, ["draining"]),
        (False, False, True, None, ["ledger writer"]),
        (False, True, False, None, ["journal"]),
        (False, True, True, "journal x: no", ["journal x: no"]),
        (True, False, False, "y", ["draining", "ledger writer", "journal", "y"]),
    ],
)
def test_what_is_missing_for_readiness(draining, connected, recorded, stalled, missing) -> None:
    hot, desk = SimpleNamespace(draining=draining), SimpleNamespace(connected=connected)
    gate = SimpleNamespace(is_open=lambda: recorded, stalled=lambda: stalled)
    assert readiness(hot, desk, gate) == missing


def test_a_stopped_worker_leaves_no_socket_and_no_promise(run_stack) -> None:
    with run_stack() as stack:
        for _ in range(3):
            assert stack.chat("own", stream=True, max_tokens=5).status_code == 200
        home = next(stack.runtime.journal_dir.glob("v2/worker-0-*"))
        board = (stack.runtime.run_dir / "board").read_bytes()
        assert any(board[16 : 16 + 8])  # the worker's pid
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not [link for link in links if str(home) in str(link.readlink())]
    board = (stack.runtime.run_dir / "board").read_bytes()
    size = stack.runtime.layout.worker_cells * 8
    assert not any(board[16 : 16 + size])
