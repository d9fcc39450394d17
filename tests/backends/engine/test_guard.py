"""The guard: its engine's whole tree ends with it, however it ends."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backends.engine import guard

GUARD = Path(guard.__file__)
# A tree of three: the child and the grandchild in sessions of their own, ids written to a file.
TREE = """
import os, subprocess, sys, time
grandchild = '''
import os, time
open({path!r} + ".2", "w").write(str(os.getpid()))
time.sleep(600)
'''
child = '''
import os, subprocess, sys, time
open({path!r} + ".1", "w").write(str(os.getpid()))
subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True)
time.sleep(600)
'''
subprocess.Popen([sys.executable, "-c", child, grandchild], start_new_session=True)
print("started", flush=True)
{then}
"""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition, *, seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def logged(tmp_path: Path, text: str) -> bool:
    log = tmp_path / "log"
    return log.exists() and text in log.read_text()


def start(tmp_path: Path, code: str, *, parent: int | None = None, **options) -> subprocess.Popen:
    words = [sys.executable, "-I", "-S", str(GUARD), "--parent", str(parent or os.getpid())]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--log", str(tmp_path / "log"), "--", sys.executable, "-c", code]
    return subprocess.Popen(words)


def tree_pids(path: Path) -> list[int]:
    files = [path.with_name(path.name + suffix) for suffix in (".1", ".2")]
    assert wait_until(lambda: all(f.exists() and f.read_text() for f in files))
    return [int(file.read_text()) for file in files]


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 128 + 9), ("pass", 0)],
)
def test_the_engines_exit_code_is_passed_on(tmp_path, code, exit_code):
    assert start(tmp_path, code).wait(20) == exit_code


def test_a_command_that_cannot_start_is_127_and_logged(tmp_path):
    words = ["--parent", str(os.getpid()), "--log", str(tmp_path / "log"), "--", "/nowhere/python"]
    guarded = subprocess.run([sys.executable, str(GUARD), *words], check=False, timeout=20)
    assert guarded.returncode == 127
    assert "/nowhere/python" in (tmp_path / "log").read_text()


def test_when_the_engine_ends_its_children_end(tmp_path):
    path = tmp_path / "tree"
    then = f"while not os.path.exists({str(path) + '.2'!r}): time.sleep(0.01)"
    guarded = start(tmp_path, TREE.format(path=str(path), then=then))
    assert guarded.wait(20) == 0
    assert not any(alive(pid) for pid in tree_pids(path))


def test_without_the_guard_the_same_tree_is_orphaned(tmp_path):
    """The negative control: such children do outlive their parent."""
    path = tmp_path / "tree"
    then = f"while not os.path.exists({str(path) + '.2'!r}): time.sleep(0.01)"
    code = TREE.format(path=str(path), then=then)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20, stdout=subprocess.DEVNULL)
    pids = tree_pids(path)
    assert all(alive(pid) for pid in pids)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_sigterm_asks_the_engine_and_kills_it_after_the_grace(tmp_path):
    stubborn = (
        "import signal, time\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        "time.sleep(600)"
    )
    guarded = start(tmp_path, stubborn, grace=0.3)
    assert wait_until(lambda: logged(tmp_path, "up"))
    guarded.terminate()
    assert guarded.wait(20) == 128 + signal.SIGKILL


def test_sigterm_lets_the_engine_finish(tmp_path):
    polite = (
        "import signal, sys, time\n"
        "def end(*_):\n  time.sleep(0.2); print('finished', flush=True); sys.exit(0)\n"
        "signal.signal(15, end)\n"
        "print('up', flush=True)\ntime.sleep(600)"
    )
    guarded = start(tmp_path, polite, grace=20)
    assert wait_until(lambda: logged(tmp_path, "up"))
    guarded.terminate()
    assert guarded.wait(20) == 0
    assert "finished" in (tmp_path / "log").read_text()


def test_if_the_parent_is_killed_the_tree_ends(tmp_path):
    path = tmp_path / "tree"
    code = TREE.format(path=str(path), then="time.sleep(600)")
    words = [str(GUARD), "--log", str(tmp_path / "log"), "--", sys.executable, "-c", code]
    parent = (
        "import os, subprocess, sys, time\n"
        f"words = {words!r}\n"
        "words[1:1] = ['--parent', str(os.getpid())]\n"
        "process = subprocess.Popen([sys.executable, *words])\n"
        "print(process.pid, flush=True)\ntime.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    with process:
        guarded = int(process.stdout.readline())
        pids = [guarded, *tree_pids(path)]
        assert all(alive(pid) for pid in pids)
        process.kill()
    assert wait_until(lambda: not any(alive(pid) for pid in pids))


def test_a_parent_that_is_gone_already_starts_nothing(tmp_path):
    guarded = start(tmp_path, "print('never')", parent=1)
    assert guarded.wait(20) == 128 + signal.SIGHUP
    assert not (tmp_path / "log").exists()


def test_the_end_of_the_output_rotates_nothing(tmp_path):
    log = guard.RotatingLog(tmp_path / "log", 10)
    log.write(b"ValueError: the cause")
    log.write(b"")
    assert (tmp_path / "log").read_text() == "ValueError: the cause"
    assert not (tmp_path / "log.1").exists()
    log.write(b"more")
    log.close()
    assert (tmp_path / "log").read_text() == "more"


def test_the_log_rotates_and_stays_bounded(tmp_path):
    chatty = "for number in range(20_000): print('line', number)"  # more than a pipe holds
    assert start(tmp_path, chatty, log_bytes=10_000).wait(20) == 0
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["log", "log.1"]
    assert all((tmp_path / name).stat().st_size <= 70_000 for name in files)
    assert "line 19999" in (tmp_path / "log").read_text()


def test_a_full_disk_ends_no_engine(tmp_path):
    """Neither what it says on it, nor that no next log can be begun there."""
    (tmp_path / "log").symlink_to("/dev/full")
    assert start(tmp_path, "print('lost', flush=True); raise SystemExit(7)").wait(20) == 7


def test_a_log_that_cannot_be_begun_is_begun_later(tmp_path, monkeypatch):
    log = guard.RotatingLog(tmp_path / "log", 4)
    log.write(b"one\n")

    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        log.write(b"two\n")
    log.write(b"three\n")
    log.close()
    assert (tmp_path / "log").read_text() == "three\n"
    assert (tmp_path / "log.1").read_text() == "one\n"


SHARES = """
import time
from multiprocessing import shared_memory
made = shared_memory.SharedMemory(create=True, size=64)
print("made", made.name, "end", flush=True)
time.sleep(600)
"""


def test_shared_memory_of_a_killed_tree_is_given_back(tmp_path: Path):
    """Python's tracker removes it once nobody lives who has it; it was killed with them."""
    running = start(tmp_path, SHARES)
    assert wait_until(lambda: logged(tmp_path, " end"))
    name = (tmp_path / "log").read_text().split()[1]
    assert Path("/dev/shm", name).exists()
    running.send_signal(signal.SIGHUP)
    assert running.wait(timeout=20) == 128 + signal.SIGKILL
    assert not Path("/dev/shm", name).exists()
