"""What is done once before the forks is done, and leaves out what few hosts need."""

import json
import subprocess
import sys

# In a program of its own: here everything is imported already.
PROGRAM = """
import json, sys
from gateway.host.shared_work import do_shared_work
do_shared_work()
from gateway.config.settings import Settings
from ledger.prices.modellimits import model_limits
import gc
import gateway.host.serve, gateway.cli.app, gateway.cli.serve
print(json.dumps({
    "built": Settings.__pydantic_complete__,
    "read": model_limits.cache_info().currsize,
    "frozen": gc.get_freeze_count() > 0 and gc.isenabled(),
    "modules": sorted(sys.modules),
}))
"""
# Each is for some hosts, or for the first who asks: all would pay for it at each start.
LATER = (
    "httpx", "httpcore", "rich.console", "sqlalchemy.dialects.postgresql", "gateway.host.engines",
    "ledger.reports.usage", "ledger.reports.verdict_read", "ledger.queries.tags",
)  # fmt: skip


def test_what_processes_do_alike_is_done_and_what_few_need_is_not() -> None:
    words = [sys.executable, "-c", PROGRAM]
    told = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert (told["built"], told["read"], told["frozen"]) == (True, 1, True)
    assert "gateway.worker.app" in told["modules"]
    assert set(LATER) & set(told["modules"]) == set()
