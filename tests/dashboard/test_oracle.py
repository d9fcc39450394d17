"""Every page's figures are the journal's, at the prices of this file, on both databases.

The books are added up by hour and day as a gateway's are, and the week that is looked at begins
within them; the oracle walks the journal record by record and knows neither sums nor databases.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
import streamlit as st
from sqlalchemy import create_engine, insert, text
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df
from streamlit.testing.v1 import AppTest

from dashboard.data import reads
from dashboard.formatting import money, tokens
from ledger.database import make_engine
from ledger.invoices import books as invoices
from ledger.invoices.files import parse
from ledger.money import pusd_to_usd
from ledger.orm import tables as orm
from ledger.queries.reads import DAY_US, HOUR_US
from ledger.sums.rollups import Rollups

USD = 10**12
WEEK_US = 7 * DAY_US
PRICES = {  # pico-USD a token: input, cached, output
    "anthropic/claude-haiku-4-5": (1_000_000, 100_000, 5_000_000),
    "deepinfra/llama-3.3-70b": (100_000, 100_000, 320_000),
    "openai/gpt-4o-mini": (150_000, 75_000, 600_000),
}
SUBSTITUTE = "anthropic/claude-haiku-4-5"
RATE_PUSD, OPS_PUSD_PER_WEEK = USD * 2 // 5, 10 * USD
ANSWERED = {"finished", "client_gone"}


@dataclass
class Journal:
    """What the gateway wrote of a span; the books' own hours beside it."""

    url: str
    start_us: int
    end_us: int
    pairs: list
    hours: list[dict]

    @property
    def own(self) -> list:
        return [pair for pair in self.pairs if pair[0].backend == "own"]

    @property
    def api(self) -> list:
        return [pair for pair in self.pairs if pair[0].backend == "api"]

    @property
    def api_pusd(self) -> int:
        return sum(charged(item) for item in self.api)

    @property
    def good(self) -> list:
        return [item for item in self.own if item[1].slo_met and item[1].status in ANSWERED]

    def avoided(self, name: str) -> int:
        return sum(at(name, last) for _, last in self.good)

    @property
    def fixed_pusd(self) -> Fraction:
        ops = Fraction(len(self.hours), 168) * OPS_PUSD_PER_WEEK
        return len(self.hours) * RATE_PUSD + ops


def at(name: str, last) -> int:
    """The answer's tokens at one name's prices."""
    item, (given, cached, answer) = last.tokens, PRICES[name]
    return item.input * given + item.cached * cached + item.output * answer


def charged(pair) -> int:
    """An answer whose price was unknown when it was booked costs nothing that is known."""
    first, last = pair
    return 0 if last.cost_pusd is None else at(first.target, last)


def all_tokens(last) -> int:
    return last.tokens.input + last.tokens.cached + last.tokens.output


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def filled(request, books, month) -> Iterator:
    """A month whose contract ended yesterday, its sums made, a provider's bill brought in."""
    until = datetime.fromtimestamp(month.now_us / 1e6 - 86_400, tz=UTC).date()
    server = url = None
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        url = server.url(name := server.create())
    made = books(url=url, now_us=month.now_us, peak=8.0, until=until)
    engine = make_engine(made.url)
    _add_up(engine)
    _billed(engine, made)
    engine.dispose()
    yield made
    st.cache_resource.clear()
    if server is not None:
        server.drop(name)


def _add_up(engine) -> None:
    """As if all had been sealed: then hours and days are added up."""
    with engine.begin() as connection:
        last = connection.execute(text("SELECT max(seq) FROM attempts")).scalar_one()
        none = {"sealed_us": 0, "postings_to": 0, "refusals_to": 0, "prices_to": 0, "rows": 0}
        sealed = {"number": 1, "attempts_to": last, "digest": b"", "chain": b"", **none}
        connection.execute(insert(orm.SealRow), [sealed])
    rollups = Rollups(engine)
    while rollups.follow():
        pass
    with engine.connect() as connection:
        done = connection.execute(text("SELECT max(seq) FROM rollup_position")).scalar_one()
    assert done == last, "the control: sums answer, not rows"


