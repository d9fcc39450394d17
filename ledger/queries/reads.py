"""All reads of the ledger in one namespace, as in `queries.cells(connection, scope)`.

Each function takes a connection and a `Scope`, runs statements for both PostgreSQL and SQLite, and
returns plain values. Money is integer pico-USD. An attempt without a price counts as unpriced,
never as zero. `FleetEconomics` interprets the figures.
"""

from ledger.fleet.pool_records import CapacityRow, ContractVersion, HourCell, PoolLoad
from ledger.queries.attempts import (
    AttemptCell,
    ComparatorCost,
    FlaggedAttempts,
    OverflowCost,
    SpendPoint,
    cells,
    senders_of_bills,
    spent,
    teams,
)
from ledger.queries.fleet import (
    TeamCell,
    capacities,
    contract_versions,
    contracts,
    engine_samples,
    engines_now,
    first_sample_us,
    hours,
    hours_by_team,
    round_trips,
    samples_bucket_us,
)
from ledger.queries.health import (
    Freshness,
    RefusalCount,
    first_gpu_hour_us,
    first_us,
    freshness,
    refusals,
)
from ledger.queries.load import PoolLoads, loads
from ledger.queries.requests import (
    AttemptComparison,
    AttemptDetail,
    SloAttainment,
    StreamedAnswer,
    TtftPrediction,
    attempts,
    charged_by,
    compared_costs,
    decision,
    slo_attainment,
    streamed,
    ttft_pairs,
)
from ledger.request_kinds import CONVERSATION
from ledger.spans import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.sums.rollup import ANSWERED

__all__ = [
    "ANSWERED",
    "CONVERSATION",
    "DAY_US",
    "HOUR_US",
    "MINUTE_US",
    "AttemptCell",
    "AttemptComparison",
    "AttemptDetail",
    "CapacityRow",
    "ComparatorCost",
    "ContractVersion",
    "FlaggedAttempts",
    "Freshness",
    "HourCell",
    "OverflowCost",
    "PoolLoad",
    "PoolLoads",
    "RefusalCount",
    "Scope",
    "SloAttainment",
    "SpendPoint",
    "StreamedAnswer",
    "TeamCell",
    "TtftPrediction",
    "attempts",
    "capacities",
    "cells",
    "charged_by",
    "compared_costs",
    "contract_versions",
    "contracts",
    "decision",
    "engine_samples",
    "engines_now",
    "first_gpu_hour_us",
    "first_sample_us",
    "first_us",
    "freshness",
    "hours",
    "hours_by_team",
    "loads",
    "refusals",
    "round_trips",
    "samples_bucket_us",
    "senders_of_bills",
    "slo_attainment",
    "spent",
    "streamed",
    "teams",
    "ttft_pairs",
]
