"""`breakeven ledger`: the report adds up, and a book that does not hold ends with status 1."""

import json
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import insert, select, text, update
from typer.testing import CliRunner

from gateway.cli.app import app
from ledger.database import make_engine, migrate, sqlite_url
from ledger.declared import declare
from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts
from ledger.orm.books import PostingRow
from ledger.orm.budgets import BudgetWindowRow
from ledger.prices.drafts import PriceDraft
from ledger.prices.rates import PriceTerms, rates_from
from ledger.prices.stored import import_drafts
from ledger.reporting_zone import ReportingZone, declare_zone
from ledger.seals.audit_log import AuditLog
from ledger.seals.sealer import Sealer
from ledger.sums.rollups import Rollups
from ledger.verify.checks import CHECKS
from ledger.writing.lag import WriterLag, write_lag
from ledger.writing.repository import LedgerRepository

TOKENS = {"search": [3_000_000, 100_000], "ads": [500_000], "hobby": [3]}
PUSD_PER_TOKEN = 10**6  # $1 per million
COSTS = {team: [n * PUSD_PER_TOKEN for n in tokens] for team, tokens in TOKENS.items()}


def opened(number: int, team: str, at_us: int) -> AttemptOpened:
    return AttemptOpened(
        attempt_id=f"r{number}.1", request_id=f"r{number}", attempt_no=1, opened_us=at_us,
        key_id="k", user_id=None, team_id=team, org_id="acme", kind="chat", stream=False,
        model="chat", target="openai/gpt-4o-mini", backend="api", pool=None, engine=None,
        provider="openai", upstream_model="gpt-4o-mini", simulated=False, policy="default",
        policy_version="v1", reason="cheapest", spill_reason=None, price_version=1,
        bound_pusd=10**13, prompt_tokens_estimate=10,
    )  # fmt: skip