def _billed(engine, made) -> None:
    """What the substitute's provider charged, by the day on which each answer was settled."""
    days: dict[str, int] = defaultdict(int)
    for pair in made.pairs:
        if pair[0].target == SUBSTITUTE:
            day = datetime.fromtimestamp(pair[1].settled_us / 1e6, tz=UTC).date().isoformat()
            days[day] += charged(pair)
    lines = [f"{day},claude-haiku-4-5,{pusd_to_usd(pusd):f}" for day, pusd in sorted(days.items())]
    bill = parse("\n".join(["date,item,amount", *lines]))
    invoices.store(engine, bill, party="provider:anthropic", name="a.csv", by="ada", at_us=5)


@pytest.fixture
def week(filled, page, monkeypatch) -> Iterator[Journal]:
    """Seven days up to when the books were filled, from a full hour on."""
    monkeypatch.setattr("dashboard.data.reads.rounded_now_us", lambda _: filled.now_us)
    start_us = (filled.now_us - WEEK_US) // HOUR_US * HOUR_US
    pairs = [pair for pair in filled.pairs if start_us <= pair[0].opened_us < filled.now_us]
    hours = [hour for hour in filled.hours if start_us <= hour["hour_us"]]
    assert 0 < len(pairs) < len(filled.pairs)
    yield Journal(filled.url, start_us, filled.now_us, pairs, hours)
    reads.engine(filled.url).dispose()  # the dashboard keeps its connections


@pytest.fixture
def look(page, week):
    return lambda name: page(name, week.url, period="7 d")


def tables(test: AppTest) -> list[list[dict[str, Any]]]:
    return [element.value.to_dict("records") for element in test.dataframe]


def drawn(test: AppTest, place: int) -> list[dict[str, Any]]:
    """The records of a chart."""
    (sent,) = test.get("vega_lite_chart")[place].proto.datasets
    found: list[dict[str, Any]] = convert_arrow_bytes_to_pandas_df(sent.data.data).to_dict(
        "records"
    )
    return found


def test_are_we_winning(look, week, text_of) -> None:
    shown = text_of(look("answer"))
    spent = week.fixed_pusd + week.api_pusd
    assert re.search(rf"Spent\s+{re.escape(money(spent))}", shown)
    for line in ("used", "idle", "unavailable"):
        each = sum(hour[f"{line}_pusd"] for hour in week.hours)
        assert re.search(rf"Own GPUs, {line}\s+{re.escape(money(each))}", shown)
    for name in (SUBSTITUTE, "deepinfra/llama-3.3-70b"):
        result = week.avoided(name) - week.fixed_pusd
        word = "saved" if result >= 0 else "overspent"
        assert f"{money(abs(result))} {word}" in shown
        assert re.search(rf"{re.escape(money(week.avoided(name)))}\s+avoided at API", shown)
    known = [last for _, last in week.pairs if last.slo_met is not None]
    met = sum(last.slo_met for last in known)
    assert re.search(rf"inside the SLO\s+{100 * met / len(known):.1f} %", shown)


def test_break_even(look, week, text_of) -> None:
    volume = sum(all_tokens(last) for _, last in week.good)
    fixed = 720 * RATE_PUSD + Fraction(720, 168) * OPS_PUSD_PER_WEEK
    needed = fixed / Fraction(week.avoided(SUBSTITUTE), volume)
    shown = text_of(look("breakeven"))
    assert re.search(rf"substitute model:\s+{re.escape(tokens(needed))}", shown)


COLUMNS = ("answers", "input tokens", "output tokens", "unpriced", "APIs", "own GPUs")


def groups(week: Journal, field: str) -> dict[str, tuple[float, ...]]:
    found: dict[str, list[int]] = defaultdict(lambda: [0] * 6)
    for pair in week.pairs:
        first, last = pair
        row = found[getattr(first, field)]
        row[0] += last.status in ANSWERED
        row[1] += last.tokens.input + last.tokens.cached
        row[2] += last.tokens.output
        row[3] += last.cost_pusd is None
        row[4] += charged(pair) if first.backend == "api" else 0
        row[5] += last.cost_pusd if first.backend == "own" else 0
    return {name: (*row[:4], row[4] / USD, row[5] / USD) for name, row in found.items()}


def closed(week: Journal) -> dict[str, float]:
    """Each team's share of the closed hours, by the books' own rows."""
    engine = create_engine(week.url)
    query = text(
        "SELECT team_id, sum(used_pusd) FROM gpu_hour_teams WHERE hour_us >= :since GROUP BY 1"
    )
    with engine.connect() as connection:
        found = {
            row[0]: int(row[1]) / USD for row in connection.execute(query, {"since": week.start_us})
        }
    engine.dispose()
    return found


