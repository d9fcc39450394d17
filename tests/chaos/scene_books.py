"""L12: a random ledger, and every way of adding it up: export, dashboard, postings, and verify."""

import time
from collections.abc import Callable
from typing import Any

from scene import Given, Scene, SceneFigures
from sqlalchemy import text
from stage import Stage, random_ledger

from ledger.database import make_engine, migrate, open_readonly, snapshot
from ledger.exports import focus_columns as exports_focus_columns
from ledger.exports.attempts import COLUMNS, attempt_rows
from ledger.exports.focus import focus_rows
from ledger.queries import reads as queries
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.verify.checks import verify

ROWS = 1_000_000
VERIFY_S = 60.0  # for a million rows
COST = [column.name for column in COLUMNS].index("cost_usd")
BILLED = [column.name for column in exports_focus_columns.FOCUS_1_4.columns].index("BilledCost")
CENT = "UPDATE attempts SET cost_pusd = cost_pusd - 10000000000 WHERE attempt_id = 'r7.1'"


def play(given: Given) -> SceneFigures:
    found, rows = SceneFigures(), given.of(ROWS)
    with Stage(given) as stage:
        url = stage.new_url("random.db")
        migrate(url)
        books = random_ledger(given.seed, rows)
        writer = make_engine(url)
        began = time.monotonic()
        books.fill(writer)
        found.figures["filled in s"] = round(time.monotonic() - began, 1)
        given.say(f"{books.written['rows']} rows written")
        if given.broken:
            with writer.begin() as connection:
                connection.execute(text(CENT))
        writer.dispose()
        _add_up(given, url, books, found)
    found.size = f"{books.written['rows']} attempts"
    return found


def _add_up(given: Given, url: str, books: Any, found: SceneFigures) -> None:
    scope, reader = Scope(books.START_US, books.end_us), open_readonly(url)
    exact = books.total + books.written["own_pusd"]

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        answer = work()
        found.figures[f"{name} in s"] = round(time.monotonic() - began, 1)
        given.say(f"{name}: {found.figures[f'{name} in s']} s")
        return answer

    with snapshot(reader) as connection:
        exported = timed("attempts exported", lambda: [
            row[COST] for row in attempt_rows(connection, scope, lambda _: None)
        ])  # fmt: skip
        billed = timed("FOCUS exported", lambda: sum(
            row[BILLED] for row in focus_rows(connection, scope, lambda _: None, period_us=HOUR_US)
        ))  # fmt: skip
        shown = timed("dashboard", lambda: sum(
            cell.cost_pusd for cell in queries.cells(connection, scope, bucket_us=DAY_US)
        ))  # fmt: skip
        owed = -int(connection.execute(text(
            "SELECT sum(amount_pusd) FROM postings WHERE account LIKE 'payable:%'"
        )).scalar_one())  # fmt: skip
        result = timed("verify", lambda: verify(connection))
    reader.dispose()
    found.lost = books.written["rows"] - len(exported)
    found.duplicated = max(0, -found.lost)
    found.difference_pusd = (
        abs(sum(cost for cost in exported if cost is not None) - exact)
        + abs(shown - exact)
        + abs(billed - owed)
    )
    # Budgets whose counters are folded again are compared in every other scene: here are none.
    # The ledger's adjustments are postings without an invoice: `verify` must name just these.
    other = [finding for finding in result.findings if finding.subject not in planted(books)]
    broken = sorted({item.check for item in other})
    found.expect("verify findings", len(other), holds=not other)
    named = len(result.findings) - len(other)
    found.expect("planted ones named", named, holds=named == len(books.adjusted))
    if broken:
        found.figures["of"] = ", ".join(broken)
    took = float(found.figures["verify in s"])
    found.expect("verify, of 60 s", took, holds=took <= VERIFY_S)


def planted(books: Any) -> set[str]:
    return {f"invoice:{owed_to}" for owed_to, _ in books.adjusted}


SCENES = (
    Scene("L12", "L11, L12", "a random ledger added up in every way", play, "one cent off a row"),
)