def settled(number: int, tokens: int, at_us: int) -> AttemptSettled:
    return AttemptSettled(
        attempt_id=f"r{number}.1", settled_us=at_us, status="finished", http_status=200,
        tokens=TokenCounts(input=tokens), basis="reported", cost_pusd=tokens * PUSD_PER_TOKEN,
        ttft_us=1, duration_us=2,
    )  # fmt: skip


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger with four settled attempts of three teams, an hour ago."""
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    at_us = time.time_ns() // 1000 - 3_600_000_000
    records = []
    for team, counts in TOKENS.items():
        for tokens in counts:
            number = len(records)
            records += [opened(number, team, at_us), settled(number, tokens, at_us + 1)]
    engine = make_engine(url)
    declare(engine, contracts=[], budgets=[], config=("v1", ""), at_us=1)
    terms = PriceTerms(rates_from({"input": PUSD_PER_TOKEN, "output": 0}))
    import_drafts(engine, [PriceDraft("openai/gpt-4o-mini", "litellm", terms)], at_us=at_us)
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=at_us + 2)
    engine.dispose()
    return url


@pytest.fixture
def ledger(tmp_path: Path, url: str):
    config = tmp_path / "breakeven.yaml"
    config.write_text(f"state_dir: {tmp_path}\n")

    def run(*words: str):
        return CliRunner().invoke(app, ["ledger", *words, "--config", str(config)])

    return run


def test_the_report_adds_up(ledger):
    document = json.loads(ledger("report", "--json").stdout)
    total = sum(map(sum, COSTS.values()))
    assert document["total"]["cost_pusd"] == total
    assert {each_team["name"]: each_team["cost_pusd"] for each_team in document["teams"]} == {
        team: sum(costs) for team, costs in COSTS.items()
    }
    for lines in ("teams", "models", "backends", "targets"):
        assert sum(item["cost_pusd"] for item in document[lines]) == total
        assert sum(item["input_tokens"] for item in document[lines]) == 3_600_003


def test_a_month_is_one_of_the_calendar_and_its_days_are_its_spend(ledger, url):
    engine = make_engine(url)
    zone = ReportingZone("Asia/Kolkata")
    with engine.begin() as connection:
        declare_zone(connection, zone.name, 1)
    engine.dispose()
    now_us = time.time_ns() // 1000
    document = json.loads(
        ledger("report", "--json", "--month", f"{zone.date_of(now_us):%Y-%m}").stdout
    )
    assert document["start_us"] == zone.month(now_us)[0]
    assert document["timezone"] == zone.name
    days = document["days"]
    assert sum(day["api_pusd"] for day in days) == document["total"]["cost_pusd"]
    assert [day["start_us"] for day in days] == [zone.day(day["start_us"])[0] for day in days]


@pytest.mark.parametrize(
    ("month", "says"), [("2026-13", "is not a month"), ("2126-01", "has not begun")]
)
def test_a_month_that_is_none_is_refused(ledger, month, says):
    answer = ledger("report", "--month", month)
    assert answer.exit_code == 1
    assert says in answer.stderr


def test_people_see_the_same_sums(ledger):
    answer = ledger("report")
    assert answer.exit_code == 0
    for shown in ("By team", "search", "3.1000", "0.5000", "3.6000", "0 requests were refused"):
        assert shown in answer.stdout
    assert "$0.000003" in answer.stdout, "what four places would round to nothing is not nothing"
    assert "SIMULATED" not in answer.stdout


def test_the_verdict_stands_in_the_report_with_the_books_beside_it(ledger, tmp_path):
    document = json.loads(ledger("report", "--json").stdout)
    assert set(document["books"]) == {"fixed_usd", "gpu_usd", "ops_usd", "api_usd", "hours"}
    sentence = document["verdict"]["sentence"]
    assert sentence in " ".join(ledger("report").stdout.split())
    path = tmp_path / "verdict.csv"
    assert ledger("report", "--csv", str(path)).exit_code == 0
    assert path.read_text().startswith('"pool","action"')
    refused = ledger("report", "--month", "2026-13")
    assert refused.exit_code == 1
    assert "write it as 2026-11" in refused.stdout + refused.stderr


def test_one_team_alone(ledger):
    document = json.loads(ledger("report", "--json", "--team", "ads").stdout)
    assert document["total"]["cost_pusd"] == sum(COSTS["ads"])


def test_a_teams_report_says_whose_the_bills_are(ledger):
    said = "whether own GPUs are worth it are of all teams; ads used $0.0000 of these bills."
    assert said in " ".join(ledger("report", "--team", "ads").stdout.split())
    assert "of all teams" not in ledger("report").stdout


def test_a_report_needs_a_day_at_least(ledger):
    assert ledger("report", "--days", "0").exit_code == 2


def test_books_that_hold(ledger):
    answer = ledger("verify")
    assert answer.exit_code == 0, answer.stdout
    assert answer.stdout.endswith("checks: all hold.\n")
    assert f"{len(CHECKS)}/{len(CHECKS)}" in answer.stderr  # how far it was, beside the output
    assert json.loads(ledger("verify", "--json").stdout)["findings"] == []


def test_a_journal_that_is_not_read_on_is_a_finding(ledger, tmp_path):
    """Red before: 31 answered requests were in no row, and all checks held."""
    run, why = tmp_path / "run", "journal worker-0-1 cannot be read on: No such file or directory"
    run.mkdir()
    lag = WriterLag(1, 1, away=False, quarantined=0, stalled=why)
    write_lag(run, lag)
    answer = ledger("verify")
    assert answer.exit_code == 1
    said = " ".join(answer.stdout.split())
    assert f"journals_are_whole: this host: {why}; rows behind it lack" in said
    assert "checks: 1 findings." in said
    write_lag(run, replace(lag, stalled=None))
    assert ledger("verify").exit_code == 0


def test_disputed_attempts_are_shown_and_break_no_invariant(ledger, url):
    assert "disputed" not in ledger("report").stdout + ledger("verify").stdout
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE attempts SET flag = 'disputed' WHERE attempt_id = 'r0.1'"))
    engine.dispose()
    shown = " ".join(ledger("report").stdout.split())
    assert "the target reported usage that cannot be" in shown
    (item,) = json.loads(ledger("report", "--json").stdout)["flagged"]
    assert (item["flag"], item["target"], item["attempts"]) == ("disputed", "openai/gpt-4o-mini", 1)
    answer = ledger("verify")
    assert answer.exit_code == 0
    assert "1 attempts are disputed" in answer.stdout
    assert json.loads(ledger("verify", "--json").stdout)["disputed"] == 1


def test_books_that_were_tampered_with_end_with_status_1(ledger, url):
    engine = make_engine(url)
    with engine.begin() as connection:
        changed = "UPDATE postings SET amount_pusd = amount_pusd + 1 WHERE seq = 1"
        assert connection.execute(text(changed)).rowcount == 1
    engine.dispose()
    answer = ledger("verify")
    assert answer.exit_code == 1
    assert "findings." in answer.stdout
    assert json.loads(ledger("verify", "--json").stdout)["findings"] != []


def test_books_that_grow_meanwhile_are_read_in_one_state(ledger, url, monkeypatch):
    """A running gateway seals between two looks: what a mark named was not yet in what was read."""
    count = text("SELECT count(*) FROM attempts")

    def changes_nothing(connection):
        before = connection.execute(count).scalar_one()
        engine = make_engine(url)
        LedgerRepository(engine, host="h").import_records(
            [opened(90, "ads", 7)], journal="later", at_us=8
        )
        engine.dispose()
        if connection.execute(count).scalar_one() != before:
            yield "attempts", "came while they were read"

    monkeypatch.setattr("ledger.verify.checks.CHECKS", (changes_nothing,))
    assert json.loads(ledger("verify", "--json").stdout)["findings"] == []


def test_without_a_ledger_there_is_a_line_and_no_file(tmp_path):
    config = tmp_path / "breakeven.yaml"
    config.write_text(f"state_dir: {tmp_path / 'none'}\n")
    answer = CliRunner().invoke(app, ["ledger", "verify", "--config", str(config)])
    assert answer.exit_code == 1
    assert "there is no ledger" in answer.stderr
    assert not (tmp_path / "none").exists()


def test_a_noted_seal_is_found_again_and_missed_when_the_books_are_older(ledger, url):
    engine = make_engine(url)
    Sealer(engine).seal(at_us=1)
    word = ledger("seal").stdout.strip()
    assert json.loads(ledger("seal", "--json").stdout)["seal"] == word
    assert ledger("verify", "--seal", word).exit_code == 0
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM seals"))
    missed = ledger("verify", "--seal", word)
    assert missed.exit_code == 1
    assert "books are missing" in missed.stdout.replace("\n", " ")
    assert ledger("verify", "--seal", "nonsense").exit_code == 2
    a_file = " ".join(ledger("verify", "--seal", "seal.txt").output.split())
    assert '--seal "$(cat FILE)"' in a_file, "who gives the file's name is told what to type"
    engine.dispose()


def test_changes_are_listed_and_their_head_is_noted_with_the_seals(ledger, url):
    engine = make_engine(url)
    with engine.begin() as connection:
        for number, actor in ((1, "ann"), (2, "bob")):
            connection.execute(
                text("INSERT INTO policy_sets (number, document, recorded_us, actor)"
                     " VALUES (:number, 'policies: []', 5, :actor)"),
                {"number": number, "actor": actor},
            )  # fmt: skip
    while Sealer(engine).seal(at_us=1) or AuditLog(engine).follow(at_us=1):
        pass
    listed = json.loads(ledger("changes", "--limit", "2", "--json").stdout)
    assert {(entry["actor"], entry["row"]) for entry in listed} >= {("bob", "2")}
    assert "actor: - -> bob" in " ".join(ledger("changes").stdout.split())
    word = ledger("seal").stdout.strip()
    assert word.count(":") == 5  # the seals, the changes, the annex
    assert ledger("verify", "--seal", word).exit_code == 0
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM register_entries"))
    assert "books are missing" in " ".join(ledger("verify", "--seal", word).stdout.split())
    engine.dispose()


def test_sums_are_made_anew_and_the_report_stays(ledger, url):
    engine = make_engine(url)
    while Sealer(engine).seal(at_us=1):
        pass
    engine.dispose()
    before = ledger("report", "--json").stdout
    assert json.loads(ledger("rebuild", "--json").stdout)["attempts_to"] > 0
    answer = ledger("rebuild")
    assert answer.stdout.startswith("Added up: attempts 1 to ")
    assert "packs the days" in answer.stderr
    assert json.loads(before)["total"] == json.loads(ledger("report", "--json").stdout)["total"]
    assert ledger("verify").exit_code == 0


def test_what_is_claimed_of_budget_windows_is_counted_anew(ledger, url):
    """An earlier release takes a claim out of the books, and leaves its window as it was."""
    engine = make_engine(url)
    with engine.begin() as connection:
        rows = [
            {"budget_id": name, "window": 7, "claimed_pusd": pusd}
            for name, pusd in (("team:search@month", 20), ("global@month", 0))
        ]
        connection.execute(insert(BudgetWindowRow), rows)
    Rollups(engine).follow()
    assert json.loads(ledger("rebuild", "--json").stdout)["windows_healed"] == 1
    with engine.connect() as connection:
        query = select(BudgetWindowRow.claimed_pusd)
        assert connection.execute(query).scalars().all() == [0, 0]
    with engine.begin() as connection:
        connection.execute(update(BudgetWindowRow).values(claimed_pusd=3))
    engine.dispose()
    said = " ".join(ledger("rebuild").stdout.split())
    assert "What is claimed of 2 budget windows is counted anew." in said
    assert json.loads(ledger("rebuild", "--json").stdout)["windows_healed"] == 0
    assert "windows_count_claims" not in ledger("verify").stdout


def test_attempts_retire_when_they_are_old_and_nothing_goes_before(ledger, url):
    engine = make_engine(url)
    while Sealer(engine).seal(at_us=1):
        pass
    while Rollups(engine).follow():
        pass
    seen = json.loads(ledger("retire", "--days", "35", "--json").stdout)
    assert (seen["attempts"], "not old enough" in seen["waits_for"]) == (0, True)
    assert "Would retire about 0 attempts" in ledger("retire", "--days", "35").stdout
    assert ledger("retire", "--days", "34").exit_code == 2
    before = ledger("report", "--json", "--days", "400").stdout
    with engine.begin() as connection:  # a year passes: everything is sealed and added up anew
        for table in ("seals", "seal_marks", "rollup_hours", "rollup_days", "rollup_waiting"):
            connection.execute(text(f"DELETE FROM {table}"))
        connection.execute(text("UPDATE rollup_position SET seq = 0, version = 9"))
        year = 360 * 86_400_000_000
        connection.execute(text(
            f"UPDATE attempts SET opened_us = opened_us - {year}, settled_us = settled_us - {year}"
        ))  # fmt: skip
    while Sealer(engine).seal(at_us=1):
        pass
    while Rollups(engine).follow():
        pass
    engine.dispose()
    assert "about 4 attempts" in ledger("retire", "--days", "35").stdout
    both = ("retire", "--days", "35", "--entries-days", "35", "--apply")
    assert "Retired 3 attempts" in ledger(*both).stdout
    # What is sealed today is condensed when the day's seals are over.
    assert json.loads(ledger(*both, "--json").stdout)["postings"] == 0
    after = ledger("report", "--json", "--days", "400").stdout
    assert json.loads(after)["total"] == json.loads(before)["total"]
    assert "seals_hold" not in ledger("verify").stdout
    exported = ledger("export", "--from", "2020-01-01", "--format", "csv", "--out", "x.csv")
    assert (exported.exit_code, "were retired" in exported.stderr) == (1, True)
    refused = ledger("rebuild")
    assert (refused.exit_code, "cannot be made anew" in refused.stderr) == (1, True)


def test_migrate_makes_the_schema_and_is_repeated_for_nothing(tmp_path, monkeypatch) -> None:
    url = sqlite_url(tmp_path / "new.db")
    monkeypatch.setenv("BREAKEVEN_LEDGER_URL", url)
    for _ in range(2):
        answer = CliRunner().invoke(app, ["ledger", "migrate", "--json"])
        assert answer.exit_code == 0, answer.output
    newest = max(path.name for path in Path("migrations/versions").glob("[0-9]*.py"))
    assert json.loads(answer.output) == {"schema": newest.partition("_")[0]}
    engine = make_engine(url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM postings")).scalar_one() == 0
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "said"),
    [("", "set BREAKEVEN_LEDGER_URL"), ("nonsense", "BREAKEVEN_LEDGER_URL"),
     ("mysql://u:hush@127.0.0.1/x", "SQLite or PostgreSQL"),
     ("postgresql://u:hush@127.0.0.1:1/x", "cannot be migrated")],
)  # fmt: skip
def test_migrate_says_what_is_wrong_and_no_password(monkeypatch, url: str, said: str) -> None:
    monkeypatch.setenv("BREAKEVEN_LEDGER_URL", url)
    answer = CliRunner().invoke(app, ["ledger", "migrate"])
    assert answer.exit_code == 1
    assert said in answer.output
    assert "hush" not in answer.output


def test_adjustments_to_bills_are_a_line_and_in_the_total(ledger, url):
    at_us = time.time_ns() // 1000 - 1_800_000_000
    engine = make_engine(url)
    with engine.begin() as connection:
        for line, (account, pusd) in enumerate(
            (("adjustments:openai", -500_000_000_000), ("payable:provider:openai", 500_000_000_000))
        ):
            row = {"entry_id": "invoice:1:2026-11-01", "line": line, "at_us": at_us}
            values = row | {"account": account, "amount_pusd": pusd}
            connection.execute(insert(PostingRow), values)
    engine.dispose()
    document = json.loads(ledger("report", "--json").stdout)
    (line,) = document["adjustments"]
    assert (line["party"], line["pusd"]) == ("provider:openai", -500_000_000_000)
    total = sum(map(sum, COSTS.values()))
    assert document["adjusted_pusd"] == -500_000_000_000
    assert document["total_pusd"] == total - 500_000_000_000
    text = " ".join(ledger("report").stdout.split())
    for shown in ("Adjustments to bills, of no team", "provider:openai", "-$0.5000"):
        assert shown in text
    assert "All of it cost $3.1000: $3.6000 at APIs, -$0.5000 of adjustments to bills." in text
    team = ledger("report", "--team", "search").stdout
    assert "Adjustments" not in team


def test_each_flag_has_one_sum_over_its_targets(ledger, url):
    said = " ".join(ledger("report").stdout.split())
    assert "No attempt has a flag." in said
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE attempts SET flag = 'lost'"))
        other = "UPDATE attempts SET target = 'openai/other' WHERE attempt_id = 'r0.1'"
        connection.execute(text(other))
    engine.dispose()
    document = json.loads(ledger("report", "--json").stdout)
    assert len(document["flagged"]) == 2
    (line,) = document["flags"]
    total = sum(map(sum, COSTS.values()))
    assert (line["flag"], line["attempts"], line["cost_pusd"]) == ("lost", 4, total)
    assert line["means"].startswith("its worker died")
    said = " ".join(ledger("report").stdout.split())
    assert "Flags" in said
    assert "lost 4 $3.6000" in said
