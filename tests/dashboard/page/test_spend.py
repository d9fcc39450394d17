"""Spend by team, model and backend equals SQL, and adds up to the total with idle as a line."""

import json
import re

import pytest
import streamlit as st
from sqlalchemy import create_engine, text

from dashboard.formatting import money
from ledger.database import migrate

USD = 10**12


def by(url: str, column: str) -> dict[str, tuple[int, int, int]]:
    """answers, output tokens and API money of each value, by SQL of the test's own."""
    engine = create_engine(url)
    statement = (
        f"SELECT {column}, sum(CASE WHEN status IN ('finished', 'client_gone') THEN 1 ELSE 0 END),"
        " sum(output_tokens), sum(CASE WHEN backend = 'api' THEN cost_pusd ELSE 0 END)"
        f" FROM attempts GROUP BY {column}"
    )
    with engine.connect() as connection:
        rows = {row[0]: tuple(row[1:]) for row in connection.execute(text(statement))}
    engine.dispose()
    return rows


def tables(test) -> list[list[dict]]:
    return [element.value.to_dict("records") for element in test.dataframe]


@pytest.mark.parametrize(
    ("place", "name", "column"),
    [(0, "team", "team_id"), (2, "model", "model"), (3, "backend", "target")],
)
def test_tables_equal_sql(page, month, place: int, name: str, column: str) -> None:
    table = tables(page("spend", month.url))[place]
    shown = {
        row[name]: (row["answers"], row["output tokens"], row["APIs"])
        for row in table
        if "(unallocated)" not in row[name]
    }
    wanted = {
        key: (answers, tokens, pytest.approx(money / USD))
        for key, (answers, tokens, money) in by(month.url, column).items()
    }
    assert shown == wanted


def test_keys_equal_the_journal(page, month) -> None:
    """Of each all that was attempted, at both kinds of backend."""
    test = page("spend", month.url)
    (row,) = tables(test)[1]
    wanted = [0, 0, 0, 0, 0]
    for first, last in month.pairs:
        wanted[0] += 1
        wanted[1] += last.tokens.output
        wanted[2] += last.cost_pusd is None
        wanted[3 if first.backend == "api" else 4] += last.cost_pusd or 0
    assert (row["key"], row["attempts"], row["output tokens"], row["unpriced"]) == (
        "k1", *wanted[:3],
    )  # fmt: skip
    assert row["APIs"] == pytest.approx(wanted[3] / USD)
    assert row["own GPUs"] == pytest.approx(wanted[4] / USD)
    for key in ("spend-by", "moved-by"):
        test.segmented_control(key=key).set_value("key")
    test.run()
    assert not test.exception
    mine = [last.tokens.output for first, last in month.pairs if first.team_id == "finance"]
    (row,) = tables(page("spend", month.url, team="finance"))[1]
    assert (row["attempts"], row["output tokens"]) == (len(mine), sum(mine))


def test_teams_with_idle_and_unavailable_add_up_to_the_bill(page, month) -> None:
    table = tables(page("spend", month.url))[0]
    names = {row["team"] for row in table}
    assert {"Idle (unallocated)", "Unavailable (unallocated)"} <= names
    bill = len(month.hours) * 0.4
    assert sum(row["own GPUs"] for row in table) == pytest.approx(bill)


def test_single_requests_can_be_narrowed(page, month) -> None:
    test = page("spend", month.url)
    every = tables(test)[4]
    assert len(every) == 200
    test.selectbox(key="only-team").set_value("finance")
    test.selectbox(key="only-model").set_value("gpt-4o-mini").run()
    assert not test.exception
    narrowed = tables(test)[4]
    mine = [
        first
        for first in month.opened
        if (first.team_id, first.model) == ("finance", "gpt-4o-mini")
    ]
    assert {row["request"] for row in narrowed} == {first.request_id for first in mine}


def test_a_day_lists_its_dearest_requests_first(page, month) -> None:
    """Of a month the order by cost is not offered: it would read every row."""
    with pytest.raises(KeyError):
        page("spend", month.url).segmented_control(key="requests-order")
    test = page("spend", month.url, period="24 h")
    newest = tables(test)[4]
    test.segmented_control(key="requests-order").set_value("dearest first").run()
    assert not test.exception
    dearest = tables(test)[4]
    costs = [row["cost"] for row in dearest if row["cost"] == row["cost"]]
    assert costs == sorted(costs, reverse=True)
    assert costs != [row["cost"] for row in newest][: len(costs)]
    told = " ".join(caption.value for caption in test.caption)
    assert f"The dearest {len(dearest)} of the period, dearest first." in told


