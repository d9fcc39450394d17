"""Pools that size themselves: leases, plans, changes, instances and scores.

A change has a row before it is made. An instance has a row from its first request on, even if it
never appears. Money is pico-USD; times are microseconds since the epoch.
"""

from typing import Any

from sqlalchemy import BigInteger, Index

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Json, Serial


class FleetLeaseRow(LedgerBase):
    """The lease to size a pool. `fence` rises with each new holder, and changes record it."""

    __tablename__ = "fleet_leases"

    pool: Stored[str] = define_column(primary_key=True)
    holder: Stored[str]
    until_us: Stored[int] = define_column(BigInteger)
    fence: Stored[int] = define_column(BigInteger)


class FleetPoolRow(LedgerBase):
    """The state of a pool's planner, and the time up to which traffic was observed."""

    __tablename__ = "fleet_pools"

    pool: Stored[str] = define_column(primary_key=True)
    through_us: Stored[int] = define_column(BigInteger)
    memory: Stored[dict[str, Any]] = define_column(Json)
    advised: Stored[list[dict[str, Any]]] = define_column(Json)  # engines if advice were followed


class FleetPlanRow(LedgerBase):
    """A plan, stored if its number or reason differs from the previous plan's."""

    __tablename__ = "fleet_plans"
    __table_args__ = (Index(None, "pool", "at_us"),)

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    pool: Stored[str]
    at_us: Stored[int] = define_column(BigInteger)
    mode: Stored[str]  # advise | act
    wanted: Stored[int]
    running: Stored[int]
    reason: Stored[str]
    sentence: Stored[str]
    document: Stored[dict[str, Any]] = define_column(Json)  # forecast, alternatives, values


class FleetInstanceRow(LedgerBase):
    """One engine from its request to its end. `owned` is false if no plan requested it.

    `seen_us`: first listed. `ready_us`: first served. `gone_us`: no longer listed, which ends its
    rent. `name` is its actuator's name for it.
    """

    __tablename__ = "fleet_instances"
    __table_args__ = (Index(None, "pool", "gone_us"),)

    token: Stored[str] = define_column(primary_key=True)
    pool: Stored[str]
    place: Stored[int | None]
    owned: Stored[bool]
    name: Stored[str | None]
    pusd_per_hour: Stored[int] = define_column(BigInteger)
    unit_s: Stored[int]
    least_s: Stored[int]
    asked_us: Stored[int] = define_column(BigInteger)
    seen_us: Stored[int | None] = define_column(BigInteger)
    ready_us: Stored[int | None] = define_column(BigInteger)
    stop_us: Stored[int | None] = define_column(BigInteger)  # requested to drain
    told_us: Stored[int | None] = define_column(BigInteger)  # its actuator was told to stop it
    gone_us: Stored[int | None] = define_column(BigInteger)


class FleetChangeRow(LedgerBase):
    """One change: written before it is made, completed with its outcome.

    `expected_pusd` is the saving that the plan expects over its horizon. `realised_pusd` is the
    saving observed so far, which grows until `until_us`. `engines` is the position, from 1, of the
    engine that it adds or removes.
    """

    __tablename__ = "fleet_changes"
    __table_args__ = (Index(None, "pool", "at_us"),)

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    pool: Stored[str]
    at_us: Stored[int] = define_column(BigInteger)
    fence: Stored[int] = define_column(BigInteger)
    mode: Stored[str]  # advise | act
    verb: Stored[str]  # start | stop | adopt
    token: Stored[str | None]
    engines: Stored[int]
    reason: Stored[str]
    sentence: Stored[str]
    expected_pusd: Stored[int | None] = define_column(BigInteger)
    realised_pusd: Stored[int] = define_column(BigInteger, default=0)
    until_us: Stored[int] = define_column(BigInteger)
    done_us: Stored[int | None] = define_column(BigInteger)
    outcome: Stored[str | None]  # done | failed; null while open, and for advice
    detail: Stored[str | None]


class FleetHourRow(LedgerBase):
    """An hour's score: what ran, what was advised, and API cost by number of engines."""

    __tablename__ = "fleet_hours"

    pool: Stored[str] = define_column(primary_key=True)
    hour_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    covered_us: Stored[int] = define_column(BigInteger)
    requests: Stored[int] = define_column(BigInteger)
    ran_rent_pusd: Stored[int] = define_column(BigInteger)
    ran_api_pusd: Stored[int] = define_column(BigInteger)
    advised_rent_pusd: Stored[int] = define_column(BigInteger)
    advised_api_pusd: Stored[int] = define_column(BigInteger)
    curve: Stored[list[int]] = define_column(Json)
    one_rent_pusd: Stored[int] = define_column(BigInteger)
    least: Stored[int]
    fixed_engines: Stored[int]
