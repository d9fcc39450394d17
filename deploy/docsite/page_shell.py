"""A shell in one folder that runs the blocks of a page one after the other, as typed.

A `terminal` block runs in the background until the shell is closed. Its output goes to
`terminal.log`.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

END: Final = "--end-of-block--"
LOG: Final = "terminal.log"
POLL_S: Final = 0.1
PATIENCE_S: Final = 40.0  # a stopping gateway finishes its streams and applies its journal


class BlockError(Exception):
    """A block that failed, or whose background program did not become ready."""


class PageShell:
    """A bash process. `run` types a block into it and waits until the block ends."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._shell = subprocess.Popen(
            ["bash"], cwd=folder, env=dict(environ), text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the shell and all programs that it started: SIGTERM first, SIGKILL after 40 s."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._shell.pid, number)
            self._shell.poll()
            if self._is_over(PATIENCE_S):
                break
        self._shell.wait()
        self._shell.stdin.close()
        self._shell.stdout.close()

    def run(self, text: str) -> str:
        """Run a block to its end and return its output.

        Raises `BlockError` at the first command that fails.
        """
        self._type(f"set -e -o pipefail; trap 'echo {END}$?' EXIT\n{text}\necho {END}0\n")
        printed: list[str] = []
        assert self._shell.stdout is not None
        for line in self._shell.stdout:
            before, mark, status = line.partition(END)
            printed.append(before)
            if mark:
                if status.strip() != "0":
                    raise BlockError(f"status {status.strip()}:\n{text}\n{''.join(printed)}")
                return "".join(printed)
        raise BlockError(f"the shell ended in:\n{text}\n{''.join(printed)}")

    def start(self, text: str, is_ready: Callable[[], bool], limit_s: float) -> None:
        """Run a block in the background and wait until its program is ready.

        Raises `BlockError` when the shell ends, or the program is not ready after `limit_s`.
        """
        self._type(f"( {text}\n) >>{LOG} 2>&1 </dev/null &\n")
        until = time.monotonic() + limit_s
        while not is_ready():
            if time.monotonic() > until or self._shell.poll() is not None:
                raise BlockError(f"not ready after {limit_s:.0f} s:\n{text}\n{self.log()}")
            time.sleep(POLL_S)

    def log(self) -> str:
        """Return the output of the background blocks."""
        path = self._folder / LOG
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _type(self, text: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(text)
        self._shell.stdin.flush()

    def _is_over(self, patience_s: float) -> bool:
        """Wait until the shell's process group is empty. Return False on a timeout."""
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            self._shell.poll()  # reaps the shell: a zombie would still be in the group
            try:
                os.killpg(self._shell.pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(POLL_S)
        return False