def test_single_requests_of_a_key(page, books) -> None:
    """A key of another team is not on offer beside a team, and finds its own requests alone."""
    filled = books(peak=2.0, days=1)
    engine = create_engine(filled.url)
    mine = [first.attempt_id for first in filled.opened if first.team_id == "coding"][:7]
    with engine.begin() as connection:
        for element in mine:
            connection.execute(
                text("UPDATE attempts SET key_id = 'k2' WHERE attempt_id = :one"), {"one": element}
            )
    engine.dispose()
    test = page("spend", filled.url)
    assert test.selectbox(key="only-key").options == ["any", "k1", "k2"]
    test.selectbox(key="only-key").set_value("k2").run()
    assert not test.exception
    assert {row["request"] + ".1" for row in tables(test)[4]} == set(mine)
    test.selectbox(key="only-team").set_value("finance").run()
    assert "No request matches." in [caption.value for caption in test.caption]
    test.selectbox(key="only-key").set_value("any").run()
    assert test.selectbox(key="only-key").options == ["any", "k1"]


def test_what_is_offered_beside_a_choice_has_requests(page, month, monkeypatch) -> None:
    """What nothing matches is not looked for, either: to find nothing took the longest of all."""
    test = page("spend", month.url)
    targets = {first.target for first in month.opened if first.model == "gpt-4o-mini"}
    other = min({first.target for first in month.opened} - targets)
    test.selectbox(key="only-model").set_value("gpt-4o-mini").run()
    assert set(test.selectbox(key="only-target").options) == {"any", *targets}
    test.selectbox(key="only-model").set_value("any").run()
    looked: list[object] = []
    monkeypatch.setattr("dashboard.data.reads.attempts", lambda *asked: looked.append(asked) or [])
    test.selectbox(key="only-model").set_value("gpt-4o-mini")
    test.selectbox(key="only-target").set_value(other).run()
    assert not test.exception
    assert test.selectbox(key="only-target").value == other
    assert "No request matches." in [caption.value for caption in test.caption]
    assert looked == []


def test_disputed_answers_are_named_and_can_be_found(page, books, text_of) -> None:
    url = books(peak=2.0, days=1, rate_pusd=None).url
    assert "cannot be" not in text_of(page("spend", url))
    engine = create_engine(url)
    with engine.begin() as connection:
        mark = "UPDATE attempts SET flag = 'disputed' WHERE seq % 7 = 0"
        marked = connection.execute(text(mark)).rowcount
    engine.dispose()
    st.cache_resource.clear()
    test = page("spend", url)
    assert f"Of {marked:,} answers the target reported usage that cannot be" in text_of(test)
    test.selectbox(key="only-flag").set_value("disputed").run()
    assert not test.exception
    shown = tables(test)[4]
    assert {row["flag"] for row in shown} == {"disputed"}
    assert len(shown) == min(marked, 200)


def test_what_providers_claim_is_a_sum_beside_what_is_booked(page, books, text_of) -> None:
    url = books(peak=2.0, days=1, rate_pusd=None).url
    assert "providers claim" not in text_of(page("spend", url))
    engine = create_engine(url)
    with engine.begin() as connection:
        claims = (
            "INSERT INTO claims (attempt_id, settled_us, booked_pusd, claimed_pusd) "
            "SELECT attempt_id, settled_us, cost_pusd, cost_pusd + 2500000000000 FROM attempts "
            "WHERE cost_pusd > 0 ORDER BY opened_us DESC LIMIT 2"
        )
        assert connection.execute(text(claims)).rowcount == 2
    engine.dispose()
    st.cache_resource.clear()
    test = page("spend", url)
    told = text_of(test).replace("\\", "")
    assert "Of 2 answers providers claim $5.00 beyond what is booked" in told
    assert sum(row["claimed"] > 0 for row in tables(test)[4]) == 2


@pytest.mark.parametrize(("day", "closed"), [(None, False), (30, True)])
def test_closed_hours_are_named_when_there_are_some(
    page, books, month, text_of, day: int | None, closed: bool
) -> None:
    url = month.url if day else books(peak=2.0, days=1, rate_pusd=None).url
    shown = text_of(page("spend", url))
    assert ("their share of closed hours" in shown) is closed
    assert ("provisional until it is closed" in shown) is not closed


