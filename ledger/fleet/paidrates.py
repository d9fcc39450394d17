"""GPU rates and ops hours that people entered, carried into the pools' contracts.

A contract is what the configuration declares, with the rate, its source and the ops hours that
stand entered for its pool over the file's own (`apply_rate`). An entry that begins later becomes a
version of the contract when its time has come (`carry_rates`), from that very instant on: hours
that are closed stay as they were closed. The source of ops hours is an entry of its own: a host of
the version before refuses a rate with a member that it does not know.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, func, insert, select

from ledger.database import reading
from ledger.manual_entries import OPS_SOURCE, RATE, ManualEntry, standing_entries
from ledger.orm.fleet import GpuContractRow

NEWEST_CONTRACT_FILE = "contracts.newest"  # in the run directory: the newest version's number


class GpuRate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`pusd_per_hour`: of one GPU; a pool's part where it shares a machine. None: not known yet.

    `source` says where `pusd_per_hour` comes from; that of the ops hours is in `ops_sources`.
    """

    pusd_per_hour: int | None
    source: str | None
    ops_seconds_per_week: int
    ops_pusd_per_hour: int


_STATED_TOGETHER = (
    ("pusd_per_hour", "source"),
    ("ops_seconds_per_week",),
    ("ops_pusd_per_hour",),
)


def follow_rate(coming: GpuRate, before: GpuRate, after: GpuRate) -> GpuRate:
    """Return `coming`, which begins later, when the rate ahead of it changes to `after`.

    An entry holds a whole rate. Members that equal those of `before`, the rate that it was to
    replace, were left out of it, so they follow the change. Other members were stated, and stay.
    """
    changes = {
        name: getattr(after, name)
        for names in _STATED_TOGETHER
        if all(getattr(coming, name) == getattr(before, name) for name in names)
        for name in names
    }
    return msgspec.structs.replace(coming, **changes)


def rate_of(manual_entry: ManualEntry) -> GpuRate | None:
    """None where the entry hands the word back to the configuration."""
    return None if manual_entry.says is None else msgspec.convert(manual_entry.says, GpuRate)


def apply_rate(contract: Mapping[str, Any], manual_entry: ManualEntry | None) -> dict[str, Any]:
    """The contract's columns with what stands entered."""
    rate = None if manual_entry is None else rate_of(manual_entry)
    return {**contract} if rate is None else {**contract, **msgspec.structs.asdict(rate)}


def standing_rates(connection: Connection, at_us: int) -> dict[str, ManualEntry]:
    """Return what stands entered, by pool, also by a clock that is behind who entered it."""
    return standing_entries(connection, RATE, at_us)


def ops_sources(connection: Connection, at_us: int) -> dict[str, str]:
    """Return where the ops hours in force come from, by pool; without pools that nobody entered."""
    found = standing_entries(connection, OPS_SOURCE, at_us)
    return {name: entry.says["source"] for name, entry in found.items() if entry.says is not None}


def carry_rates(
    connection: Connection, at_us: int, configured: Mapping[str, GpuRate] | None = None
) -> int:
    """Make versions of the contracts that differ from what stands entered; returns how many.

    `configured`: what the configuration says of pools whose entries were taken back; without it
    they wait for the next start.
    """
    latest = _latest(connection)
    made = 0
    for pool, entry in sorted(standing_rates(connection, at_us).items()):
        contract = latest.get(pool)
        rate = rate_of(entry) or (configured or {}).get(pool)
        if contract is None or rate is None:
            continue
        wanted = {**contract, **msgspec.structs.asdict(rate)}
        if wanted == contract:
            continue
        wanted["recorded_us"] = max(entry.from_us, contract["recorded_us"])
        del wanted["id"]
        connection.execute(insert(GpuContractRow), [wanted])
        made += 1
    return made


def read_rates(engine: Engine) -> dict[str, int | None]:
    """By pool, what one GPU costs an hour in pico-USD; None: not known."""
    with reading(engine) as connection:
        return {pool: row["pusd_per_hour"] for pool, row in _latest(connection).items()}


def _latest(connection: Connection) -> dict[str, dict[str, Any]]:
    newest = select(func.max(GpuContractRow.id)).group_by(GpuContractRow.pool)
    query = select(*GpuContractRow.__table__.columns).where(GpuContractRow.id.in_(newest))
    return {row["pool"]: dict(row) for row in connection.execute(query).mappings()}
