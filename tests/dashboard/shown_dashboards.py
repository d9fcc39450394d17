"""Dashboards as people start them, for tests that look at them in a browser."""

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from deploy import warmstart
from deploy.quietports import find_quiet_port

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "dashboard" / "app.py"
START_LIMIT_S = 60


class Dashboards:
    """Dashboards one after the other: tests that follow one another on a ledger share theirs."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._shown: tuple[str | None, Path] | None = None
        self._port = find_quiet_port()  # of all: a browser keeps scripts by address
        self._address = ""
        self._process: subprocess.Popen[bytes] | warmstart.WarmProgram | None = None

    def __call__(self, url: str | None, script: Path = APP, *, warm: bool = True) -> str:
        """Return the address once it answers. `warm`: with all its imports made."""
        if self._shown != (url, script):
            self.stop()
            self._start(url, script, warm)
            self._shown = url, script
        return self._address

    def _start(self, url: str | None, script: Path, warm: bool) -> None:
        folder, port = self._folders.mktemp("dashboard"), self._port
        words = [
            "run", str(script), "--server.headless", "true", "--server.port", str(port),
            "--server.address", "127.0.0.1", "--browser.gatherUsageStats", "false",
            "--server.fileWatcherType", "none",
        ]  # fmt: skip
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder)}
        environ.pop("BREAKEVEN_LEDGER_URL", None)
        if url is not None:
            environ["BREAKEVEN_LEDGER_URL"] = url
        with (folder / "log").open("wb") as log:
            if warm:
                self._process = warmstart.programs().start(
                    words, output=log.fileno(), environ=environ, program=warmstart.DASHBOARD
                )
            else:
                argv = [sys.executable, "-m", "streamlit", *words]
                self._process = subprocess.Popen(argv, env=environ, stdout=log, stderr=log)
        self._address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self._address}/_stcore/health", timeout=5).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError((folder / "log").read_text())

    def stop(self) -> None:
        self._shown = None
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=20)
