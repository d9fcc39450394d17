"""Commands `breakeven fleet status|plan|explain|pause|resume`: pools that size themselves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, print_result, table
from gateway.control.admin import fleets as verbs
from gateway.policies.overrides import instant

Pool = Annotated[str | None, typer.Argument(help="Only this pool; default: all.")]
PUSD = 10**12
NOT_KNOWN = "not known"
NOT_SIZED = (
    "no longer sized, so nobody sees whether these engines ended, and their rent goes on; set "
    "`scale` with `mode: advise` again until they are gone"
)
NO_PLAN = (
    "No plan was made yet: what an engine can do is measured while it serves, and `breakeven "
    "ledger report` says what is missing."
)
NO_POOL = "No pool sizes itself: set `pools.NAME.scale`, for example `scale: {max: 4}`."


def status(
    pool: Pool = None, config: Config = Path("breakeven.yaml"), as_json: AsJson = False
) -> None:
    """Show engines with their rent, the last plan, and scaling gains by day."""
    found = run_query(config, verbs.fleet_status, verbs.FleetStatusInput(pool))["data"]
    emit(found, as_json=as_json, show=lambda out: _print_status(out, found))


def plan(
    pool: Pool = None, config: Config = Path("breakeven.yaml"), as_json: AsJson = False
) -> None:
    """Show the last plan: forecast, alternatives, value of the next engine."""
    found = run_query(config, verbs.fleet_plan, verbs.FleetPlanInput(pool))["data"]
    emit(found, as_json=as_json, show=lambda out: _print_plans(out, found))


def explain(
    pool: Annotated[str, typer.Argument(help="The pool whose changes are explained.")],
    days: Annotated[
        int, typer.Option("--days", min=1, max=366, help="Number of days, up to now.")
    ] = 7,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show each start and stop with its reason, expected and realised dollars."""
    given = verbs.ExplainFleetInput(pool, days)
    found = run_query(config, verbs.fleet_explain, given)["data"]
    emit(found, as_json=as_json, show=lambda out: _print_changes(out, found))


def pause(
    pool: Pool = None,
    lasts: Annotated[str | None, typer.Option("--for", help="Duration: 90s, 30m or 2h.")] = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Pause scaling: plans start and stop no engines; running ones continue."""
    given = verbs.PauseFleetInput(pool, lasts, note)
    done = run_change(config, by, verbs.fleet_pause, given)
    words = f"{_whom(pool)} paused until `breakeven fleet resume{_name(pool)}`"
    if done["until_us"] is not None:
        words += f" or {instant(done['until_us'])}"
    print_result(done, f"{words}.", as_json=as_json)


def resume(
    pool: Pool = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Let plans start and stop engines again."""
    done = run_change(config, by, verbs.fleet_resume, verbs.ResumeFleetInput(pool, note))
    print_result(done, f"{_whom(pool)} planned again.", as_json=as_json)


def _whom(pool: str | None) -> str:
    return "All pools are" if pool is None else f"Pool {pool} is"


def _name(pool: str | None) -> str:
    return "" if pool is None else f" {pool}"


def _print_status(out: Console, found: Sequence[dict[str, Any]]) -> None:
    if not found:
        out.print(NO_POOL)
    for pool in found:
        held = f", paused by {pool['paused']}" if pool["paused"] else ""
        out.print(f"{pool['pool']}: {pool['mode'] or NOT_SIZED}{held}", markup=False)
        if pool["plan"] is None:
            out.print(NO_PLAN)
        else:
            kept = pool["plan"]
            words = f"{kept['wanted']} wanted, {kept['running']} run: {kept['sentence']}"
            out.print(f"{instant(kept['at_us'])}: {words}", markup=False)
        if pool["engines"]:
            out.print(_engines(pool["engines"]))
        if pool["days"]:
            out.print(_days(pool["days"]))


def _engines(found: Sequence[dict[str, Any]]) -> Any:
    rows = [
        [
            entry["token"],
            entry["engine"] or entry["name"] or "-",
            instant(entry["asked_us"]),
            "drains" if entry["stop_us"] else "serves" if entry["ready_us"] else "starts",
            _usd(entry["rent_pusd"]),
            "" if entry["owned"] else "ORPHAN: no plan asked for it",
        ]
        for entry in found
    ]
    columns = ("=token", "engine", "since", "state", ">rent", "")
    return table("Engines that cost rent", columns, rows)


def _days(found: Sequence[dict[str, Any]]) -> Any:
    rows = [
        [
            day["date"],
            f"{day['hours']:.1f}",
            _usd(day["ran"]["total_pusd"]),
            _usd(day["against_fixed_pusd"]),
            _usd(day["against_api_pusd"]),
            _usd(day["advice_pusd"]),
        ]
        for day in found
    ]
    columns = (
        "=day", ">hours", ">what ran cost", ">less than fixed", ">less than all API",
        ">advice would save",
    )  # fmt: skip
    return table("What scaling earned", columns, rows)


def _print_plans(out: Console, found: Sequence[dict[str, Any]]) -> None:
    if not found:
        out.print(NO_POOL)
    for plan_of in found:
        if plan_of["at_us"] is None:
            out.print(f"{plan_of['pool']}: the pool has no plan yet.", markup=False)
            continue
        words = f"{plan_of['wanted']} wanted, {plan_of['running']} run: {plan_of['sentence']}"
        out.print(f"{plan_of['pool']}, {instant(plan_of['at_us'])}: {words}", markup=False)
        for name in ("last", "next"):
            if (worth := plan_of[name]) is not None:
                value = _usd(worth["value_pusd"])
                said = f"engine {worth['place']} ({name}) avoids {value} an hour"
                out.print(f"  {said} and costs {_usd(worth['rent_pusd'])}", markup=False)
        for band in plan_of["forecast"]:
            said = f"{band['mean']:.2f} requests/s ({band['low']:.2f} to {band['high']:.2f})"
            ahead = f"in {band['horizon_s'] / 60:.0f} min"
            out.print(f"  {band['name']}: {said} {ahead}", markup=False)
        if plan_of["alternatives"]:
            out.print(_alternatives(plan_of["alternatives"], plan_of["horizon_s"]))


def _alternatives(found: Sequence[dict[str, Any]], horizon_s: float) -> Any:
    parts = ("rent_pusd", "api_pusd", "start_pusd")
    rows = [
        [
            str(entry["engines"]),
            *(_usd(entry[part]) for part in parts),
            _usd(sum(entry[part] for part in parts)),
        ]
        for entry in found
    ]
    columns = (">engines", ">rent", ">APIs", ">starts", ">all")
    return table(f"Expected over {horizon_s / 3600:.1f} h", columns, rows)


def _print_changes(out: Console, found: Sequence[dict[str, Any]]) -> None:
    if not found:
        out.print("No engine was started or stopped, and none was advised.")
        return
    rows = [
        [
            instant(entry["at_us"]),
            entry["verb"] if entry["mode"] == "act" else f"{entry['verb']} (advice)",
            str(entry["engines"]),
            _usd(entry["expected_pusd"]),
            _usd(entry["realised_pusd"]),
            entry["outcome"] or ("advice" if entry["mode"] == "advise" else "under way"),
            entry["sentence"],
        ]
        for entry in found
    ]
    columns = ("=at", "change", ">engine", ">expected", ">realised", "outcome", "why")
    out.print(table("Changes", columns, rows))


def _usd(pusd: int | None) -> str:
    return NOT_KNOWN if pusd is None else f"{'-' if pusd < 0 else ''}${abs(pusd) / PUSD:,.2f}"
