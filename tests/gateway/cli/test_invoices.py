"""`breakeven invoices`: from a provider's file to books that agree with it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from gateway.cli.app import app
from ledger.database import make_engine, migrate, sqlite_url
from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts
from ledger.writing.repository import LedgerRepository

NOON_US = 1_793_707_200_000_000
DAY = f"{datetime.fromtimestamp(NOON_US / 1e6, UTC):%Y-%m-%d}"
USD = 10**12
CONFIG = {
    "providers": {"openai": {"base_url": "https://api.openai.com/v1"}},
    "models": {"chat": {"targets": ["openai/gpt-4o-mini"]}},
}


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """One attempt of two dollars."""
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    opened = AttemptOpened(
        attempt_id="r1.1", request_id="r1", attempt_no=1, opened_us=NOON_US, key_id="k",
        user_id=None, team_id="search", org_id="acme", kind="chat", stream=False, model="chat",
        target="openai/gpt-4o-mini", backend="api", pool=None, engine=None, provider="openai",
        upstream_model="gpt-4o-mini", simulated=False, policy="default", policy_version="v1",
        reason="cheapest", spill_reason=None, price_version=1, bound_pusd=10**13,
        prompt_tokens_estimate=10,
    )  # fmt: skip
    settled = AttemptSettled(
        attempt_id="r1.1", settled_us=NOON_US + 1, status="finished", http_status=200,
        tokens=TokenCounts(input=5), basis="reported", cost_pusd=2 * USD, ttft_us=1, duration_us=2,
    )  # fmt: skip
    engine = make_engine(url)
    LedgerRepository(engine, host="h").import_records([opened, settled], journal="j", at_us=NOON_US)
    engine.dispose()
    config = tmp_path / "breakeven.yaml"
    config.write_text(yaml.safe_dump({"state_dir": str(tmp_path), **CONFIG}))
    return tmp_path


@pytest.fixture
def run(books: Path):
    def call(*words: str, say: str = ""):
        given = ["invoices", *words, "--config", str(books / "breakeven.yaml")]
        return CliRunner().invoke(app, given, input=say)

    return call


@pytest.fixture
def file(books: Path) -> str:
    path = books / "nov.csv"
    path.write_text(f"date,model,amount,project\n{DAY},gpt-4o-mini,2.50,p1\n{DAY},search,1,p1\n")
    return str(path)


def imported(run, file: str) -> str:
    done = run("import", file, "--provider", "openai", "--by", "ana", "--json")
    return str(json.loads(done.stdout)["invoice"])


def test_from_the_file_to_books_that_agree(run, file):
    number = imported(run, file)
    shown = json.loads(run("show", number, "--json").stdout)
    assert [(row["key"], row["difference_pusd"], row["causes"]) for row in shown["rows"]] == [
        ("gpt-4o-mini", USD // 2, ["unexplained"]),
        ("search", USD, ["not_in_books"]),
    ]
    text = run("show", number).stdout
    assert "Invoiced $3.50, booked $2.00, difference $1.50." in text
    assert f"breakeven invoices post {number}" in text
    posted = run("post", number, "--by", "ben", say="y\n")
    assert "changes what is owed by $1.50 on 1 day." in posted.stdout
    assert "Adjusted: 1 day, by $1.50 in all." in posted.stdout
    assert "difference $0.00" in run("show", number).stdout
    listed = run("list").stdout
    assert "ana" in listed
    assert "ben" in listed


def test_by_project_of_whom_one_says_who_it_is(run, file):
    number = imported(run, file)
    shown = run("show", number, "--by", "project", "--project", "p1=search", "--json")
    (row,) = json.loads(shown.stdout)["rows"]
    assert (row["key"], row["invoiced_pusd"], row["booked_pusd"]) == (
        "search", 7 * USD // 2, 2 * USD,
    )  # fmt: skip


def test_nothing_is_posted_without_a_yes(run, file):
    number = imported(run, file)
    assert run("post", number, say="n\n").exit_code == 1
    assert json.loads(run("list", "--json").stdout)[0]["posted_us"] is None
    assert json.loads(run("post", number, "--yes", "--json").stdout)["posted_pusd"] == {
        DAY: 3 * USD // 2
    }
    again = run("post", number, "--yes")
    assert again.exit_code == 1
    assert "was posted" in again.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("import", "FILE"), "name the sender of the invoice"),
        (("import", "FILE", "--provider", "nobody"), "no provider `nobody`"),
        (("import", "FILE", "--pool", "nobody"), "no pool `nobody`"),
        (("import", "FILE", "--provider", "openai", "--format", "xls"), "no format `xls`"),
        (("import", "missing.csv", "--provider", "openai"), "cannot read the invoice missing.csv"),
        (("show", "7"), "there is no invoice 7"),
        (("show", "7", "--by", "week"), "`--by week`"),
        (("show", "7", "--project", "p1"), "write PROJECT=TEAM"),
        (("post", "7", "--yes"), "there is no invoice 7"),
        (("post", "7", "--adds", "--replaces"), "not both"),
    ],
)
def test_a_mistake_is_one_line(run, file, words, said):
    done = run(*(file if word == "FILE" else word for word in words))
    assert done.exit_code == 1
    assert said in done.stderr


def test_a_file_that_is_no_invoice_changes_nothing(run, books):
    bad = books / "bad.csv"
    bad.write_text("date,amount\nyesterday,1\n")
    done = run("import", str(bad), "--provider", "openai")
    assert done.exit_code == 1
    assert "line 2: column `date`: 'yesterday' is not a date" in done.stderr
    assert json.loads(run("list", "--json").stdout) == []


def test_a_project_is_a_teams_in_every_comparison(run, books) -> None:
    bill = books / "p.csv"
    bill.write_text(f"date,model,amount,project\n{DAY},gpt-4o-mini,2.50,proj_1\n")
    assert run("import", str(bill), "--provider", "openai").exit_code == 0

    def keys() -> list[str]:
        shown = run("show", "1", "--by", "project", "--json")
        return [row["key"] for row in json.loads(shown.stdout)["rows"]]

    assert keys() == ["proj_1", "search"]
    answer = run("project", "openai", "proj_1", "search")
    assert (answer.exit_code, answer.stdout.startswith("openai/proj_1: search, by ")) == (0, True)
    assert keys() == ["search"]
    assert "nobody" in run("project", "openai", "proj_1").stdout
    assert "there is no provider `x`" in run("project", "x", "proj_1", "search").stderr


FOCUS_FILES = Path(__file__).parents[2] / "ledger" / "invoices" / "data"
TWO_DAYS = [("2026-11-01", 10 * USD), ("2026-11-02", 20 * USD)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("focus-without-seconds", TWO_DAYS),
        ("focus-month-without-seconds", [(f"2026-11-{day:02}", 84 * USD) for day in range(1, 31)]),
        ("focus-with-offset", TWO_DAYS),
        ("focus-of-bigquery", TWO_DAYS),
    ],
)
def test_a_clouds_charges_are_on_the_days_of_their_instants(run, name, expected):
    number = imported(run, str(FOCUS_FILES / f"{name}.csv"))
    rows = json.loads(run("show", number, "--by", "day", "--json").stdout)["rows"]
    invoiced = [(row["day"], row["invoiced_pusd"]) for row in rows if row["invoiced_pusd"]]
    assert sorted(invoiced) == expected


def test_a_credit_note_is_posted_with_adds_and_agrees_then(run, file, books):
    first = imported(run, file)
    run("post", first, "--yes")
    note = books / "note.csv"
    note.write_text(f"date,model,amount\n{DAY},gpt-4o-mini,-0.5\n")
    number = imported(run, str(note))
    shown = run("show", number).stdout
    assert f"breakeven invoices post {number} --adds" in " ".join(shown.split())
    assert "billing_utc_offset" not in shown
    asked = run("post", number, "--adds", say="n\n")
    assert "billing_utc_offset" not in asked.stdout + asked.stderr
    assert run("post", number, "--adds", "--yes").exit_code == 0
    shown = " ".join(run("show", number).stdout.split())
    assert "Invoiced -$0.50, booked -$0.50, difference $0.00." in shown
    assert "owed beside what the books have" in shown
    assert "unexplained" not in shown
    assert "not_in_books" not in shown
    assert "difference $0.00" in run("show", first).stdout
