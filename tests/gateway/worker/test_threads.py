"""The threads of a worker run before it serves, and share the interpreter with it fairly."""

import sys
import threading

from gateway.worker.threads import SWITCH_S, share_interpreter, start_threads


def test_all_threads_run_and_no_work_starts_one() -> None:
    """Python's own executor starts them one by one, beside streams that wait meanwhile."""
    before = set(threading.enumerate())
    executor = start_threads(5)
    started = set(threading.enumerate()) - before
    assert len(started) == 5
    done = [executor.submit(threading.get_ident) for _ in range(50)]
    assert {each.result() for each in done} <= {thread.ident for thread in started}
    assert set(threading.enumerate()) - before == started
    executor.shutdown()
    assert not any(thread.is_alive() for thread in started)


def test_there_are_as_many_as_python_would_start(monkeypatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    executor = start_threads()
    assert executor._max_workers == len(executor._threads) == 6
    executor.shutdown()


def test_the_interpreter_changes_hands_soon() -> None:
    before_s = sys.getswitchinterval()
    try:
        share_interpreter()
        assert sys.getswitchinterval() == SWITCH_S < before_s
    finally:
        sys.setswitchinterval(before_s)
