"""Three journals joined: what callers were told, what the target did, what the books say.

Prices are written out once more here: what the target says it did, times these, is what the books
must have booked. `account` reads the books as a stranger: tables, not the product's functions;
its last word is the product's own `verify`, which must find the same.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from crowd import CallerRecord
from scene import SceneFigures
from sqlalchemy import Engine, bindparam, text

from ledger.database import open_readonly, snapshot
from ledger.verify.checks import verify

INPUT, CACHED, OUTPUT = 150_000, 75_000, 600_000  # pico-USD per token: openai/gpt-4o-mini
QUIET_S = 60.0
_ATTEMPTS = """SELECT attempt_id, request_id, opened_us, settled_us, status, flag, basis,
    input_tokens, cached_tokens, output_tokens, bound_pusd, cost_pusd FROM attempts"""


@dataclass(frozen=True, slots=True)
class Books:
    """What the tables say, each read in the same state of the books."""

    attempts: list[Any]
    posted: dict[str, list[int]]  # amounts on a team's account, by entry
    holds: list[Any]
    windows: dict[tuple[str, int], int]  # spent
    limits: dict[str, int]  # of hard budgets
    refusals: list[Any]
    aside: list[bytes]  # records in quarantine
    findings: list[str]


def read(url: str) -> Books:
    engine = open_readonly(url)
    try:
        with snapshot(engine) as connection:

            def rows(query: str) -> list[Any]:
                return list(connection.execute(text(query)).mappings())

            posted: dict[str, list[int]] = {}
            query = "SELECT entry_id, amount_pusd FROM postings WHERE account LIKE 'expense:team:%'"
            for entry, amount in connection.execute(text(query)):
                posted.setdefault(entry, []).append(int(amount))
            windows = {
                (row["budget_id"], row["window"]): int(row["spent_pusd"])
                for row in rows('SELECT budget_id, "window", spent_pusd FROM budget_windows')
            }
            limits = {
                row["id"]: int(row["limit_pusd"])
                for row in rows("SELECT id, limit_pusd, hard FROM budgets") if row["hard"]
            }  # fmt: skip
            found = verify(connection).findings
            return Books(
                rows(_ATTEMPTS), posted,
                rows('SELECT attempt_id, budget_id, "window", amount_pusd, state, actual_pusd'
                     " FROM holds"),
                windows, limits,
                rows("SELECT request_id, refused_us, reason, scope FROM refusals"),
                [bytes(row["record"]) for row in rows("SELECT record FROM quarantine")],
                [f"{finding.check}: {finding.subject}: {finding.message}" for finding in found],
            )  # fmt: skip
    finally:
        engine.dispose()


def quiet(url: str, expected: Iterable[str], limit_s: float = QUIET_S) -> float:
    """Wait until these attempts are rows and nothing is open; seconds that it took.

    Returns at the limit, too: what is missing then is found by the account.
    """
    names, began = set(expected), time.monotonic()
    engine = open_readonly(url)
    try:
        while time.monotonic() < began + limit_s and not _all_there(engine, names):
            time.sleep(0.2)
    finally:
        engine.dispose()
    return time.monotonic() - began


def _all_there(engine: Engine, names: set[str]) -> bool:
    with engine.connect() as connection:
        left = connection.execute(
            text("SELECT count(*) FROM attempts WHERE settled_us IS NULL")
        ).scalar_one()
        if left:
            return False
        query = text("SELECT attempt_id FROM attempts WHERE attempt_id IN :names")
        query = query.bindparams(bindparam("names", expanding=True))
        missing = set(names)
        for part in _parts(sorted(names), 5_000):
            missing -= set(connection.execute(query, {"names": part}).scalars())
        names &= missing  # those that are there stay there
        return not names


def _parts(names: list[str], size: int) -> list[list[str]]:
    return [names[at : at + size] for at in range(0, len(names), size)]


def price(entry: dict[str, Any]) -> int:
    cached = entry["cached_tokens"]
    fresh = entry["prompt_tokens"] - cached
    return fresh * INPUT + cached * CACHED + entry["completion_tokens"] * OUTPUT


def join(
    said: list[CallerRecord], entries: list[dict[str, Any]], books: Books, found: SceneFigures, *,
    priced: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> None:  # fmt: skip
    """Write into `found` what the three journals disagree on.

    `priced`: whether what a target did costs what its tokens do.
    """
    rows: dict[str, list[Any]] = {}
    for row in books.attempts:
        rows.setdefault(row["request_id"], []).append(row)
    did = {entry["request_id"]: entry for entry in entries if entry["status"] != "refused"}
    finished = [line for line in said if line.finished]
    lost = doubled = difference = 0
    for item in finished:
        whole = [row for row in rows.get(item.request_id, ()) if row["status"] == "finished"]
        if not whole:
            lost += 1
            continue
        doubled += len(whole) > 1
        row, entry = whole[0], did.get(whole[0]["attempt_id"])
        if entry is None or row["output_tokens"] != item.completion_tokens:
            lost += 1
        elif priced(entry):
            difference += abs((row["cost_pusd"] or 0) - price(entry))
    twice = Counter(row["attempt_id"] for row in books.attempts)
    calls = Counter(entry["request_id"] for entry in entries)
    doubled += sum(count - 1 for count in twice.values())
    doubled += sum(len(amounts) - 1 for amounts in books.posted.values())
    doubled += sum(count - 1 for count in calls.values())
    found.lost = (found.lost or 0) + lost
    found.duplicated = (found.duplicated or 0) + doubled
    found.difference_pusd = (found.difference_pusd or 0) + difference + _within(books)
    found.overspent_pusd = (found.overspent_pusd or 0) + overspent(books)
    unknown = [name for name in did if name not in twice]
    open_ = [row for row in books.attempts if row["settled_us"] is None]
    held = [hold for hold in books.holds if hold["state"] == "held"]
    found.figures["finished"] = len(finished)
    found.figures["attempts"] = len(books.attempts)
    found.expect("tries without a row", len(unknown), holds=not unknown)
    found.expect("left open", len(open_), holds=not open_)
    found.expect("left held", len(held), holds=not held)
    found.expect("quarantined", len(books.aside), holds=not books.aside)
    found.expect("verify findings", len(books.findings), holds=not books.findings)
    if books.findings:  # the books are gone when somebody reads the table
        found.figures["the first finding"] = books.findings[0][:300]


def _within(books: Books) -> int:
    """Between rows, postings, holds and what windows say is spent."""
    costs = {row["attempt_id"]: row["cost_pusd"] or 0 for row in books.attempts
             if row["settled_us"] is not None and row["status"] != "lost"}  # fmt: skip
    unposted = sum(abs(cost - sum(books.posted.get(name, ()))) for name, cost in costs.items())
    counted: Counter[tuple[str, int]] = Counter()
    for hold in books.holds:
        counted[hold["budget_id"], hold["window"]] += hold["actual_pusd"] or 0
    spent = {*books.windows, *counted}
    return unposted + sum(abs(books.windows.get(amount, 0) - counted[amount]) for amount in spent)


def overspent(books: Books) -> int:
    """Beyond any hard limit, at any moment: held and spent, replayed hold by hold."""
    times = {row["attempt_id"]: (row["opened_us"], row["settled_us"]) for row in books.attempts}
    steps: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for hold in books.holds:
        opened, settled = times.get(hold["attempt_id"], (None, None))
        if opened is None or hold["budget_id"] not in books.limits:
            continue
        moves = steps.setdefault((hold["budget_id"], hold["window"]), [])
        moves.append((opened, hold["amount_pusd"]))
        if settled is not None and hold["actual_pusd"] is not None:
            moves.append((settled, hold["actual_pusd"] - hold["amount_pusd"]))
    most = 0
    for (budget, _), moves in steps.items():
        total, limit = 0, books.limits[budget]
        for _, change in sorted(moves):  # of one instant what comes back comes first
            total += change
            most = max(most, total - limit)
    for (budget, _), spent in books.windows.items():
        if budget in books.limits:
            most = max(most, spent - books.limits[budget])
    return most


def settle(
    url: str,
    said: list[CallerRecord],
    entries: Callable[[], list[dict[str, Any]]],
    found: SceneFigures,
) -> Books:
    """Wait for quiet, then join; `entries` is asked when all is over."""
    did = [entry["request_id"] for entry in entries() if entry["status"] != "refused"]
    found.figures["quiet after s"] = round(quiet(url, did), 1)
    books = read(url)
    join(said, entries(), books, found)
    return books