def test_dollars_of_one_table_have_one_format(page, month) -> None:
    for element in page("spend", month.url).dataframe:
        columns = json.loads(element.proto.columns)
        forms = {
            column["type_config"]["format"]
            for name, column in columns.items()
            if name in {"spend", "APIs", "own GPUs", "cost", "at the comparator"}
        }
        assert len(forms) == 1


def test_a_team_is_charged_its_share_and_no_idle_time(page, month, text_of) -> None:
    shown = text_of(page("spend", month.url, team="finance"))
    engine = create_engine(month.url)
    statement = "SELECT sum(used_pusd) FROM gpu_hour_teams WHERE team_id = 'finance'"
    with engine.connect() as connection:
        used = connection.execute(text(statement)).scalar_one()
    engine.dispose()
    assert re.search(rf"Own GPUs, used by finance\s+{re.escape(money(used))}", shown)
    assert "idle or unavailable" not in shown
    assert "idle or unavailable" in text_of(page("spend", month.url))


@pytest.mark.parametrize("by_what", ["team", "key", "model", "backend"])
def test_every_grouping_draws(page, month, by_what: str) -> None:
    test = page("spend", month.url)
    test.segmented_control(key="spend-by").set_value(by_what).run()
    assert not test.exception
    drawn = "over time, by team, key, model and backend, and the hours of the week"
    assert len(test.get("vega_lite_chart")) == 6, drawn


def test_nothing_spent_says_what_to_do(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    assert "No requests in this period." in text_of(page("spend", url))


def test_one_request_is_found_by_its_id_with_its_decision(page, month, text_of) -> None:
    test = page("spend", month.url)
    first = month.opened[-1]
    test.text_input(key="request").set_value(first.request_id).run()
    assert not test.exception
    shown = text_of(test)
    assert f"Attempt {first.attempt_id}" in shown
    assert "The address of this page links to it" in shown
    test.text_input(key="request").set_value("nonesuch").run()
    assert "No attempt of nonesuch" in text_of(test)
    test.text_input(key="request").set_value("![x](http://evil.example/a.png)").run()
    assert r"No attempt of \!\[x\]\(http\:" in text_of(test), "an address fetches no picture"


def test_adjustments_to_bills_are_a_line_of_no_team_and_in_the_total(page, books, text_of) -> None:
    filled = books(peak=2.0, days=3)
    plain = text_of(page("spend", filled.url))
    assert "Adjustments" not in plain
    before = sum(row["spend"] for row in tables(page("spend", filled.url))[0])
    engine = create_engine(filled.url)
    pair = (("adjustments:openai", -7 * USD), ("payable:provider:openai", 7 * USD))
    with engine.begin() as connection:
        for line, (account, pusd) in enumerate(pair):
            connection.execute(
                text(
                    "INSERT INTO postings (entry_id, line, at_us, account, amount_pusd)"
                    " VALUES ('invoice:1:2026-11-01', :line, :at, :account, :pusd)"
                ),
                {"line": line, "at": filled.now_us - 3_600_000_000, "account": account,
                 "pusd": pusd},
            )  # fmt: skip
    engine.dispose()
    st.cache_resource.clear()
    test = page("spend", filled.url)
    told = text_of(test)
    totals = [
        float(re.search(r"Total\s+\$([\d,.]+)", body)[1].replace(",", "")) for body in (plain, told)
    ]
    assert totals[1] == pytest.approx(totals[0] - 7, abs=0.011)
    assert re.search(r"Adjustments to bills, of no team\s+-\$7\.00", told)
    assert "-$7.00 of that are adjustments to bills" in told
    rows = {row["team"]: row for row in tables(test)[0]}
    row = rows["Adjustments to bills (unallocated)"]
    assert (row["spend"], row["APIs"], row["own GPUs"]) == (-7, -7, 0)
    assert sum(row["spend"] for row in rows.values()) == pytest.approx(before - 7)
    answer = text_of(page("answer", filled.url))
    assert re.search(r"Adjustments to bills, of no team\s+-\$7\.00", answer)
    team = page("spend", filled.url, team="finance")
    assert "Adjustments" not in text_of(team)
