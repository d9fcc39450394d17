"""A worker keeps up with what its ledger can be asked for, and with nothing else."""

from types import SimpleNamespace

import pytest

from gateway.clock import Clock
from gateway.worker.ledger_follow import LedgerReaders, LiveParts, followers_of


@pytest.mark.parametrize(
    "known",
    [(), ("policies",), ("rates", "overrides"), ("newer_prices", "policies", "rates", "overrides")],
)
def test_one_chore_for_each_that_can_be_read(tmp_path, known) -> None:
    prices = SimpleNamespace(newest_version=0)
    ledger = LedgerReaders(prices, None, None, **dict.fromkeys(known, tuple))
    moving = LiveParts(None, None, SimpleNamespace(number=0, overrides=(), overrule=None))
    runtime = SimpleNamespace(run_dir=tmp_path)
    chores = list(followers_of(None, ledger, runtime, moving, Clock()))
    assert len(chores) == len(known)
    for chore in chores:
        chore.close()
