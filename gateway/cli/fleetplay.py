"""Command `breakeven fleet play`: cost of recorded traffic with a pool sized by its plan."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gateway.cli.config import Config, ledger_reader, load_or_fail
from gateway.cli.output import AsJson, emit, fail, table
from gateway.clock import Clock
from gateway.host.scaling import make_planner
from gateway.scaling.pool_setup import pool_setups
from gateway.scaling.replayed_traffic import UnknownDemandError, replay_traffic
from ledger.reports.scaling_read import EarnedDay
from ledger.spans import DAY_US

PUSD = 1e12


def play(
    pool: Annotated[str, typer.Argument(help="A pool with `scale` in the configuration.")],
    days: Annotated[
        int, typer.Option("--days", min=1, max=35, help="Number of days, up to now.")
    ] = 7,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Replay recorded traffic with a pool's planner: dollars by day."""
    settings = load_or_fail(config)
    setups = {setup.pool: setup for setup in pool_setups(settings)}
    if pool not in setups:
        known = f"there are {', '.join(setups)}" if setups else "no pool has `scale`"
        fail(f"there is no pool `{pool}` with `scale`; {known}: `scale: {{max: 4}}` only advises")
    setup, now_us = setups[pool], Clock().wall_us()
    make = partial(make_planner, setup.pool_terms(), None)
    with ledger_reader(settings) as engine, engine.connect() as connection:
        try:
            found = replay_traffic(connection, setup, (now_us - days * DAY_US, now_us), make)
        except UnknownDemandError as error:
            fail(str(error))
    document = [_described(day) for day in found]
    emit(document, as_json=as_json, show=lambda out: _show(out, pool, found))


def _described(day: EarnedDay) -> dict[str, Any]:
    """Return the day in a what-if's terms: the plan, and each fixed fleet."""
    kept = day.described()
    names = ("date", "hours", "requests", "fixed", "best_fixed", "all_api")
    return {"planned": kept["advised"], **{name: kept[name] for name in names}}


def _show(out: Console, pool: str, days: Sequence[EarnedDay]) -> None:
    rows = []
    for day in days:
        best, cost = day.span.best_fixed
        rows.append(
            [
                day.date,
                f"{day.span.requests:,}",
                *map(_usd, (day.span.advised.rent_pusd, day.span.advised.api_pusd)),
                _usd(day.span.advised.total_pusd),
                _usd(day.span.as_configured.total_pusd),
                f"{_usd(cost.total_pusd)} ({best})",
                _usd(day.span.all_api.total_pusd),
            ]
        )
    columns = (
        "=day", ">requests", ">rent", ">API", ">planned", ">as configured", ">best constant",
        ">all API",
    )  # fmt: skip
    out.print(table(f"Pool {pool} sized by its plan, in virtual time", columns, rows))
    out.print(
        "The best constant number of each day is known only afterwards. Requests past an engine's "
        "capacity are bought at the API; no rent is a bill."
    )


def _usd(pusd: int) -> str:
    return f"${pusd / PUSD:,.2f}"
