"""Downloads are the exports of the command line, of the period that is looked at."""

import csv
import io

import pyarrow.parquet as pq

from dashboard import downloads
from dashboard.data import reads
from dashboard.downloads import attempts_csv, attempts_parquet, focus_csv
from dashboard.viewer_identity import AT_THIS_MACHINE
from ledger.money import pusd_to_usd


def view_of(month, team: str | None = None) -> reads.DashboardView:
    return reads.DashboardView(month.url, "30 d", team, month.now_us, who=lambda: AT_THIS_MACHINE)


def rows(text: bytes) -> list[dict]:
    return list(csv.DictReader(io.StringIO(text.decode())))


def test_attempts_are_those_of_the_journal(month) -> None:
    found = rows(attempts_csv(view_of(month)))
    assert {finding["request_id"] for finding in found} == {
        opening.request_id for opening in month.opened
    }
    table = pq.read_table(io.BytesIO(attempts_parquet(view_of(month))))
    assert table.num_rows == len(found)
    paid = sum(last.cost_pusd or 0 for _, last in month.pairs)
    assert sum(item for item in table["cost_usd"].to_pylist() if item) == pusd_to_usd(paid)


def test_a_teams_file_has_its_rows_alone(month) -> None:
    found = rows(attempts_csv(view_of(month, "finance")))
    assert {finding["team_id"] for finding in found} == {"finance"}
    assert {row["SubAccountId"] for row in rows(focus_csv(view_of(month, "finance")))} <= {
        "finance"
    }


def test_focus_has_what_apis_charged(month) -> None:
    found = [row for row in rows(focus_csv(view_of(month))) if row["x_Backend"] == "api"]
    paid = sum(last.cost_pusd or 0 for item, last in month.pairs if item.backend == "api")
    assert sum(round(float(finding["BilledCost"]) * 1e12) for finding in found) == paid


def test_the_page_offers_them_or_says_how(page, month, text_of, monkeypatch) -> None:
    assert len(page("spend", month.url).get("download_button")) == 3
    monkeypatch.setattr(downloads, "MOST_ROWS", 10)
    test = page("spend", month.url)
    assert "breakeven ledger export" in text_of(test)
    assert len(test.get("download_button")) == 0