def test_spend_by_team_key_model_and_backend(look, week) -> None:
    found = tables(look("spend"))
    for place, name, field in ((0, "team", "team_id"), (2, "model", "model"),
                               (3, "backend", "target")):  # fmt: skip
        wanted = groups(week, field)
        if name == "team":
            shares = closed(week)
            wanted = {team: (*row[:5], shares[team]) for team, row in wanted.items()}
        rows = {row[name]: row for row in found[place] if "(unallocated)" not in row[name]}
        assert set(rows) == set(wanted)
        for each_key, row in rows.items():
            assert [row[column] for column in COLUMNS] == pytest.approx(wanted[each_key], rel=1e-12)
            assert row["spend"] == pytest.approx(row["APIs"] + row["own GPUs"])
    (key,) = found[1]
    (wanted_key,) = groups(week, "key_id").values()
    assert [key[column] for column in COLUMNS[1:]] == pytest.approx(wanted_key[1:], rel=1e-12)
    assert key["attempts"] == len(week.pairs)
    nobodys = sum(row["own GPUs"] for row in found[0] if "(unallocated)" in row["team"])
    idle = sum(hour["idle_pusd"] + hour["unavailable_pusd"] for hour in week.hours)
    assert nobodys == pytest.approx(idle / USD)


def test_single_requests_cost_their_tokens_at_the_price(look, week) -> None:
    by_id = {first.request_id: (first, last) for first, last in week.pairs}
    rows = tables(look("spend"))[4]
    assert len(rows) == 200
    latest = sorted(week.pairs, key=lambda each_pair: each_pair[0].opened_us)[-200:]
    assert {row["request"] for row in rows} == {first.request_id for first, _ in latest}
    for row in rows:
        first, last = pair = by_id[row["request"]]
        if last.cost_pusd is None:
            assert row["cost"] != row["cost"], "unknown is empty, and never $0"
            continue
        cost = charged(pair) if first.backend == "api" else last.cost_pusd
        assert row["cost"] == pytest.approx(cost / USD)
        if first.model != "gpt-4o-mini":
            assert row["at the comparator"] == pytest.approx(at(SUBSTITUTE, last) / USD)


def test_what_a_token_cost_and_what_moved(look, week, filled, text_of) -> None:
    shown = text_of(look("spend"))
    answers = [item for item in week.api if item[1].status in ANSWERED]
    paid = sum(charged(answer) for answer in answers)
    for count in (sum(all_tokens(last) for _, last in answers),
                  sum(last.tokens.output for _, last in answers)):  # fmt: skip
        each = money(Fraction(paid, count) * 10**6)
        assert re.search(rf"APIs, as charged\s+{re.escape(each)}", shown)
    volume = sum(all_tokens(last) for _, last in week.good)
    each = money(week.fixed_pusd / volume * 10**6)
    assert re.search(rf"Own, allocation basis \(.*?\)\s+{re.escape(each)}", shown)
    sums: list[Counter[str]] = [Counter(), Counter()]
    for pair in filled.pairs:
        place = 0 if pair[0].opened_us >= week.start_us else 1
        before_us = (week.start_us - WEEK_US) // HOUR_US * HOUR_US
        if pair[0].opened_us >= before_us:
            own = pair[0].backend == "own"
            sums[place][pair[0].team_id] += pair[1].cost_pusd if own else charged(pair)
    now, before = sums
    top = max(now | before, key=lambda team: abs(now[team] - before[team]))
    told = f"The most: {top}, from {money(before[top])} to {money(now[top])}."
    assert told in shown.replace("\\", "")


def test_routing(look, week, text_of) -> None:
    test = look("routing")
    shown = text_of(test)
    spilled = [pair for pair in week.pairs if pair[0].spill_reason is not None]
    own = len(week.own)
    assert re.search(rf"Requests\s+{len(week.pairs):,}\s", shown)
    assert f"{100 * len(spilled) / (own + len(spilled)):.1f} %" in shown
    paid = money(sum(charged(item) for item in spilled))
    assert f"Spilled requests cost {paid} at APIs." in shown.replace("\\", "")
    bars = Counter[int]()
    for record in drawn(test, 0):
        bars[record["kind"]] += record["value"]
    assert bars["own engines"] == own
    assert bars["APIs, spilled"] == len(spilled)


