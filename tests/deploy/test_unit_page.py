"""The service unit that the page on a host has: it waits as long as a host may take to stop."""

import configparser
import re
from pathlib import Path

from gateway.config.schema_server import TimeoutsSection

ROOT = Path(__file__).resolve().parents[2]
AFTER_STREAMS_S = 90  # the ledger writer and what stands beside it, as in the chart and in compose


def test_systemd_waits_for_the_whole_stop() -> None:
    """At 90 s it killed hosts whose ledger writer was still at work."""
    text = (ROOT / "docs" / "how-to" / "run-a-host.md").read_text("utf-8")
    found = re.search(r"```ini\n(.*?)```", text, re.DOTALL)
    assert found is not None
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read_string(found[1])
    limits = TimeoutsSection()
    needed_s = limits.unready_s + limits.drain_s + AFTER_STREAMS_S
    assert int(unit["Service"]["TimeoutStopSec"]) >= needed_s
