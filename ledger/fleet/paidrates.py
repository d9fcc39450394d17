"""GPU rates and ops hours that people entered, applied to the pools' contracts.

A contract is the configuration's, overridden by the rate, its source and the ops hours entered for
its pool (`apply_rate`). An entry with a later start becomes a contract version when its time comes
(`carry_rates`), from that exact time on; closed hours do not change. The source of ops hours is a
separate entry, because hosts of the previous release refuse a rate with an unknown member.
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
    """The rate of one GPU, or of a pool's share of one; `pusd_per_hour` may be unknown.

    `source` is the source of `pusd_per_hour`; sources of ops hours are in `ops_sources`.
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
    """Return a later rate `coming`, updated when the rate before it changes to `after`.

    An entry holds a whole rate. Members equal to those of `before` were not stated by the author,
    so they follow the change. Other members stay.
    """
    changes = {
        name: getattr(after, name)
        for names in _STATED_TOGETHER
        if all(getattr(coming, name) == getattr(before, name) for name in names)
        for name in names
    }
    return msgspec.structs.replace(coming, **changes)


def rate_of(manual_entry: ManualEntry) -> GpuRate | None:
    """Return the entered rate, `None` if the entry restores the configuration."""
    return None if manual_entry.says is None else msgspec.convert(manual_entry.says, GpuRate)


def apply_rate(contract: Mapping[str, Any], manual_entry: ManualEntry | None) -> dict[str, Any]:
    """Return the contract's columns with the entered rate applied."""
    rate = None if manual_entry is None else rate_of(manual_entry)
    return {**contract} if rate is None else {**contract, **msgspec.structs.asdict(rate)}


def standing_rates(connection: Connection, at_us: int) -> dict[str, ManualEntry]:
    """Return the entries in force by pool, even if this clock is behind the author's."""
    return standing_entries(connection, RATE, at_us)


def ops_sources(connection: Connection, at_us: int) -> dict[str, str]:
    """Return the sources of entered ops hours, by pool."""
    found = standing_entries(connection, OPS_SOURCE, at_us)
    return {name: entry.says["source"] for name, entry in found.items() if entry.says is not None}


def carry_rates(
    connection: Connection, at_us: int, configured: Mapping[str, GpuRate] | None = None
) -> int:
    """Add contract versions for pools whose entered rate differs. Return the number.

    `configured` are the configuration's rates of pools whose entries were withdrawn. Without it,
    those pools change at the next start.
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
    """Return the rate of one GPU in pico-USD per hour, by pool; `None` if unknown."""
    with reading(engine) as connection:
        return {pool: row["pusd_per_hour"] for pool, row in _latest(connection).items()}


def _latest(connection: Connection) -> dict[str, dict[str, Any]]:
    newest = select(func.max(GpuContractRow.id)).group_by(GpuContractRow.pool)
    query = select(*GpuContractRow.__table__.columns).where(GpuContractRow.id.in_(newest))
    return {row["pool"]: dict(row) for row in connection.execute(query).mappings()}
