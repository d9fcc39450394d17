"""Operations of `breakeven fleet`: pools that size themselves, plans, and a pause.

A pause is stored like an override: with author, time, note and end. No operation changes the
commands that start and stop engines; only the configuration file does.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, CONTRACTS, OPERATIONS
from gateway.control import override_changes as verbs
from gateway.control.admin.overrides import author
from gateway.control.admin.verb import Note, OperationContext, OperationRefused, list_document, verb
from ledger.fleet.fleet_reads import (
    changes,
    open_instances,
    plans,
    renting_pools,
    scaled_pools,
)
from ledger.fleet.fleet_records import FleetChange, FleetInstance
from ledger.fleet.scaling_notes import EVERY_POOL, PAUSE, PAUSED
from ledger.overrides import NOTHING, Override, store_override
from ledger.spans import DAY_US

DAYS = 7
_Pool = Annotated[str, msgspec.Meta(description="this pool alone; default: every one")]


class FleetStatusInput(msgspec.Struct, forbid_unknown_fields=True):
    pool: _Pool | None = None


class FleetPlanInput(msgspec.Struct, forbid_unknown_fields=True):
    pool: _Pool | None = None


class ExplainFleetInput(msgspec.Struct, forbid_unknown_fields=True):
    pool: Annotated[str, msgspec.Meta(description="the pool whose changes are explained")]
    days: Annotated[int, msgspec.Meta(ge=1, le=366, description="the last so many days")] = DAYS


class PauseFleetInput(msgspec.Struct, forbid_unknown_fields=True):
    pool: _Pool | None = None
    lasts: Annotated[str, msgspec.Meta(description="how long: `90s`, `30m`, `2h`, `7d`")] | None = (
        None
    )
    note: Note | None = None


class ResumeFleetInput(msgspec.Struct, forbid_unknown_fields=True):
    pool: _Pool | None = None
    note: Note | None = None


@verb(
    "GET /fleet",
    CONTRACTS,
    "fleet status",
    "Pools that size themselves: mode, engines with their rent, last plan, and what it earned",
    FleetStatusInput,
)
def fleet_status(place: OperationContext, given: FleetStatusInput) -> dict[str, Any]:
    from ledger.reports.scaling_read import earned_days  # noqa: PLC0415  (a thirtieth of a start)

    stands = verbs.overrides_in_force(place.ledger, place.now_us)
    found = []
    with place.ledger.connect() as connection:
        for pool in _pools(place, given.pool, renting_pools(connection)):
            entry = place.settings.pools.get(pool)
            section = None if entry is None else entry.scale
            rows, kept = open_instances(connection, pool), plans(connection, pool, limit=1)
            days = earned_days(connection, pool, place.now_us - DAYS * DAY_US, place.now_us)
            found.append(
                {
                    "pool": pool,
                    "mode": None if section is None else section.mode,
                    "paused": _paused(pool, stands),
                    "engines": [_instance(row, place.now_us) for row in rows],
                    "plan": _plan(kept[0]) if kept else None,
                    "days": [day.described() for day in days],
                }
            )
    return list_document(found)


@verb(
    "GET /fleet/plan",
    CONTRACTS,
    "fleet plan",
    "The last plan of each pool: forecast, alternatives in dollars, value of the next engine",
    FleetPlanInput,
)
def fleet_plan(place: OperationContext, given: FleetPlanInput) -> dict[str, Any]:
    found = []
    with place.ledger.connect() as connection:
        for pool in _pools(place, given.pool):
            kept = plans(connection, pool, limit=1)
            found.append({"pool": pool, **(_plan(kept[0]) if kept else {"at_us": None})})
    return list_document(found)


@verb(
    "GET /fleet/changes",
    CONTRACTS,
    "fleet explain",
    "Each start and stop of a pool with its reason, expected and realised dollars",
    ExplainFleetInput,
)
def fleet_explain(place: OperationContext, given: ExplainFleetInput) -> dict[str, Any]:
    with place.ledger.connect() as connection:
        (pool,) = _pools(place, given.pool, scaled_pools(connection))
        kept = changes(connection, pool, since_us=place.now_us - given.days * DAY_US)
    return list_document([_change(item) for item in kept])


@verb(
    "POST /fleet/pause",
    OPERATIONS + APPLY,
    "fleet pause",
    "Start and stop no engine by plans until it is resumed; engines that run go on",
    PauseFleetInput,
)
def fleet_pause(place: OperationContext, given: PauseFleetInput) -> dict[str, Any]:
    _pools(place, given.pool)
    by = author(place, given.note, given.lasts)
    kept = _store(place, given.pool, PAUSED, by)
    return {"pool": given.pool, "paused": True, "until_us": kept.until_us}


@verb(
    "POST /fleet/resume",
    OPERATIONS + APPLY,
    "fleet resume",
    "Let plans start and stop engines again",
    ResumeFleetInput,
)
def fleet_resume(place: OperationContext, given: ResumeFleetInput) -> dict[str, Any]:
    _pools(place, given.pool)
    subject = PAUSE + (given.pool or EVERY_POOL)
    stands = verbs.overrides_in_force(place.ledger, place.now_us)
    if all(override.subject != subject for override in stands):
        whom = "all pools together are" if given.pool is None else f"pool {given.pool} is"
        raise OperationRefused(f"{whom} not paused; `breakeven fleet status` lists paused pools")
    _store(place, given.pool, NOTHING, author(place, given.note))
    return {"pool": given.pool, "paused": False}


def _store(
    place: OperationContext, pool: str | None, says: str, by: verbs.OverrideAuthor
) -> Override:
    until_us = None if says == NOTHING else by.until_us
    given = Override(0, PAUSE + (pool or EVERY_POOL), says, until_us, by.at_us, by.by, by.note)
    return store_override(place.ledger, given)


def _pools(place: OperationContext, pool: str | None, recorded: Sequence[str] = ()) -> list[str]:
    """Return pools with `scale`, then pools that only the ledger knows."""
    known = [name for name, entry in place.settings.pools.items() if entry.scale is not None]
    known += [name for name in recorded if name not in known]
    if pool is None:
        return known
    if pool not in known:
        names = f"; there are {', '.join(known)}" if known else ""
        raise OperationRefused(f"there is no pool `{pool}` with `scale`{names}", param="pool")
    return [pool]


def _paused(pool: str, stands: Any) -> str | None:
    for override in stands:
        subjects = (PAUSE + EVERY_POOL, PAUSE + pool)
        if override.says == PAUSED and override.subject in subjects:
            return f"{override.actor}: {override.note}" if override.note else str(override.actor)
    return None


def _instance(row: FleetInstance, now_us: int) -> dict[str, Any]:
    return {
        "token": row.token,
        "engine": None if row.place is None else f"pool:{row.pool}/{row.place}",
        "name": row.name,
        "owned": row.owned,
        "asked_us": row.asked_us,
        "ready_us": row.ready_us,
        "stop_us": row.stop_us,
        "rent_pusd": row.rent_pusd(0, now_us),
    }


def _plan(record: Any) -> dict[str, Any]:
    return {
        "at_us": record.at_us,
        "mode": record.mode,
        "wanted": record.wanted,
        "running": record.running,
        "reason": record.reason,
        "sentence": record.sentence,
        **record.document,
    }


def _change(item: FleetChange) -> dict[str, Any]:
    return {
        "at_us": item.at_us,
        "mode": item.mode,
        "verb": item.verb,
        "token": item.token,
        "engines": item.engines,
        "reason": item.reason,
        "sentence": item.sentence,
        "expected_pusd": item.expected_pusd,
        "realised_pusd": item.realised_pusd,
        "until_us": item.until_us,
        "outcome": item.outcome,
        "detail": item.detail,
    }


VERBS = (fleet_status, fleet_plan, fleet_explain, fleet_pause, fleet_resume)
