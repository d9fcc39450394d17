"""Nine surfaces, one verdict: each reads the ledger's, and none adds dollars of its options up."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from dashboard.verdictreport import verdict_page
from gateway.control.admin.verdict import ReadVerdictInput, verdict_read
from ledger.database import open_readonly
from ledger.economics.verdict_text import sentence
from ledger.exports.verdict import verdict_csv
from ledger.reporting_zone import ReportingZone
from ledger.reports.periodic import periodic_report
from ledger.reports.verdict_read import read_verdict
from ledger.spans import DAY_US, Scope

ROOT = Path(__file__).parents[2]
SURFACES = {
    "first page": "dashboard/page/answer.py",
    "Break-even": "dashboard/page/breakeven.py",
    "Plan": "dashboard/page/plan.py",
    "What-if": "dashboard/sections/scenario_form.py",
    "ledger report": "gateway/cli/ledger.py",
    "HTTP": "gateway/control/admin/verdict.py",
    "CSV": "ledger/exports/verdict.py",
    "printable plan": "dashboard/planreport.py",
    "scheduled report": "ledger/reports/periodic.py",
}
SHARED = ("dashboard/sections/verdict.py", "dashboard/verdictreport.py", "dashboard/scenario.py",
          "gateway/cli/verdict_table.py", "ledger/reports/verdict_read.py")  # fmt: skip
AMOUNTS = {"gpu_pusd", "ops_pusd", "api_pusd", "total_pusd", "pro_rata_pusd", "worth_pusd"}
READS = {"FleetVerdict", "read_verdict", "verdict_section", "verdict"}
JUDGES = {
    "dashboard/scenario.py", "ledger/reports/fleet_sheet.py", "ledger/reports/verdict_read.py",
}  # fmt: skip


def sums_of_options(text: str) -> list[int]:
    """Lines that add up, subtract or scale an option's amounts; the period's own `fixed` is not."""
    found = []
    for node in ast.walk(ast.parse(text)):
        adds = isinstance(node, ast.BinOp | ast.AugAssign) or (
            isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"sum", "min", "max"}
        )
        if not adds:
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and inner.attr in AMOUNTS:
                of_period = getattr(inner.value, "attr", getattr(inner.value, "id", "")) == "fixed"
                found += [] if of_period else [inner.lineno]
    return found


def imported(text: str) -> set[str]:
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom))
    return {name.name for node in nodes for name in node.names}


def test_nine_surfaces_read_it_and_none_computes_its_own() -> None:
    assert len(SURFACES) == 9
    for name, path in SURFACES.items():
        text = (ROOT / path).read_text()
        assert imported(text) & READS, f"{name} reads the verdict"
        assert sums_of_options(text) == [], name
    for path in SHARED:
        assert sums_of_options((ROOT / path).read_text()) == [], path


def test_only_the_ledger_and_scenarios_judge() -> None:
    found = {
        source.relative_to(ROOT).as_posix()
        for package in ("dashboard", "gateway", "ledger")
        for source in (ROOT / package).rglob("*.py")
        if re.search(r"import \(?[^)]*\bjudge\b", source.read_text())
    }
    assert found == JUDGES


@pytest.mark.parametrize(
    "text",
    ["a = option.gpu_pusd + option.api_pusd", "a = sum(o.total_pusd for o in options)",
     "a -= best.total_pusd"],
)  # fmt: skip
def test_a_sum_of_dollars_is_seen(text: str) -> None:
    assert sums_of_options(text) != []
    assert sums_of_options("a = standing.fixed.total_pusd / 2") == []


@pytest.mark.parametrize("how", [{"peak": 6.0}, {"peak": 9.0, "days": 2, "seed": 3}])
def test_the_same_sentence_everywhere(page, books, text_of, month, how) -> None:
    """The pages on a ledger whose contract ended yesterday: there no cent moves with the clock."""
    filled = month if how["peak"] == 6.0 else books(**how)
    engine = open_readonly(filled.url)
    with engine.connect() as connection:
        found = read_verdict(connection, Scope.last(30 * DAY_US, filled.now_us))
    expected = _plain(sentence(found.verdict))
    place = SimpleNamespace(ledger=engine, now_us=filled.now_us)
    told = verdict_read.work(place, ReadVerdictInput())
    assert _plain(told["verdict"]["sentence"]) == expected
    assert told["simulated"] is found.simulated
    zone = ReportingZone()
    with engine.connect() as connection:
        sent = periodic_report(connection, Scope.last(30 * DAY_US, filled.now_us), zone,
                               filled.now_us)  # fmt: skip
    assert expected in _plain(sent.text())
    assert sent.described()["verdict"] == told["verdict"]
    assert sent.described()["coverage"] == told["coverage"] == found.coverage_note
    csv = verdict_csv(found.verdict, simulated=found.simulated)
    assert expected in _plain(csv)
    assert expected in _plain(verdict_page(found.verdict, (), "now"))
    engine.dispose()
    if filled is month:
        for name in ("answer", "breakeven", "plan"):
            assert expected in _plain(text_of(page(name, month.url))), name


def _plain(text: str) -> str:
    """Without the comma and the space at which a page breaks the sentence in two."""
    return re.sub(r"\s+", " ", text.replace(", because", " because"))


def test_pages_say_from_how_few_hours_they_judge(page, books, text_of, month) -> None:
    """Two days of books were read as thirty; the report alone said so."""
    young = books(peak=9.0, days=2, seed=3)
    for name in ("answer", "breakeven", "plan"):
        found = re.search(
            r"judged from (\S+) of the period's 72[01] hours", text_of(page(name, young.url))
        )
        assert found is not None, name
        assert 40 < float(found[1]) <= 48
        assert "judged from" not in text_of(page(name, month.url)), name
