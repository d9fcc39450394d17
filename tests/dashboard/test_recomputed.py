"""Figures of every page, recomputed from raw rows by plain SQL, beside what the page shows.

The books are the demo's, with ops of its GPUs entered. Pages are read by their labels; what is
wanted of them is computed by `plain_books`, which imports nothing of the product.
"""

import ast
import csv
import io
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from demo_ledger import DemoLedger, close_reads, make_demo_ledger, other_surfaces
from plain_books import ANSWERED, DAY_US, GOOD, MILLION, USD, PlainBooks
from shown_figures import ShownPage, number_of

from deploy import parts

PRODUCT = {"backends", "dashboard", "deploy", "gateway", "ledger", "migrations", "router"}
LEAST_FIGURES = 170
HAIKU, LLAMA = 0, 1  # positions of the comparators
POOL = "llama-8b"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as it is shown, and what it is: in dollars, tokens, per cent or a plain number."""

    name: str
    shown: Any
    wanted: Fraction
    rounding: Fraction = Fraction(0)  # of what the ledger keeps in whole pico-dollars

    @property
    def agrees(self) -> bool:
        """Whether it is right to its last shown place; floats to the last digits they have."""
        if not isinstance(self.shown, str):
            exact = Fraction(self.shown)
            return abs(exact - self.wanted) <= abs(self.wanted) / 10**12 + self.rounding
        read = number_of(self.shown)
        if read is not None and self.shown.startswith("<"):
            return 0 < self.wanted < Fraction(read[0])
        return read is not None and abs(Fraction(read[0]) - self.wanted) <= Fraction(read[1])


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def demo(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[DemoLedger]:
    server = url = None
    if request.param == "postgres":  # a gateway does not begin on one that may lose a commit
        shared = request.getfixturevalue("postgres_server")
        server = type(shared)(parts.find_postgres(), durable=True)
        url = server.url(server.create())
    yield make_demo_ledger(tmp_path_factory.mktemp("demo"), url, time.time_ns() // 1000)
    st.cache_resource.clear()
    if server is not None:
        server.stop()


@pytest.fixture
def look(demo: DemoLedger, page, monkeypatch) -> Iterator[Callable[[str], ShownPage]]:
    monkeypatch.setattr("dashboard.data.reads.rounded_now_us", lambda _: demo.now_us)
    yield lambda name: ShownPage(page(name, demo.url))
    close_reads(demo)


@pytest.fixture
def books(demo: DemoLedger) -> Iterator[PlainBooks]:
    made = PlainBooks(demo.url, demo.now_us)
    yield made
    made.close()


def usd(pusd: Fraction | int) -> Fraction:
    return Fraction(pusd) / USD


def share(part: int, whole: int) -> Fraction:
    return Fraction(100 * part, whole)


def answer_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    yield Figure("spent", shown.big("Spent"), usd(books.spent_pusd))
    for label, pusd in (
        ("Own GPUs, used", books.used_pusd), ("Own GPUs, idle", books.idle_pusd),
        ("Own GPUs, unavailable", books.unavailable_pusd), ("Ops of own GPUs", books.ops_pusd),
        ("APIs", books.api_pusd),
    ):  # fmt: skip
        yield Figure(label, shown.row("Spent", label), usd(pusd))
    for title, position in (("Against the substitute model", HAIKU), ("Against the same", LLAMA)):
        avoided, gone = books.avoided(position), books.avoided(position, "status = 'client_gone'")
        result = avoided - books.fixed_pusd
        pattern = r"(\$[\d,.]+) avoided"
        yield Figure(f"{title}: avoided", shown.small(title, pattern), usd(avoided))
        pattern = r"less (\$[\d,.]+) for own GPUs and their ops"
        yield Figure(f"{title}: fixed", shown.small(title, pattern), usd(books.fixed_pusd))
        assert ("saved" if result >= 0 else "overspent") in shown.big(title)
        yield Figure(f"{title}: result", shown.big(title), usd(abs(result)))
        pattern = r"(\$[\d,.]+) of it is of answers that the client cancelled"
        yield Figure(f"{title}: cancelled", shown.small(title, pattern), usd(gone))
        served = books.tokens(GOOD)
        pattern = r"served ([\d,.]+[kMB]?)"
        yield Figure(f"{title}: served", shown.small(title, pattern), Fraction(served))
        pattern = r"Avoided price (\$[\d,.]+)"
        each = usd(Fraction(avoided, served) * MILLION)
        yield Figure(f"{title}: price", shown.small(title, pattern), each)
        if position == HAIKU:
            even = shown.small(title, r"break-even ([\d,.]+[kMB]?)")
            yield Figure(f"{title}: even", even, books.fixed_pusd * served / avoided)
            part = shown.small(title, r"Volume is ([\d.]+) %")
            yield Figure(f"{title}: part", part, 100 * avoided / books.fixed_pusd)
    slo = "Answers inside the SLO"
    known = f"slo_met IS NOT NULL AND {ANSWERED}"
    met = f"slo_met AND {ANSWERED}"
    yield Figure("SLO", shown.big(slo), share(books.count(met), books.count(known)))
    for label, backend in (("Own engines", "own"), ("APIs", "api")):
        where = f" AND backend = '{backend}'"
        part = share(books.count(met + where), books.count(known + where))
        yield Figure(f"SLO, {label}", shown.row(slo, label), part)
    for policy in books.names("policy"):
        where = f" AND policy = '{policy}'"
        part = share(books.count(met + where), books.count(known + where))
        yield Figure(f"SLO, {policy}", shown.row(slo, policy), part)
    own, every = books.tokens(f"backend = 'own' AND {ANSWERED}"), books.tokens(ANSWERED)
    yield Figure("tokens", shown.row(slo, "Tokens of chats, input"), Fraction(every))
    yield Figure("own tokens", shown.row(slo, "Tokens of chats from own"), share(own, every))
    for label, name in (("global, this", "global@month"), ("team:research", "team:research@day")):
        budget = books.budget(name)
        text = shown.row("Budgets", label)
        yield Figure(f"{name}: limit", text.partition(" of ")[2], usd(budget["limit"]))
        yield Figure(f"{name}: used", text, share(budget["spent"], budget["limit"]))


def option_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    title = "Options, cost a month"
    for gpus in (1, 2, 3):
        parts = shown.small(
            title, rf"{gpus} GPUs?(?: \((?:now|best|now, best)\))?: (GPUs .*?APIs \$[\d,.]+)"
        )
        gpu, _, ops = parts.partition("ops")
        yield Figure(f"{gpus} GPUs", gpu, usd(books.month_gpu_pusd(gpus)))
        yield Figure(f"{gpus}: ops", ops.partition("APIs")[0], usd(books.month_ops_pusd))
    bought = books.bought_pusd * books.pace
    now = r"2 GPUs \(now[^)]*\): GPUs .*?APIs (\$[\d,.]+)"
    yield Figure("bought now", shown.small(title, now), usd(bought))
    total = books.month_gpu_pusd(2) + books.month_ops_pusd + bought
    now = r"2 GPUs \(now[^)]*\): GPUs .*?APIs \$[\d,.]+ (\$[\d,.]+)"
    yield Figure("total now", shown.small(title, now), usd(total))


def break_even_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    yield from option_figures(shown, books)
    title = f"Cost per 1M tokens, input + output, pool {POOL}"
    served = books.tokens(GOOD)
    own = usd(books.fixed_pusd / served * MILLION)
    yield Figure("own, per 1M", shown.row(title, "Own, allocation"), own)
    for position in (HAIKU, LLAMA):
        name = books.comparator(position)
        each = usd(Fraction(books.avoided(position), served) * MILLION)
        yield Figure(f"{name}, per 1M", shown.row(title, name), each)
    even = books.fixed_pusd * served / books.avoided(HAIKU) * books.pace
    pattern = r"substitute model: ([\d,.]+[kMB]?) tokens a month"
    yield Figure("break-even a month", shown.small(title, pattern), even)


def spend_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    yield Figure("total", shown.big("Total"), usd(books.spent_pusd))
    yield Figure("APIs", shown.big("APIs"), usd(books.api_pusd))
    yield Figure("used", shown.big("Own GPUs, used"), usd(books.used_pusd))
    idle = books.idle_pusd + books.unavailable_pusd
    yield Figure("idle", shown.big("Own GPUs, idle"), usd(idle))
    yield Figure("ops", shown.big("Ops of own GPUs"), usd(books.ops_pusd))
    unpriced = "backend = 'api' AND cost_pusd IS NULL AND settled_us IS NOT NULL"
    yield Figure("unpriced", shown.big("Answers without"), Fraction(books.count(unpriced)))
    for column, field in (("team", "team_id"), ("model", "model"), ("backend", "target")):
        for name in books.names(field):
            where = f"{field} = '{name}'"
            api = books.paid(f"{where} AND backend = 'api'")
            own, rounding = Fraction(books.paid(f"{where} AND backend = 'own'")), Fraction(0)
            if column == "team":  # the open hour is split into whole pico-dollars
                own, rounding = books.own_of_team(name), usd(1)
            wanted = {
                "spend": usd(api + own), "APIs": usd(api), "own GPUs": usd(own),
                "answers": Fraction(books.count(f"{where} AND {ANSWERED}")),
                "input tokens": Fraction(books.input(where)),
                "output tokens": Fraction(books.output(where)),
            }  # fmt: skip
            for label, value in wanted.items():
                cell, told = shown.cell(column, name, label), f"{column} {name}: {label}"
                is_own = label in ("spend", "own GPUs")
                yield Figure(told, cell, value, rounding if is_own else Fraction(0))
    for key, name, team in books.rows("SELECT id, name, team_id FROM keys"):
        where = f"key_id = '{key}'"
        wanted = {"attempts": Fraction(books.count(where)), "spend": usd(books.paid(where))}
        for label, value in wanted.items():
            yield Figure(f"key of {team}: {label}", shown.cell("key", name, label), value)
    for title, what in (
        ("Cost per 1M tokens, input + output", books.tokens),
        ("Cost per 1M tokens, output only", books.output),
    ):
        api = f"backend = 'api' AND {ANSWERED}"
        for label, pusd, count in (
            ("Own, allocation", books.fixed_pusd, what(GOOD)),
            ("Own, usage", books.used_pusd, what(GOOD)),
            ("APIs, as charged", books.paid(api), what(api)),
        ):
            each = usd(Fraction(pusd) / count * MILLION)
            yield Figure(f"{title}: {label}", shown.row(title, label), each)
    attempts = shown.caption(r"Of this period: ([\d,]+) attempts")
    yield Figure("attempts", attempts, Fraction(books.count()))


def budget_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    for name in ("global@month", "team:research@day"):
        budget = books.budget(name)
        scope = name.partition("@")[0]
        left = budget["limit"] - budget["spent"] - budget["held"]
        for label, pusd in (budget | {"left": left}).items():
            yield Figure(f"{name}: {label}", shown.cell("budget", scope, label), usd(pusd))


def routing_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    own, spilled = books.count("backend = 'own'"), books.count("spill_reason IS NOT NULL")
    yield Figure("requests", shown.big("Requests"), Fraction(books.count()))
    yield Figure("own", shown.big("On own engines"), share(own, books.count()))
    yield Figure("own requests", shown.small("On own engines", r"([\d,]+) requests"), Fraction(own))
    yield Figure("spilled", shown.big("Spilled to APIs"), share(spilled, own + spilled))
    paid = books.paid("spill_reason IS NOT NULL")
    text = shown.caption(r"Spilled requests cost (\$[\d,.]+\d)")
    yield Figure("spilled, paid", text, usd(paid))


def engine_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    found = books.rows(
        "SELECT request_id, ttft_us, duration_us, output_tokens FROM attempts WHERE backend = 'own'"
        " AND stream AND status = 'finished' AND ttft_us IS NOT NULL AND output_tokens > 1"
        " ORDER BY opened_us DESC LIMIT 3"
    )
    for request, ttft_us, whole_us, count in found:
        row = f"spend?request={request}"
        first = shown.cell("request", row, "first token, s")
        yield Figure(f"{request}: first", first, Fraction(ttft_us, MILLION))
        written = shown.cell("request", row, "output tokens")
        yield Figure(f"{request}: output", written, Fraction(count))
        each = shown.cell("request", row, "each further, ms")
        whole = (whole_us - ttft_us) // (count - 1)  # a row keeps whole microseconds, rounded down
        yield Figure(f"{request}: each", f"{each:.3f}", Fraction(whole, 1_000))


def plan_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    api = f"backend = 'api' AND {ANSWERED}"
    # Of the page's period, from the day of its first request on: a quiet weekend may begin it.
    first_us = books.of_attempts("min(opened_us)")
    start_us = max(books.start_us, first_us - first_us % DAY_US)
    minutes = (books.now_us - start_us) // (60 * MILLION)
    month = Fraction(730 * 60, minutes)
    count, paid = books.tokens(api), books.paid(api)
    yield Figure("tokens a month", shown.big("Tokens a month"), count * month)
    yield Figure("API price", shown.big("API price per 1M"), usd(Fraction(paid, count) * MILLION))
    yield Figure("a month at the API", shown.big("A month at the API"), usd(paid * month))


def rate_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    title, contract = f"Pool {POOL}: 2 GPUs", books.contract
    yield Figure("rate", shown.big(title), usd(contract["pusd_per_hour"]))
    whole = usd(books.month_gpu_pusd(books.gpus))
    yield Figure("720 hours", shown.row(title, "All GPUs, 720 h"), whole)
    people = shown.row(title, "People who run it")
    yield Figure("ops hours", people, Fraction(contract["ops_seconds_per_week"], 3_600))
    yield Figure("ops rate", people.partition("$")[2], usd(contract["ops_pusd_per_hour"]))


def price_figures(shown: ShownPage, books: PlainBooks) -> Iterator[Figure]:
    for position in (HAIKU, LLAMA):
        name = books.comparator(position)
        for kind, wanted in books.price(name).items():
            yield Figure(
                f"{name}: {kind}", f"{shown.cell('name', name, kind):.6f}", Fraction(wanted)
            )


PAGES: dict[str, Callable[[ShownPage, PlainBooks], Iterator[Figure]]] = {
    "answer": answer_figures,
    "breakeven": break_even_figures,
    "spend": spend_figures,
    "budgets": budget_figures,
    "routing": routing_figures,
    "engines": engine_figures,
    "plan": plan_figures,
    "rates": rate_figures,
    "prices": price_figures,
}


def surface_figures(told: dict[str, Any], books: PlainBooks) -> Iterator[Figure]:
    """HTTP, CSV and the report, to the cent."""
    document = told["http"]
    wanted = {"fixed_usd": books.fixed_pusd, "gpu_usd": books.gpu_pusd, "ops_usd": books.ops_pusd,
              "api_usd": books.api_pusd}  # fmt: skip
    for name, pusd in wanted.items():
        yield Figure(f"HTTP, books: {name}", document["books"][name], usd(pusd))
    none, _, now, *_ = document["verdict"]["options"]
    yield Figure("HTTP: no GPU", none["api_usd"], usd(books.all_bought_pusd))
    bought = books.bought_pusd * books.pace
    yield Figure("HTTP: now", now["api_usd"], usd(bought))
    total = books.month_gpu_pusd(2) + books.month_ops_pusd + bought
    yield Figure("HTTP: total now", now["total_usd"], usd(total))
    rows = list(csv.DictReader(io.StringIO(told["csv"])))
    yield Figure("CSV: no GPU", rows[0]["api_usd"], usd(books.all_bought_pusd))
    yield Figure("CSV: now", rows[2]["api_usd"], usd(bought))
    yield Figure("CSV: ops", rows[2]["ops_usd"], usd(books.month_ops_pusd))
    spent = re.search(r"Spent: \$([\d.]+) at APIs, \$([\d.]+) for own engines", told["report"])
    assert spent is not None
    yield Figure("report: APIs", spent.group(1), usd(books.api_pusd))
    yield Figure("report: own", spent.group(2), usd(books.fixed_pusd))
    focus = list(csv.DictReader(io.StringIO(told["focus"])))
    for column in ("BilledCost", "EffectiveCost"):
        total = sum(Fraction(line[column]) for line in focus)
        closed = books.hours_of("bill_pusd") + books.paid(
            f"backend = 'api' AND settled_us < {books.open_from_us}"
        )
        yield Figure(f"FOCUS: {column}", float(total), usd(closed))


def test_every_figure_is_what_plain_sql_says(look, books, demo) -> None:
    told = other_surfaces(demo, 30)
    figures = [*surface_figures(told, books)]
    for name, read in PAGES.items():
        figures += read(look(name), books)
    wrong = [
        f"{figure.name}: shown {figure.shown}, is {float(figure.wanted):.12g}"
        for figure in figures
        if not figure.agrees
    ]
    assert not wrong, "\n".join(wrong)
    assert len(figures) >= LEAST_FIGURES, "fewer are compared than were"


@pytest.mark.parametrize("name", ["plain_books.py", "shown_figures.py"])
def test_the_recomputation_imports_nothing_of_the_product(name: str) -> None:
    tree = ast.parse(Path(__file__).with_name(name).read_text())
    found = {
        part.partition(".")[0]
        for node in ast.walk(tree)
        for part in (
            [node.module or ""] if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        )
    }  # fmt: skip
    assert not found & PRODUCT


@pytest.mark.parametrize(
    ("shown", "agrees"),
    [("$1.23", True), ("$1.24", False), ("$1.2", True), (1.234, True), (1.2341, False)],
)
def test_control_a_figure_that_is_a_cent_off_is_found(shown: Any, agrees: bool) -> None:
    assert Figure("x", shown, Fraction("1.234")).agrees is agrees
