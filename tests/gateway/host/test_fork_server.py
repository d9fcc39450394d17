"""The process that forks: alone, with its one thread, and what it runs."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gateway.host.fork_server import has_threads, run_module


def test_threads_are_seen() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert has_threads()
    finally:
        stop.set()
        thread.join()
    code = "from gateway.host.fork_server import has_threads; print(has_threads())"
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert alone.stdout == b"False\n"


@pytest.mark.parametrize("name", ["plain_program", "whole_program"])
def test_a_package_is_run_by_its_main(tmp_path: Path, monkeypatch, name: str) -> None:
    (tmp_path / "plain_program.py").write_text("def main(): raise SystemExit(3)")
    package = tmp_path / "whole_program"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("def main(): raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit) as ended:
        run_module(name)
    assert ended.value.code == 3
