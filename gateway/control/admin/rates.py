"""Operations of `breakeven rates`: cost of own GPUs and of their operation, with sources."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from sqlalchemy import Connection

from gateway.auth import APPLY, CONTRACTS
from gateway.config.declarations import contracts
from gateway.config.settings import Settings
from gateway.control.admin.verb import NoInput, Note, OperationContext, OperationRefused, verb
from gateway.followers import FOLLOW_S
from ledger.declared import DeclaredContract
from ledger.fleet.accrual import midnight_us
from ledger.fleet.paidrates import (
    GpuRate,
    apply_rate,
    carry_rates,
    follow_rate,
    ops_sources,
    rate_of,
    standing_rates,
)
from ledger.manual_entries import (
    OPS_SOURCE,
    RATE,
    ManualEntry,
    enter,
    entries,
    entries_in_force,
    latest_us,
    upcoming_entries,
)
from ledger.money import PPM, MoneyError, split_largest_remainder, usd_exact, usd_to_pusd

HOUR_S, WEEK_HOURS, MOST_USD = 3_600, 168, 1_000_000
FURTHEST_YEARS = 10
FURTHEST_US = FURTHEST_YEARS * 366 * 86_400 * 10**6

_Pool = Annotated[str, msgspec.Meta(description="of the configuration")]
_Usd = Annotated[Decimal, msgspec.Meta(description="dollars")]


class EnterRateInput(msgspec.Struct, forbid_unknown_fields=True):
    """Input of a rate; missing fields keep their value of its first day.

    `source` is the source of the given fields: the GPU rate, the ops cost, or both. Without any of
    these fields it is the source of the GPU rate.
    """

    pool: _Pool
    source: Annotated[
        str, msgspec.Meta(min_length=1, max_length=300, description="of what is entered")
    ]
    usd_per_hour: Annotated[Decimal, msgspec.Meta(description="of one GPU")] | None = None
    ops_hours_per_week: (
        Annotated[Decimal, msgspec.Meta(description="people's time on this pool")] | None
    ) = None
    ops_usd_per_hour: _Usd | None = None
    since: (
        Annotated[date, msgspec.Meta(description="first UTC day; without it: at once")] | None
    ) = None
    note: Note | None = None


class WithdrawRateInput(msgspec.Struct, forbid_unknown_fields=True):
    pool: _Pool
    note: Note | None = None


@verb(
    "GET /rates",
    CONTRACTS,
    "rates list",
    "What GPUs and ops hours cost by pool, as configured and as entered, and who entered what",
    NoInput,
)
def rates_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    declared = _declared_contracts(place.settings)
    with place.ledger.connect() as connection:
        found = entries(connection, RATE)
        standing = standing_rates(connection, place.now_us)
        sources = ops_sources(connection, place.now_us)
    later = upcoming_entries(found, latest_us(found, place.now_us))
    pools = []
    for name, contract in declared.items():
        entry = standing.get(name)
        pools.append(
            {
                "pool": name, "gpu_type": contract["gpu_type"],
                "gpus": contract["gpus_per_replica"] * contract["replicas"],
                "machine": contract["machine"], "simulated": contract["simulated"],
                "in_force": _terms(apply_rate(contract, entry)), "configured": _terms(contract),
                "ops_source": sources.get(name),
                "entered": None if entry is None or entry.says is None else _entry(entry),
                "to_come": [_entry(each) for each in later if each.name == name],
            }
        )  # fmt: skip
    return {"object": "list", "data": pools, "entries": [_entry(entry) for entry in found]}


@verb(
    "POST /rates",
    CONTRACTS + APPLY,
    "rates enter",
    f"Enter a pool's rates, at once or from a day on; gateways follow within {FOLLOW_S:g} s",
    EnterRateInput,
)
def rates_enter(place: OperationContext, given: EnterRateInput) -> dict[str, Any]:
    """Enter a rate. `carried` are later entries that now include it; `to_come` all later ones."""
    declared = _declared_contracts(place.settings)
    names = _pools_sharing_machine(declared, given.pool)
    from_us = _start_us_of(given.since, place.now_us)
    with place.ledger.begin() as connection:
        found = entries(connection, RATE)
        at_us = latest_us(found, from_us) if given.since is None else from_us
        counting, later = entries_in_force(found, at_us), upcoming_entries(found, at_us)
        before = {name: apply_rate(declared[name], counting.get(name)) for name in names}
        rates = _rates(given, before, place.settings)
        carried, to_come = [], []
        for name, rate in rates.items():
            coming = [entry for entry in later if entry.name == name]
            for entry, follows in _followed(coming, _rate(before[name]), rate):
                if follows is None:
                    to_come.append(entry)
                    continue
                note, begins_us = given.note or entry.note, entry.from_us
                carried.append(
                    _enter_rate(connection, place, name, follows, from_us=begins_us, note=note)
                )
                to_come.append(carried[-1])
        if _has_ops(given):
            _enter_ops_source(connection, place, given.pool, given.source, from_us)
        # The entry is the last of its pool: a repeated request finds it and does not add another.
        said = [
            _enter_rate(connection, place, name, rate, from_us=from_us, note=given.note)
            for name, rate in rates.items()
        ]
        carry_rates(connection, place.now_us)
    return {
        "entered": [_entry(line) for line in said], "by": place.by,
        "carried": [_entry(line) for line in carried],
        "to_come": [_entry(line) for line in to_come],
    }  # fmt: skip


@verb(
    "POST /rates/withdraw",
    CONTRACTS + APPLY,
    "rates withdraw",
    "Take what was entered for a pool back: the configuration's rates count again",
    WithdrawRateInput,
)
def rates_withdraw(place: OperationContext, given: WithdrawRateInput) -> dict[str, Any]:
    """Return to the configuration's rates at once, and drop all later entries."""
    declared = _declared_contracts(place.settings)
    names = _pools_sharing_machine(declared, given.pool)
    with place.ledger.begin() as connection:
        found = entries(connection, RATE)
        standing, later = (
            standing_rates(connection, place.now_us),
            upcoming_entries(found, latest_us(found, place.now_us)),
        )
        known = {name for name, entry in standing.items() if entry.says is not None}
        if not (known | {entry.name for entry in later}) & set(names):
            raise OperationRefused(
                f"no rate is entered for pool `{given.pool}`; `breakeven rates list` shows all",
                param="pool",
            )
        said = [
            _enter_rate(connection, place, name, None, from_us=place.now_us, note=given.note)
            for name in names
        ]
        sourced = {entry.name for entry in entries(connection, OPS_SOURCE)}
        for name in sourced.intersection(names):
            _enter_ops_source(connection, place, name, None, place.now_us)
        carry_rates(connection, place.now_us, {name: _rate(declared[name]) for name in names})
    return {"entered": [_entry(line) for line in said], "by": place.by}


