"""`breakeven ledger export`: files that add up, are whole, and are not lost to a second command."""

import csv
import io
import json
import os
import pty
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import insert
from typer.testing import CliRunner

from deploy import warmstart
from gateway.cli.app import app
from ledger.database import make_engine, migrate, sqlite_url
from ledger.fleet.hours import close_hours
from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts
from ledger.orm import tables as orm
from ledger.prices.drafts import PriceDraft
from ledger.prices.rates import PriceTerms, rates_from
from ledger.prices.stored import import_drafts
from ledger.reporting_zone import declare_zone
from ledger.writing.repository import LedgerRepository

DAY_US = 1_780_272_000_000_000  # 2026-06-01
HOUR_US = 3_600_000_000
PUSD_PER_TOKEN = 10**6
RATE = 9_800_000_000_000
SPAN = ("--from", "2026-06-01", "--to", "2026-06-02")


def records():
    for number, team in enumerate(("search", "=cmd()", "search", "ads")):
        at_us = DAY_US + number
        yield AttemptOpened(
            attempt_id=f"r{number}.1", request_id=f"r{number}", attempt_no=1, opened_us=at_us,
            key_id="k", user_id=None, team_id=team, org_id="acme", kind="chat", stream=False,
            model="chat", target="openai/gpt", backend="api", pool=None, engine=None,
            provider="openai", upstream_model="gpt", simulated=False, policy="p",
            policy_version="v1", reason="cheapest", spill_reason=None, price_version=1,
            bound_pusd=10**13, prompt_tokens_estimate=10,
        )  # fmt: skip
        yield AttemptSettled(
            attempt_id=f"r{number}.1", settled_us=at_us + 1, status="finished", http_status=200,
            tokens=TokenCounts(input=number + 1), basis="reported", ttft_us=1, duration_us=2,
            cost_pusd=None if team == "ads" else (number + 1) * PUSD_PER_TOKEN,
        )  # fmt: skip


API_PUSD = (1 + 2 + 3) * PUSD_PER_TOKEN