def test_engines(look, week) -> None:
    test = look("engines")
    by_id = {first.request_id: last for first, last in week.own}
    finished = [item for item in week.own if item[1].status == "finished"]
    latest = sorted(finished, key=lambda item: item[0].opened_us)[-200:]
    rows = tables(test)[0]
    assert [row["request"].partition("request=")[2].partition("&")[0] for row in rows] == [
        first.request_id for first, _ in reversed(latest)
    ]
    for row, (first, _) in zip(rows, reversed(latest), strict=True):
        last = by_id[first.request_id]
        assert row["first token, s"] == pytest.approx(last.ttft_us / 1e6)
        each = (last.duration_us - last.ttft_us) / (last.tokens.output - 1) / 1e3
        assert row["each further, ms"] == pytest.approx(each, abs=1e-3)

    worth = {round(mark["at"] * 1e3): mark["value"] for mark in drawn(test, 8)}
    wanted = tokens_per_dollar(week)
    assert worth == {start_us: pytest.approx(each) for start_us, each in wanted.items()}
    assert len(worth) > 20


def tokens_per_dollar(week: Journal) -> dict[int, float]:
    """Of own engines by their whole bill, in pieces of six hours that are closed."""
    bar_us = 6 * HOUR_US
    served, bills = Counter[int](), Counter[int]()
    for first, last in week.own:
        served[first.opened_us // bar_us * bar_us] += all_tokens(last)
    for hour in week.hours:
        bills[hour["hour_us"] // bar_us * bar_us] += hour["bill_pusd"]
    closed_us = max(hour["hour_us"] for hour in week.hours) + HOUR_US
    return {
        start: served[start] / (bill / USD)
        for start, bill in bills.items()
        if start + bar_us <= closed_us
    }


def test_policies_spill_over_time(look, week) -> None:
    asked, spilled = Counter[int](), Counter[int]()
    for first, _ in week.pairs:
        if first.backend == "own" or first.spill_reason is not None:
            asked[first.opened_us // (6 * HOUR_US)] += 1
            spilled[first.opened_us // (6 * HOUR_US)] += first.spill_reason is not None
    shown = [mark["value"] for mark in drawn(look("policies"), 0) if "value" in mark]
    assert shown.pop() == shown[-1], "the line ends where its last step does"
    assert shown == pytest.approx([spilled[item] / count for item, count in sorted(asked.items())])


def test_plan(look, week, text_of) -> None:
    test = look("plan")
    paid, count = week.api_pusd, sum(all_tokens(last) for _, last in week.api)
    each = money(Fraction(paid, count) * 10**6)
    assert re.search(
        rf"API price per 1M tokens, input \+ output\s+{re.escape(each)}", text_of(test)
    )


def test_prices(look) -> None:
    rows = {row["name"]: row for row in tables(look("prices"))[0]}
    assert set(rows) == set(PRICES)
    for name, rates in PRICES.items():
        shown = [rows[name][kind] for kind in ("input", "cached", "output")]
        assert shown == pytest.approx([each / 10**6 for each in rates])


def test_a_bill_stands_beside_what_was_booked(look, filled, text_of) -> None:
    shown = text_of(look("audit"))
    booked = sum(charged(pair) for pair in filled.pairs if pair[0].target == SUBSTITUTE)
    assert re.search(rf"Invoiced\s+{re.escape(money(booked))}", shown)
    assert re.search(rf"In the books\s+{re.escape(money(booked))}", shown)
    assert re.search(rf"Difference\s+{re.escape(money(0))}", shown)


def test_a_team_alone(page, week, text_of) -> None:
    shown = text_of(page("answer", week.url, period="7 d", team="coding"))
    mine = [pair for pair in week.pairs if pair[0].team_id == "coding"]
    api = sum(charged(item) for item in mine if item[0].backend == "api")
    assert re.search(
        rf"Spent by coding\s+{re.escape(money(api + closed_of(week, 'coding')))}", shown
    )
    elsewhere = sum(at(SUBSTITUTE, last) for first, last in week.good if first.team_id == "coding")
    assert re.search(rf"{SUBSTITUTE}\s+{re.escape(money(elsewhere))}", shown)


def closed_of(week: Journal, team: str) -> int:
    return round(Fraction(str(closed(week)[team])) * USD)
