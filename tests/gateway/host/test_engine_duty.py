"""A host without engines of its own supervises none, and says so."""

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

from gateway.fleet.engine_notes import PARENT, EngineStatusNotes, read_status_notes
from gateway.host.engine_duty import installed, run_engines, supervision_for


def test_what_an_earlier_life_said_of_its_engines_is_gone(tmp_path) -> None:
    EngineStatusNotes(tmp_path, PARENT).publish("pool:a/0", "it starts")
    assert read_status_notes(tmp_path)
    runtime: Any = SimpleNamespace(run_dir=tmp_path, engines=())
    unused: Any = None
    assert supervision_for(unused, runtime, unused, print, installed, None) is None
    assert not read_status_notes(tmp_path)
    asyncio.run(installed())
    asyncio.run(run_engines(None))


def test_a_start_imports_no_supervision() -> None:
    code = "import sys, gateway.host.serve; print('gateway.host.engines' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert told.stdout.strip() == b"False"
