"""Budgets and Rates: every figure is the journal's at the prices of this file, on both databases.

The oracle walks the journal record by record and cuts the windows itself; it knows no database.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import streamlit as st
from msgspec.structs import replace
from sqlalchemy import select, update
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df
from streamlit.testing.v1 import AppTest

from dashboard.data import reads
from dashboard.formatting import money
from ledger.budgets.entered import BudgetSpec
from ledger.database import make_engine
from ledger.declared import declare
from ledger.fleet.paidrates import carry_rates
from ledger.journals.records import AttemptOpened, AttemptSettled, Hold
from ledger.manual_entries import CURRENCY, PROJECT, RATE, ManualEntry, enter
from ledger.orm import tables as orm
from ledger.writing.repository import LedgerRepository

S, DAY_S, USD = 10**6, 86_400, 10**12
PRICES = {  # pico-USD a token: input, cached, output
    "anthropic/claude-haiku-4-5": (1_000_000, 100_000, 5_000_000),
    "deepinfra/llama-3.3-70b": (100_000, 100_000, 320_000),
    "openai/gpt-4o-mini": (150_000, 75_000, 600_000),
}
OTHER = "openai/gpt-4o-mini"
KOLKATA_S = 19_800  # always so far before UTC
RATE_PUSD, NEXT_PUSD, LATER_PUSD = USD * 2 // 5, 547_300_000_000, 612_000_000_001
GPUS, OPS_S, OPS_PUSD = 3, 9_000, 20 * USD
Pair = tuple[AttemptOpened, AttemptSettled]


def charged(pair: Pair) -> int:
    """An answer of unknown price costs nothing that is known; an own one what its time came to."""
    first, last = pair
    if first.backend == "own" or last.cost_pusd is None:
        return last.cost_pusd or 0
    counts = (last.tokens.input, last.tokens.cached, last.tokens.output)
    return sum(map(int.__mul__, counts, PRICES[first.target]))


def month_of(now_s: int) -> tuple[int, int]:
    first = datetime.fromtimestamp(now_s, UTC).replace(day=1, hour=0, minute=0, second=0)
    following = (first + timedelta(days=31)).replace(day=1)
    return int(first.timestamp()) // DAY_S * DAY_S, int(following.timestamp()) // DAY_S * DAY_S


def day_of(now_s: int, ahead_s: int = 0) -> tuple[int, int]:
    start = (now_s + ahead_s) // DAY_S * DAY_S - ahead_s
    return start, start + DAY_S


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def filled(request, books) -> Iterator:
    server = url = None
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        url = server.url(name := server.create())
    yield books(url=url, days=3, peak=6.0)
    st.cache_resource.clear()
    if server is not None:
        server.drop(name)


@pytest.fixture
def look(filled, page, monkeypatch):
    monkeypatch.setattr("dashboard.data.reads.rounded_now_us", lambda _: filled.now_us)
    yield lambda name: page(name, filled.url, period="7 d")
    reads.engine(filled.url).dispose()  # the dashboard keeps its connections


BUDGETS = {  # limit in pico-USD, refuses, calendar, and which attempts fall under it
    "team:search@month": (50 * USD, True, "UTC", lambda target: target.team_id == "search"),
    "model:chat-large@month": (
        USD // 100,
        False,
        "UTC",
        lambda target: target.model == "chat-large",
    ),
    "provider:openai@month": (9 * USD, True, "UTC", lambda target: target.provider == "openai"),
    "key:k1@day": (30 * USD + 1, False, "Asia/Kolkata", lambda target: target.key_id == "k1"),
    "team:*@day": (7 * USD, False, "UTC", None),
}


def window_of(budget: str, now_s: int) -> tuple[int, int]:
    if budget.endswith("@month"):
        return month_of(now_s)
    return day_of(now_s, KOLKATA_S if BUDGETS.get(budget, ("", "", "UTC"))[2] != "UTC" else 0)


def spent_by(pairs: list[Pair], window: tuple[int, int], which) -> int:
    inside = (pair for pair in pairs if window[0] * S <= pair[0].opened_us < window[1] * S)
    return sum(charged(item) for item in inside if which(item[0]))


@pytest.fixture(scope="module")
def budgeted(filled) -> dict[str, tuple[int, int, int]]:
    """By account its limit, what was spent and what is held: declared in mid-period, then asked."""
    engine, now_s = make_engine(filled.url), filled.now_us // S
    declare(
        engine,
        contracts=(),
        budgets=[
            BudgetSpec(*name.split("@"), limit, hard=hard, timezone=zone)
            for name, (limit, hard, zone, _) in BUDGETS.items()
        ],
        config=("c", "c"),
        at_us=filled.now_us,
    )
    like = next(pair for pair in filled.pairs if pair[0].target == OTHER and pair[1].cost_pusd)
    # As a worker holds on every budget that an attempt falls under.
    falls = [name for name, (*_, which) in BUDGETS.items() if which and which(like[0])]
    held_on = {"team:search@month", f"team:{like[0].team_id}@day", *falls}
    starts = {name: window_of(name, now_s)[0] for name in held_on}
    holds = tuple(Hold(name, start, 3 * USD // 7) for name, start in sorted(starts.items()))
    at_us = max(filled.now_us - 60 * S, *(start * S for start in starts.values()))
    made = [
        replace(like[0], attempt_id=f"h{n}.1", request_id=f"h{n}", opened_us=at_us, holds=holds)
        for n in range(3)
    ]
    settle = replace(like[1], attempt_id="h0.1", settled_us=at_us + S)
    records = [*made, settle]  # two are under way
    LedgerRepository(engine, host="here").import_records(
        records, journal="held", at_us=filled.now_us
    )
    engine.dispose()
    found = {}
    for name, (limit, _, _, which) in BUDGETS.items():
        if which is not None:
            window = window_of(name, now_s)
            found[name] = (limit, spent_by(filled.pairs, window, which), 0)
    today = day_of(now_s)
    for team in {first.team_id for first, _ in filled.pairs}:
        spent = spent_by(filled.pairs, today, lambda item, team=team: item.team_id == team)
        if spent:
            found[f"team:{team}@day"] = (BUDGETS["team:*@day"][0], spent, 0)
    for name in held_on:
        limit, spent, _ = found.get(name, (BUDGETS["team:*@day"][0], 0, 0))
        found[name] = (limit, spent + charged((made[0], settle)), 2 * (3 * USD // 7))
    return found


def units(dollars: float) -> int:
    """Of so few dollars a float has every pico-dollar."""
    assert abs(dollars) < 1_000
    return round(dollars * USD)


def test_budgets(look, filled, budgeted, text_of) -> None:
    test = look("budgets")
    rows = {f"{row['budget']}@{row['window']}": row for row in tables(test)[0]}
    assert set(rows) == set(budgeted)
    assert sum(spent for _, spent, _ in budgeted.values()) > USD // 10, "the control"
    for name, (limit, spent, held) in budgeted.items():
        row = rows[name]
        told = [units(row[column]) for column in ("limit", "spent", "held", "left")]
        assert told == [limit, spent, held, limit - spent - held], name
        start, end = window_of(name, filled.now_us // S)
        assert row["window ends (UTC)"].timestamp() == end
        passed_us = filled.now_us - start * S
        if 20 * passed_us >= (end - start) * S:
            assert units(row["forecast"]) == spent * (end - start) * S // passed_us
        else:
            assert row["forecast"] != row["forecast"], "empty: too early to say"
    over = [name for name, (limit, spent, held) in budgeted.items() if spent + held >= limit]
    assert over == ["model:chat-large@month"]
    assert re.search(r"Exhausted\s+1 budget\s+model:chat-large \(month\)", text_of(test))
    limit, spent, _ = budgeted["model:chat-large@month"]
    bars = {
        mark["kind"]: mark for mark in drawn(test, 0) if mark["name"] == "model:chat-large, month"
    }
    assert bars["over the limit"]["high"] == pytest.approx(spent / limit)
    assert bars["over the limit"]["shown"] == money(spent - limit)


def test_the_first_page_has_the_same_budgets(look, budgeted, text_of) -> None:
    limit, spent, held = budgeted["model:chat-large@month"]
    share = f"{100 * (spent + held) / limit:.0f} % of {money(limit)}"
    assert re.search(rf"model:chat-large, this month\s+{re.escape(share)}", text_of(look("answer")))


@pytest.fixture(scope="module")
def rated(filled) -> dict[str, Any]:
    """Three GPUs; a rate that counts since an hour, one to come, and others' money."""
    engine, now_us = make_engine(filled.url), filled.now_us
    since_us, later_us = now_us - 3_600 * S, now_us + 2 * DAY_S * S
    says = {"source": "contract 2026-18", "ops_seconds_per_week": OPS_S,
            "ops_pusd_per_hour": OPS_PUSD}  # fmt: skip
    with engine.begin() as connection:
        connection.execute(update(orm.GpuContractRow).values(gpus_per_replica=GPUS))
        first_us = connection.execute(select(orm.GpuContractRow.recorded_us)).scalar_one()
        for pusd, from_us in ((NEXT_PUSD, since_us), (LATER_PUSD, later_us)):
            said = {"pusd_per_hour": pusd, **says}
            enter(connection, ManualEntry(0, f"{RATE}llama-70b", said, from_us, since_us, "fay"))
        carry_rates(connection, now_us)
        euro = {"per_usd": "0.862345", "day": "2026-11-02", "source": "ECB"}
        enter(connection, ManualEntry(0, f"{CURRENCY}EUR", euro, since_us, since_us, "fay"))
        mine = ManualEntry(0, f"{PROJECT}openai/p 1", {"team": "search"}, since_us, since_us, "fay")
        enter(connection, mine)
    engine.dispose()
    return {"first_us": first_us, "since_us": since_us, "later_us": later_us}


