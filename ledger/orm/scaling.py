"""Fleets that size themselves: who may act, what was planned and done, what ran, what it earned.

A change is a row before anything is done; an instance is a row from the first asking on, whether
it ever came or not. Money is pico-USD; times are microseconds since the epoch.
"""

from typing import Any

from sqlalchemy import BigInteger, Index

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Json, Serial


class FleetLeaseRow(LedgerBase):
    """Tells who sizes a pool now. `fence` grows with each new holder, and a change names it."""

    __tablename__ = "fleet_leases"

    pool: Stored[str] = define_column(primary_key=True)
    holder: Stored[str]
    until_us: Stored[int] = define_column(BigInteger)
    fence: Stored[int] = define_column(BigInteger)


class FleetPoolRow(LedgerBase):
    """The memory of a pool's planner: its memory, and how far traffic was observed."""

    __tablename__ = "fleet_pools"

    pool: Stored[str] = define_column(primary_key=True)
    through_us: Stored[int] = define_column(BigInteger)
    memory: Stored[dict[str, Any]] = define_column(Json)
    advised: Stored[list[dict[str, Any]]] = define_column(Json)  # engines that advice would have


class FleetPlanRow(LedgerBase):
    """One plan, kept where its number or reason is another than the one before's."""

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
    document: Stored[dict[str, Any]] = define_column(Json)  # forecast, alternatives, worths


class FleetInstanceRow(LedgerBase):
    """One engine from its asking to its end. `owned` is false for what no plan asked for.

    `seen_us`: first listed; `ready_us`: first served; `gone_us`: no longer listed, the end of its
    rent. `name` is what its actuator calls it.
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
    stop_us: Stored[int | None] = define_column(BigInteger)  # asked to drain
    told_us: Stored[int | None] = define_column(BigInteger)  # its actuator was told to stop it
    gone_us: Stored[int | None] = define_column(BigInteger)


class FleetChangeRow(LedgerBase):
    """One change: written before it is done, completed with how it ended.

    `expected_pusd` is what the plan expects of it over its horizon, `realised_pusd` what came of
    it by the traffic since; it grows until `until_us`. `engines` is the place in the order of
    engines that it adds or takes away, from 1.
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
    outcome: Stored[str | None]  # done | failed; null while it is open or was advice only
    detail: Stored[str | None]


class FleetHourRow(LedgerBase):
    """An hour's score: what ran, what was advised, and API dollars by number of engines."""

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
