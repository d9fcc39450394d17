"""What runs a host starts anew without secrets; other commands and who asks for help do not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.host.preload import _runs_host

ROOT = Path(__file__).resolve().parents[3]
SHOWS = """
import os, sys
from pathlib import Path
from gateway.host import preload
preload.preload()
forked = "BREAKEVEN_FORK_SERVER" in os.environ
known = os.environ.get("SOME_API_KEY")
print(forked, known, b"SOME_API_KEY" in Path("/proc/self/environ").read_bytes(), sys.argv[1:])
"""


def shown(*words: str, **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SHOWS, *words], capture_output=True, text=True, check=True,
        env=os.environ | {"SOME_API_KEY": "s", "PYTHONPATH": str(ROOT)} | environ, timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_host_has_a_fork_server_and_its_own_environment() -> None:
    assert shown("serve", "--config", "x y") == "True s False ['serve', '--config', 'x y']"


def test_these_commands_run_a_host() -> None:
    """What is forked is the same for all of them, so one shows it."""
    words = ["serve", "up", "demo", "keys", "ledger", ""]
    assert [word for word in words if _runs_host(["breakeven", word])] == ["serve", "up", "demo"]
    assert not _runs_host(["breakeven", "up", "--help"])
    assert not _runs_host(["breakeven"])


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (["keys", "list"], {}),
        (["serve"], {"BREAKEVEN_PRELOAD": "0"}),
    ],
)
def test_others_start_as_any_program(words: list[str], environ: dict[str, str]) -> None:
    assert shown(*words, **environ) == f"False s True {words}"


def test_a_process_with_threads_is_not_forked(tmp_path: Path) -> None:
    text = "import threading as t; t.Thread(target=t.Event().wait, daemon=True).start()"
    (tmp_path / "sitecustomize.py").write_text(text)
    told = shown("serve", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert told == "False s False ['serve']"


def test_what_is_preloaded_starts_no_thread_and_opens_nothing() -> None:
    code = (
        "import os\n"
        "from gateway.host.shared_work import do_shared_work; do_shared_work()\n"
        "fds = [os.path.join('/proc/self/fd', name) for name in os.listdir('/proc/self/fd')]\n"
        # A newer libffi keeps its own file open.
        "opened = [fd for fd in fds if os.path.lexists(fd) and 'libffi' not in os.readlink(fd)]\n"
        "print(len(os.listdir('/proc/self/task')), len(opened))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.split() == [b"1", b"3"]