@pytest.fixture
def export(tmp_path: Path):
    """A ledger with three priced attempts, one without a price, and two closed GPU hours."""
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    engine = make_engine(url)
    terms = PriceTerms(rates_from({"input": PUSD_PER_TOKEN, "output": 0}))
    import_drafts(engine, [PriceDraft("openai/gpt", "litellm", terms)], at_us=DAY_US)
    contract = {
        "pool": "chat", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
        "billing": "reserved", "pusd_per_hour": RATE, "since": date(2026, 6, 1),
        "recorded_us": DAY_US,
    }  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [contract])
    LedgerRepository(engine, host="h").import_records(records(), journal="j", at_us=DAY_US)
    assert close_hours(engine, at_us=DAY_US + 2 * HOUR_US + HOUR_US // 2) == 2
    engine.dispose()
    (tmp_path / "breakeven.yaml").write_text(f"state_dir: {tmp_path}\n")

    def run(*words: str):
        config = ("--config", str(tmp_path / "breakeven.yaml"))
        return CliRunner().invoke(app, ["ledger", "export", *words, *config])

    return run


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_on_the_standard_output(export) -> None:
    answer = export(*SPAN)
    assert answer.exit_code == 0, answer.stderr
    rows = table(answer.stdout_bytes.decode())
    assert [row["cost_usd"] for row in rows] == ["0.000001000000", "0.000002000000",
                                                 "0.000003000000", ""]  # fmt: skip
    assert [row["team_id"] for row in rows] == ["search", "'=cmd()", "search", "ads"]
    assert "1 attempts have no price and have an empty cost" in answer.stderr


def test_an_empty_export_is_told_where_no_file_is_named(export) -> None:
    answer = export(*SPAN, "--team", "nope")
    assert answer.exit_code == 0, answer.stderr
    assert table(answer.stdout_bytes.decode()) == []
    assert "0 rows: the ledger has no attempt of team `nope` from " in answer.stderr
    assert " UTC; --to names a later end" in answer.stderr


def test_focus_adds_up_to_bills_and_charges(export, tmp_path: Path) -> None:
    out = tmp_path / "focus.csv"
    answer = export(*SPAN, "--format", "focus", "--out", str(out), "--json")
    assert answer.exit_code == 0, answer.stderr
    rows = table(out.read_bytes().decode())
    for column in ("BilledCost", "EffectiveCost"):
        assert sum(Decimal(row[column]) for row in rows).scaleb(12) == API_PUSD + 2 * RATE
    told = json.loads(answer.stdout)
    assert (told["rows"], Decimal(told["usd"]).scaleb(12)) == (len(rows), API_PUSD + 2 * RATE)
    assert "pool chat: hours from 2026-06-01T02:00:00Z on are not closed" in told["notes"]
    assert "1 attempts have no price and are not in this file" in told["notes"]


def test_a_date_is_a_day_of_the_reporting_zone(export, tmp_path: Path) -> None:
    """In Kolkata it begins at 18:30 of UTC's day before, and its hours with it."""
    engine = make_engine(sqlite_url(tmp_path / "ledger.db"))
    with engine.begin() as connection:
        declare_zone(connection, "Asia/Kolkata", DAY_US)
    engine.dispose()
    day = ("--from", "2026-06-01", "--to", "2026-06-02")
    rows = table(export(*day, "--format", "focus").stdout_bytes.decode())
    assert {row["ChargePeriodStart"] for row in rows} == {"2026-05-31T18:30:00Z"}
    assert {row["BillingPeriodStart"] for row in rows} == {"2026-05-31T18:30:00Z"}
    assert sum(Decimal(row["BilledCost"]) for row in rows).scaleb(12) == API_PUSD + 2 * RATE
    before = ("--from", "2026-05-31", "--to", "2026-06-01")
    assert table(export(*before, "--format", "focus").stdout_bytes.decode()) == []


def test_parquet_and_one_team(export, tmp_path: Path) -> None:
    out = tmp_path / "a.parquet"
    answer = export(*SPAN, "--format", "parquet", "--team", "search", "--out", str(out))
    assert answer.exit_code == 0, answer.stderr
    assert f"{out}: 2 rows, $0.000004 in cost_usd" in answer.stdout
    found = pq.read_table(out)
    assert found.column("team_id").to_pylist() == ["search", "search"]
    assert sum(found.column("cost_usd").to_pylist()) == Decimal("0.000004")


def test_hours_as_charge_periods(export, tmp_path: Path) -> None:
    rows = table(export(*SPAN, "--format", "focus", "--per", "hour").stdout_bytes.decode())
    bought = [row for row in rows if row["ChargeCategory"] == "Purchase"]
    assert [row["ChargePeriodEnd"] for row in bought] == [
        "2026-06-01T01:00:00Z", "2026-06-01T02:00:00Z",
    ]  # fmt: skip


def test_a_file_is_replaced_only_when_asked_for(export, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    out.write_text("precious")
    refused = export(*SPAN, "--out", str(out))
    assert (refused.exit_code, out.read_text()) == (1, "precious")
    assert "--force" in refused.stderr
    assert export(*SPAN, "--out", str(out), "--force").exit_code == 0
    assert len(table(out.read_bytes().decode())) == 4
    assert not list(tmp_path.glob("*.part"))
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "yesterday"), "--from: 'yesterday' is not a date"),
        (("--from", "2026-06-02", "--to", "2026-06-01"), "is not after --from"),
        (("--from", "2026-06-01T00:30", "--format", "focus"), "a FOCUS file needs a full one"),
        (("--from", "2026-06-01", "--json"), "--json: needs --out FILE"),
        (("--from", "2026-06-01", "--out", "no/such/folder.csv"), "--out: "),
    ],
)
def test_mistakes_name_the_option(export, words: tuple[str, ...], said: str) -> None:
    answer = export(*words)
    assert answer.exit_code == 1
    assert said in answer.stderr


def command(tmp_path: Path, *words: str) -> list[str]:
    return ["ledger", "export", *words, "--config", str(tmp_path / "breakeven.yaml")]


def test_who_hangs_up_is_told_nothing(export, tmp_path: Path) -> None:
    nobodys, theirs = os.pipe()
    os.close(nobodys)
    with (tmp_path / "said").open("w") as errors:
        process = warmstart.programs().start(
            command(tmp_path, *SPAN), output=theirs, errors=errors.fileno()
        )
    os.close(theirs)
    assert process.wait(60) == 1
    said = (tmp_path / "said").read_text()
    assert "Broken pipe" not in said
    assert "Traceback" not in said


def test_a_terminal_shows_how_far_it_is(export, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    out = tmp_path / "seen.csv"
    words, environ = command(tmp_path, *SPAN, "--out", str(out)), {**os.environ, "TERM": "xterm"}
    done = warmstart.programs().start(words, errors=theirs, environ=environ)
    os.close(theirs)
    assert done.wait(60) == 0
    seen = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "exported" in seen
    assert "4 rows" in seen
