"""`breakeven invoices claims` and `waive`: what is claimed is listed, and let go by a person."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from gateway.cli.app import app
from ledger.database import make_engine, migrate, open_readonly, sqlite_url
from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts
from ledger.manual_entries import entries
from ledger.writing.repository import LedgerRepository

NOON_US = 1_793_707_200_000_000
USD = 10**12
CONFIG = {
    "providers": {
        "openai": {"base_url": "https://api.openai.com/v1", "billing_utc_offset": "+00:00"},
    },
    "models": {"chat": {"targets": ["openai/gpt-4o-mini"]}},
}


@pytest.fixture
def run(tmp_path: Path):
    """Books with one attempt of two dollars, of which the provider says five."""
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    opened = AttemptOpened(
        attempt_id="r1.1", request_id="r1", attempt_no=1, opened_us=NOON_US, key_id="k",
        user_id=None, team_id="search", org_id="acme", kind="chat", stream=False, model="chat",
        target="openai/gpt-4o-mini", backend="api", pool=None, engine=None, provider="openai",
        upstream_model="gpt-4o-mini", simulated=False, policy="default", policy_version="v1",
        reason="cheapest", spill_reason=None, price_version=1, bound_pusd=2 * USD,
        prompt_tokens_estimate=10,
    )  # fmt: skip
    settled = AttemptSettled(
        attempt_id="r1.1", settled_us=NOON_US + 1, status="finished", http_status=200,
        tokens=TokenCounts(input=5), basis="reported", cost_pusd=2 * USD, ttft_us=1, duration_us=2,
        claimed_pusd=5 * USD, plausible_pusd=USD,
    )  # fmt: skip
    engine = make_engine(url)
    LedgerRepository(engine, host="h").import_records([opened, settled], journal="j", at_us=NOON_US)
    engine.dispose()
    config = tmp_path / "breakeven.yaml"
    config.write_text(yaml.safe_dump({"state_dir": str(tmp_path), **CONFIG}))
    return lambda *words: CliRunner().invoke(app, ["invoices", *words, "--config", str(config)])


def test_a_claim_is_listed_until_somebody_waives_it(run) -> None:
    text = run("claims").stdout
    assert "r1.1" in text
    (claim,) = json.loads(run("claims", "--json").stdout)
    names = ("booked", "claimed", "plausible", "counted")
    assert [float(claim[f"{name}_usd"]) for name in names] == [2, 5, 1, 1]
    assert "is posted" in claim["waits_for"]
    assert "open:" in text
    assert json.loads(run("claims", "--team", "other", "--json").stdout) == []
    done = run("waive", "r1.1", "--by", "ann")
    assert done.stdout == "1 claim waived: $1.00 of budgets is free.\n"
    assert json.loads(run("claims", "--json").stdout) == []
    (claim,) = json.loads(run("claims", "--all", "--json").stdout)
    assert (float(claim["counted_usd"]), float(claim["claimed_usd"])) == (0, 5)
    assert (claim["resolution"], claim["resolved_by"]) == ("waived", "ann")


def test_a_waiver_is_entered_once_and_stays_its_persons(run, tmp_path) -> None:
    assert run("waive", "r1.1", "--by", "ann").exit_code == 0
    again = run("waive", "r1.1", "--by", "bob")
    assert again.stdout == "0 claims waived: $0.00 of budgets is free.\n"
    (claim,) = json.loads(run("claims", "--all", "--json").stdout)
    assert claim["resolved_by"] == "ann"
    with open_readonly(sqlite_url(tmp_path / "ledger.db")).connect() as connection:
        (entry,) = entries(connection, "claim:")
    assert (entry.name, entry.actor, entry.says["resolution"]) == ("r1.1", "ann", "waived")


def test_what_a_posted_bill_has_is_not_waived(run, tmp_path) -> None:
    """Red before: the budgets of its team hid what the provider was paid."""
    for number, billed in (("1", "5"), ("2", "2")):
        bill = tmp_path / f"{number}.csv"
        bill.write_text(f"date,amount\n2026-11-03,{billed}\n")
        read = run("import", str(bill), "--provider", "openai", "--format", "csv", "--yes")
        assert read.exit_code == 0, read.stderr
    assert run("post", "1", "--yes").exit_code == 0
    answer = run("waive", "r1.1", "--by", "ann")
    assert answer.exit_code == 1
    assert "a posted bill has $1.000000000000 of the claim of attempt r1.1" in answer.stderr
    (claim,) = json.loads(run("claims", "--all", "--json").stdout)
    assert (claim["resolution"], float(claim["counted_usd"])) == ("billed", 1)
    assert run("post", "2", "--replaces", "--yes").exit_code == 0
    (claim,) = json.loads(run("claims", "--json").stdout)
    assert claim["resolution"] is None  # a later bill may still have it
    assert run("waive", "r1.1", "--by", "ann").exit_code == 0


def test_a_name_without_a_claim_is_refused(run) -> None:
    answer = run("waive", "r1.1", "r9.1")
    assert answer.exit_code == 1
    assert "no claim of attempt r9.1" in answer.stderr
    assert len(json.loads(run("claims", "--json").stdout)) == 1


def test_no_claim_is_said_in_words(tmp_path) -> None:
    migrate(sqlite_url(tmp_path / "ledger.db"))
    config = tmp_path / "breakeven.yaml"
    config.write_text(f"state_dir: {tmp_path}\n")
    answer = CliRunner().invoke(app, ["invoices", "claims", "--config", str(config)])
    assert "No claim is open" in answer.stdout
    assert "narrows budgets" not in answer.stdout