def _enter_rate(
    connection: Connection,
    place: OperationContext,
    pool: str,
    rate: GpuRate | None,
    *,
    from_us: int,
    note: str | None,
) -> ManualEntry:
    says = None if rate is None else msgspec.structs.asdict(rate)
    given = ManualEntry(0, RATE + pool, says, from_us, place.now_us, place.by, note)
    return enter(connection, given)


def _enter_ops_source(
    connection: Connection, place: OperationContext, pool: str, source: str | None, from_us: int
) -> None:
    says = None if source is None else {"source": source}
    enter(connection, ManualEntry(0, OPS_SOURCE + pool, says, from_us, place.now_us, place.by))


def _followed(
    coming: Sequence[ManualEntry], before: GpuRate, after: GpuRate
) -> Iterator[tuple[ManualEntry, GpuRate | None]]:
    """Yield the later entries of a pool in order, each with its new rate if that changes."""
    for entry in coming:
        rate = rate_of(entry)
        if rate is None:
            return
        follows = follow_rate(rate, before, after)
        yield entry, None if follows == rate else follows
        before, after = rate, follows


def _rates(
    given: EnterRateInput, now: Mapping[str, Mapping[str, Any]], settings: Settings
) -> dict[str, GpuRate]:
    """Return rates by pool; pools on one machine split its rate exactly by their shares."""
    names = list(now)
    rates: list[int | None] = [now[name]["pusd_per_hour"] for name in names]
    if given.usd_per_hour is not None:
        whole = _pusd("usd_per_hour", given.usd_per_hour)
        weights = [int(settings.pools[name].gpu.share * PPM) for name in names]
        rates = [*split_largest_remainder(whole, weights)]
    found = {}
    for name, pusd in zip(names, rates, strict=True):
        rate = msgspec.structs.replace(_rate(now[name]), pusd_per_hour=pusd)
        if given.usd_per_hour is not None or not _has_ops(given):
            rate = msgspec.structs.replace(rate, source=given.source)
        if name == given.pool:
            rate = _with_ops(rate, given)
        found[name] = rate
    return found


