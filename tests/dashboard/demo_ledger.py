"""The demo's own books, as `breakeven demo` makes them: its file, its replay, its budgets.

Fewer requests than the demo's month, and no live traffic: nothing in them moves but the clock.
"""

import random
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from sqlalchemy import Engine

from dashboard.data import reads
from gateway.config.settings import load
from gateway.control.admin.verdict import ReadVerdictInput, verdict_read
from gateway.demo.history import DemoScenario, replay
from gateway.demo.replay_records import DemoCaller
from gateway.demo.start import JOURNAL, SEED, count_budgets, team_keys
from gateway.host.prepare import prepare
from ledger.database import make_engine, open_readonly
from ledger.exports.delimited import csv_lines
from ledger.exports.focus import focus_rows
from ledger.exports.focus_columns import FOCUS_1_4
from ledger.exports.verdict import verdict_csv
from ledger.fleet.hours import close_hours
from ledger.fleet.samples import add_samples
from ledger.prices.stored import load_price_book
from ledger.reporting_zone import ReportingZone
from ledger.reports.periodic import periodic_report
from ledger.reports.verdict_read import read_verdict
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.writing.repository import LedgerRepository

REQUESTS = 3_000


@dataclass(frozen=True, slots=True)
class DemoLedger:
    """Where the books are, and the instant up to which they were made."""

    url: str
    now_us: int


def make_demo_ledger(folder: Path, url: str | None, now_us: int) -> DemoLedger:
    """Replay the demo's month into a fresh ledger; `None`: a file in the folder."""
    text = files("gateway.demo").joinpath("demo.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text) | {"state_dir": str(folder / "state")}
    document["pools"]["llama-8b"]["ops"] = {"hours_per_week": 2, "usd_per_hour": "95.5"}
    if url is not None:
        document["ledger"] = {"url": url}
    path = folder / "demo.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    settings = load(path)
    address = prepare(settings, path).runtime.ledger_url
    engine = make_engine(address)
    callers = {
        team: DemoCaller("demo", team, None, key.key_id)
        for team, key in team_keys(settings, engine).items()
    }
    scenario = DemoScenario(settings, load_price_book(engine), callers, now_us, requests=REQUESTS)
    history = replay(scenario, random.Random(SEED))
    LedgerRepository(engine, host=JOURNAL).import_records(
        history.records, journal=JOURNAL, at_us=now_us
    )
    add_samples(engine, history.samples)
    count_budgets(settings, engine, now_us)
    while close_hours(engine, at_us=now_us):
        pass
    engine.dispose()
    return DemoLedger(address, now_us)


def other_surfaces(demo: DemoLedger, days: int) -> dict[str, Any]:
    """What the admin API, the CSV and the scheduled report say of the same days."""
    scope = Scope.last(days * DAY_US, demo.now_us)
    engine = open_readonly(demo.url)
    place: Any = SimpleNamespace(ledger=engine, now_us=demo.now_us)
    with engine.connect() as connection:
        found = read_verdict(connection, scope)
        report = periodic_report(connection, scope, ReportingZone(), demo.now_us).text()
    told = {
        "http": verdict_read.work(place, ReadVerdictInput(days=days)),
        "csv": verdict_csv(found.verdict, simulated=found.simulated),
        "report": report,
        "focus": focus_text(engine, scope),
    }
    engine.dispose()
    return told


def close_reads(demo: DemoLedger) -> None:
    """Close the connections that the dashboard keeps."""
    reads.engine(demo.url).dispose()


def focus_text(engine: Engine, scope: Scope) -> str:
    """The charges of full hours, as FOCUS CSV."""
    start_us = -(-scope.start_us // HOUR_US) * HOUR_US
    hours = Scope(start_us, scope.end_us // HOUR_US * HOUR_US)
    with engine.connect() as connection:
        rows = focus_rows(connection, hours, lambda _: None, period_us=DAY_US)
        return "".join(csv_lines(FOCUS_1_4.columns, rows))
