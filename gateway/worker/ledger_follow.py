"""Ledger reads of a worker, and the followers that keep it up to date."""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Engine

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.fleet.candidates import CandidateBuilder
from gateway.fleet.fleet import Fleet
from gateway.followers import keep_up
from gateway.request.active_policies import ActivePolicies
from gateway.runtime import Runtime
from gateway.worker.gpu_rate_follower import GpuRateFollower, ReadRates
from gateway.worker.override_follower import OverrideFollower, ReadOverrides
from gateway.worker.policy_follower import PolicyFollower, ReadPolicies
from gateway.worker.price_follower import PriceFollower, ReadNewer
from ledger.fleet.paidrates import NEWEST_CONTRACT_FILE
from ledger.identity.keys import KeyRing
from ledger.lengths import AnswerLength
from ledger.overrides import Override
from ledger.policies import NEWEST_POLICY_FILE
from ledger.prices.book import PriceBook
from ledger.prices.stored import NEWEST_PRICE_FILE


@dataclass(frozen=True, slots=True)
class LedgerReaders:
    """Ledger reads of a worker: prices, keys, past answer lengths, and followed versions.

    `reader` is a read-only engine for usage and costs.
    """

    prices: PriceBook
    keys: KeyRing
    reader: Engine
    lengths: Sequence[AnswerLength] = ()
    newer_prices: ReadNewer | None = None  # None: the prices of the start stay
    policies: ReadPolicies | None = None  # None: those of the configuration file
    overrides: ReadOverrides | None = None  # None: no overrides
    rates: ReadRates | None = None  # None: the rates of the configuration


class LiveParts(NamedTuple):
    """Parts of a worker that new ledger versions change."""

    candidates: CandidateBuilder
    fleet: Fleet
    in_force: ActivePolicies
    reset: Callable[[Sequence[Override]], None] = lambda _: None  # resets of estimates by operators


def followers_of(
    settings: Settings, ledger: LedgerReaders, runtime: Runtime, moving: LiveParts, clock: Clock
) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield the coroutines that follow new ledger versions while the worker runs."""
    run_dir, (candidates, fleet, in_force, reset) = runtime.run_dir, moving
    if ledger.newer_prices is not None:
        prices = PriceFollower(ledger.prices, ledger.newer_prices, candidates)
        yield keep_up(run_dir, NEWEST_PRICE_FILE, prices)
    if ledger.policies is not None:
        policies = PolicyFollower(settings, ledger.policies, in_force)
        yield keep_up(run_dir, NEWEST_POLICY_FILE, policies)
    if ledger.rates is not None:
        rates = GpuRateFollower(ledger.rates, fleet, in_force)
        yield keep_up(run_dir, NEWEST_CONTRACT_FILE, rates)
    if ledger.overrides is not None:
        overruling = OverrideFollower(ledger.overrides, in_force, clock.wall_us, reset)
        yield overruling.run(run_dir)