def test_rates(look, rated, text_of) -> None:
    test = look("rates")
    shown = text_of(test)
    assert re.search(rf"3 GPUs \(L4\)\s+{re.escape(money(NEXT_PUSD))} an hour", shown)
    assert re.search(rf"All GPUs, 720 h\s+{re.escape(money(720 * NEXT_PUSD * GPUS))}", shown)
    people = f"{OPS_S / 3_600:g} h a week at {money(OPS_PUSD)}"
    assert re.search(rf"People who run it\s+{re.escape(people)}", shown)
    later = datetime.fromtimestamp(rated["later_us"] / S, UTC)
    assert f"From {later:%d %b %Y} (UTC): {money(LATER_PUSD)} an hour, by fay." in re.sub(
        r" +", " ", shown.replace(" :", ":").replace(" ,", ",")
    )
    steps = [(mark["at"] / 1e3, units(mark["usd"])) for mark in drawn(test, 0) if mark["said"]]
    assert steps == [
        (pytest.approx(rated[name] / S, abs=1e-3), pusd)
        for name, pusd in (
            ("first_us", RATE_PUSD), ("since_us", NEXT_PUSD), ("later_us", LATER_PUSD)
        )
    ]  # fmt: skip
    shown_tables = tables(test)
    (projects,) = [rows for rows in shown_tables if rows and "project" in rows[0]]
    (currencies,) = [rows for rows in shown_tables if rows and "one dollar is" in rows[0]]
    assert [(project["provider"], project["project"], project["team"]) for project in projects] == [
        ("openai", "p 1", "search")
    ]
    assert [(currency["currency"], currency["one dollar is"]) for currency in currencies] == [
        ("EUR", 0.862345)
    ]


def test_what_was_spent_in_other_money_is_what_was_spent_at_its_rate(
    look, filled, rated, text_of
) -> None:
    """The whole bill of the closed hours, what runs since apart, and what APIs charged."""
    shown = text_of(look("answer"))
    spent = re.search(r"Spent\s+\$([0-9.,]+)", shown)
    euro = re.search(r"EUR ([0-9.,]+)", shown)
    assert spent is not None
    assert euro is not None
    dollars, euros = (float(item.group(1).replace(",", "")) for item in (spent, euro))
    assert euros == pytest.approx(dollars * 0.862345, abs=0.006 + 0.005 * 0.862345)


def tables(test: AppTest) -> list[list[dict[str, Any]]]:
    return [element.value.to_dict("records") for element in test.dataframe]


def drawn(test: AppTest, place: int) -> list[dict[str, Any]]:
    """The records of a chart; lines beside them, such as a limit or now, have no kind."""
    sent = test.get("vega_lite_chart")[place].proto.datasets
    frames = [convert_arrow_bytes_to_pandas_df(message.data.data) for message in sent]
    (found,) = (frame.to_dict("records") for frame in frames if "kind" in frame.columns)
    return found