def _has_ops(given: EnterRateInput) -> bool:
    return given.ops_hours_per_week is not None or given.ops_usd_per_hour is not None


def _with_ops(rate: GpuRate, given: EnterRateInput) -> GpuRate:
    if (hours := given.ops_hours_per_week) is not None:
        if not 0 <= hours <= WEEK_HOURS * 100:
            words = f"`ops_hours_per_week` is from 0 to {WEEK_HOURS * 100}"
            raise OperationRefused(words, param="ops_hours_per_week")
        rate = msgspec.structs.replace(rate, ops_seconds_per_week=round(hours * HOUR_S))
    if given.ops_usd_per_hour is not None:
        pusd = _pusd("ops_usd_per_hour", given.ops_usd_per_hour)
        rate = msgspec.structs.replace(rate, ops_pusd_per_hour=pusd)
    return rate


def _pusd(name: str, usd: Decimal) -> int:
    """Return exact pico-USD. A GPU rate must be above 0: owned GPUs cost power and wear."""
    least = "more than 0" if name == "usd_per_hour" else "0 or more"
    if not usd.is_finite() or usd < 0 or usd > MOST_USD or (name == "usd_per_hour" and not usd):
        raise OperationRefused(f"`{name}` is {least} and at most {MOST_USD} dollars", param=name)
    try:
        return usd_to_pusd(usd)
    except MoneyError as error:
        raise OperationRefused(str(error), param=name) from error


def _start_us_of(since: date | None, now_us: int) -> int:
    if since is None:
        return now_us
    from_us = midnight_us(since) or 0
    if from_us <= now_us:
        words = (
            f"{since} has begun: leave `since` out, and the rate counts at once. Hours that are "
            "closed stay as they were closed; what a bill says of them is an invoice to bring in"
        )
        raise OperationRefused(words, param="since")
    if from_us > now_us + FURTHEST_US:
        words = f"{since} is more than {FURTHEST_YEARS} years away: is its year as you meant it?"
        raise OperationRefused(words, param="since")
    return from_us


def _declared_contracts(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the configured contracts by pool, as columns of a contract."""
    found: list[DeclaredContract] = contracts(settings)
    return {contract.pool: asdict(contract) for contract in found}


def _pools_sharing_machine(declared: Mapping[str, Mapping[str, Any]], pool: str) -> list[str]:
    """Return the pool and all others on its machine."""
    if pool not in declared:
        raise OperationRefused(
            f"the configuration has no pool `{pool}`: name one of `pools`", param="pool"
        )
    machine = declared[pool]["machine"]
    if machine is None:
        return [pool]
    return [name for name, entry in declared.items() if entry["machine"] == machine]


def _rate(contract: Mapping[str, Any]) -> GpuRate:
    return GpuRate(*(contract[name] for name in GpuRate.__struct_fields__))


def _terms(contract: Mapping[str, Any]) -> dict[str, Any]:
    rate = _rate(contract)
    pusd = rate.pusd_per_hour
    return {
        "usd_per_hour": None if pusd is None else usd_exact(pusd),
        "source": rate.source,
        "ops_hours_per_week": rate.ops_seconds_per_week / HOUR_S,
        "ops_usd_per_hour": usd_exact(rate.ops_pusd_per_hour),
    }


def _entry(manual_entry: ManualEntry) -> dict[str, Any]:
    rate = rate_of(manual_entry)
    terms = None if rate is None else _terms(msgspec.structs.asdict(rate))
    return {
        "number": manual_entry.number,
        "pool": manual_entry.name,
        "says": terms,
        "from_us": manual_entry.from_us,
        "entered_us": manual_entry.recorded_us,
        "by": manual_entry.actor,
        "note": manual_entry.note,
    }


VERBS = (rates_list, rates_enter, rates_withdraw)
