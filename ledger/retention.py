"""Deletion of rows past retention: attempts, cache hits, fleet plans, postings and others.

Refusals and windows are deleted too. Deletion runs in a thread in small transactions; the sums of
deleted rows are kept.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import Engine

from ledger.budgets.open_claims import heal_windows
from ledger.budgets.window_retention import UNUSED_DAYS, fold_windows
from ledger.fleet.scaling_retention import forget_scaling
from ledger.seals.compact import CompactionResult, PostingCompactor
from ledger.seals.link_proof import SealMismatch
from ledger.seals.retire import AttemptRetirer, RetirementResult
from ledger.seals.retire_hits import HitRetirement, HitRetirer
from ledger.spans import DAY_US

_Step = Callable[..., RetirementResult | CompactionResult | HitRetirement]


class Retention(NamedTuple):
    """Days for which single rows are kept, `None` for ever. Entries are postings and refusals."""

    attempts_days: int | None = None
    entries_days: int | None = None


async def retire_old(engine: Engine, kept: Retention, *, now_us: int) -> None:
    """Delete rows past retention. Broken seals are skipped; `ledger verify` reports them."""
    steps: tuple[tuple[int | None, _Step], ...] = (
        (kept.attempts_days, AttemptRetirer(engine).step),
        (kept.attempts_days, HitRetirer(engine).step),
        (kept.entries_days, PostingCompactor(engine).step),
    )
    for days, step in steps:
        if days is None:
            continue
        before_us = now_us - days * DAY_US
        with contextlib.suppress(SealMismatch):
            while not (await asyncio.to_thread(step, before_us=before_us, at_us=now_us)).waits_for:
                pass
    if kept.attempts_days is not None:
        before_us = now_us - kept.attempts_days * DAY_US
        while await asyncio.to_thread(forget_scaling, engine, before_us=before_us):
            pass
    days = UNUSED_DAYS if kept.attempts_days is None else kept.attempts_days
    while await asyncio.to_thread(fold_windows, engine, before_us=now_us - days * DAY_US):
        pass
    await asyncio.to_thread(heal_windows, engine)
