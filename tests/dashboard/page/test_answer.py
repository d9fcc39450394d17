"""The first page: its figures are the journal times the prices, and what is unknown is said."""

import re
from fractions import Fraction

import pytest
from sqlalchemy import create_engine, text

from dashboard.formatting import money
from ledger.database import migrate
from ledger.declared import DeclaredContract, declare
from ledger.identity.vouchers import GATEWAY

USD = 10**12
PRICES = {  # pico-USD per token: input, cached, output
    "anthropic/claude-haiku-4-5": (1_000_000, 100_000, 5_000_000),
    "deepinfra/llama-3.3-70b": (100_000, 100_000, 320_000),
}


def cents(pusd: Fraction | int) -> str:
    return f"${float(Fraction(pusd) / USD):.2f}"


def avoided(books, name: str) -> int:
    """The client's own journal, its tokens at the comparator's prices."""
    per_input, per_cached, per_output = PRICES[name]
    return sum(
        last.tokens.input * per_input
        + last.tokens.cached * per_cached
        + last.tokens.output * per_output
        for first, last in books.pairs
        if first.backend == "own" and last.slo_met
    )


def scalar(url: str, statement: str) -> int:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(text(statement)).scalar_one()
    engine.dispose()
    return found


def test_machines_without_a_gpu_are_not_called_gpus(page, books, text_of) -> None:
    for kind, called in (("CPU", False), ("L4", True)):
        filled = books(peak=2.0, days=1, gpu_type=kind)
        for name in ("answer", "spend"):
            shown = text_of(page(name, filled.url))
            assert ("GPU" in shown) is called, name
            assert ("Own machines" in shown) is not called


def test_the_verdict_equals_the_journal_times_the_prices(page, month, text_of) -> None:
    shown = text_of(page("answer", month.url))
    hours = len(month.hours)
    bill = hours * USD * 2 // 5 + Fraction(hours, 168) * 10 * USD  # $0.40 an hour, $10 ops a week
    for name in PRICES:
        result = avoided(month, name) - bill
        assert result < 0
        assert f"{cents(-result)} overspent" in shown
        assert re.search(
            rf"{re.escape(cents(avoided(month, name)))}\s+avoided at API prices", shown
        )
    assert "Keep 1 GPU, worth" in shown


def test_spend_equals_sql(page, month, text_of) -> None:
    shown = text_of(page("answer", month.url))
    for name in ("used", "idle", "unavailable"):
        total = scalar(month.url, f"SELECT sum({name}_pusd) FROM gpu_hours")
        assert re.search(rf"Own GPUs, {name}\s+{re.escape(cents(total))}", shown)
    api = scalar(month.url, "SELECT sum(cost_pusd) FROM attempts WHERE backend = 'api'")
    assert re.search(rf"APIs\s+{re.escape(cents(api))}", shown)
    bill = scalar(month.url, "SELECT sum(bill_pusd) FROM gpu_hours")
    hours = scalar(month.url, "SELECT count(*) FROM gpu_hours")
    ops = scalar(
        month.url,
        "SELECT ops_seconds_per_week * ops_pusd_per_hour / 3600 FROM gpu_contracts",
    )
    ops = ops * hours // 168
    assert re.search(rf"Ops of own GPUs\s+{re.escape(cents(ops))}", shown)
    assert re.search(rf"Spent\s+{re.escape(cents(bill + ops + api))}", shown)


def test_unpriced_answers_are_counted_and_never_zero(page, month, text_of) -> None:
    count = scalar(
        month.url,
        "SELECT count(*) FROM attempts WHERE backend = 'api' AND settled_us IS NOT NULL"
        " AND cost_pusd IS NULL",
    )
    assert count > 0
    assert re.search(rf"{count} answers?\s+without a price", text_of(page("answer", month.url)))


def test_slo_attainment_equals_sql(page, month, text_of) -> None:
    met, known = (
        scalar(month.url, f"SELECT count(*) FROM attempts WHERE slo_met {state}")
        for state in ("", "IS NOT NULL")
    )
    shown = text_of(page("answer", month.url))
    assert re.search(rf"inside the SLO\s+{100 * met / known:.1f} %", shown)


def test_what_cannot_break_even_says_so_and_what_could(page, month, text_of) -> None:
    shown = text_of(page("answer", month.url))
    assert "Cannot break even against this API as configured" in shown
    assert "What could: a GPU rate of at most" in shown


def test_without_a_rate_the_page_asks_for_it_and_never_says_zero(page, books, text_of) -> None:
    filled = books(rate_pusd=None, peak=4.0, days=3)
    test = page("answer", filled.url)
    shown = text_of(test)
    assert re.search(r"No verdict for pool llama-70b:\s+enter your GPU rate\.", shown)
    assert "Enter your GPU rate for pool `llama-70b`" in shown
    assert re.search(r"Own GPUs, used\s+enter the rate", shown)
    assert "$0.00" not in shown
    test.number_input(key="r-llama-70b").set_value(0.4).run()
    assert not test.exception
    assert "At $0.40 an hour:" in text_of(test)
    of_team = text_of(page("answer", filled.url, team="search"))
    assert len(re.findall(r"its used share\s+enter the rate", of_team)) == 2


@pytest.mark.parametrize("simulated", [True, False])
def test_simulated_traffic_is_labelled_loudly(page, books, text_of, simulated: bool) -> None:
    filled = books(peak=3.0, days=2, simulated=simulated)
    shown = text_of(page("answer", filled.url))
    assert ("SIMULATED: 100 % of these requests" in shown) is simulated


def test_what_spills_at_this_moment_and_why(page, books, text_of) -> None:
    filled = books(peak=1.0, days=1)
    shown = text_of(page("answer", filled.url, period="1 h"))
    assert re.search(r"Spilling right now \(last 5 minutes\)\s+\d requests to APIs", shown)
    assert "First token would come too late" in shown


def test_spill_comes_first_while_no_own_engine_answers(page, books, text_of) -> None:
    usual = text_of(page("answer", books(peak=1.0, days=1).url, period="1 h"))
    assert usual.index("Answers inside the SLO") < usual.index("Spilling right now")
    filled = books(peak=1.0, days=1)
    engine = create_engine(filled.url)
    with engine.begin() as connection:  # as before an engine's first start
        connection.execute(text("DELETE FROM attempts WHERE backend = 'own'"))
    engine.dispose()
    shown = text_of(page("answer", filled.url, period="1 h"))
    assert shown.count("Spilling right now") == 1
    assert shown.index("Spilling right now") < shown.index("Own GPUs from now on")


def test_an_empty_ledger_says_what_to_do(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    shown = text_of(page("answer", url))
    assert "Nothing has been asked yet" in shown
    assert "breakeven keys create" in shown


def test_an_empty_ledger_names_the_gateway_that_it_belongs_to(
    page, tmp_path, text_of, monkeypatch
) -> None:
    monkeypatch.setenv(GATEWAY, "http://127.0.0.1:9000/v1")
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    assert "curl http://127.0.0.1:9000/v1/chat/completions" in text_of(page("answer", url))


def test_a_new_house_without_a_rate_reads_words_where_no_chart_is(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    migrate(url)
    engine = create_engine(url)
    contract = DeclaredContract(
        "own", "H100", 1, 1, "owned", None, None, None, None, 0, 0, simulated=False
    )
    declare(engine, contracts=[contract], budgets=[], config=("c", "c"), at_us=1)
    engine.dispose()
    shown = text_of(page("answer", url))
    assert "Nothing has a known cost: it takes a rate, a price and an answer." in shown
    assert "a policy promises by its slo" in shown


def test_a_team_sees_its_own_requests(page, month, text_of) -> None:
    shown = text_of(page("answer", month.url, team="finance"))
    api = scalar(
        month.url,
        "SELECT sum(cost_pusd) FROM attempts WHERE backend = 'api' AND team_id = 'finance'",
    )
    assert api > 0
    figure = re.search(r"APIs\s+\$([0-9.]+)", shown).group(1)
    assert float(figure) == pytest.approx(api / USD, rel=0.01)


def test_a_team_is_not_charged_the_fleet(page, month, text_of) -> None:
    """Its own share of the bill; the verdict is the fleet's, and says so."""
    everyone = text_of(page("answer", month.url))
    shown = text_of(page("answer", month.url, team="finance"))
    kept = re.search(r"Keep 1 GPU, worth \$[0-9.]+ a month", everyone).group()
    assert kept in shown, "of all teams"
    assert " overspent" not in shown, "no comparison of the team's own"
    assert "All teams, own GPUs" in shown
    assert "The verdict, break-even and idle time are of all teams." in shown
    assert "Cannot break even" in everyone
    assert "Cannot break even" not in shown
    used = scalar(month.url, "SELECT sum(used_pusd) FROM gpu_hour_teams WHERE team_id = 'finance'")
    assert used > 0
    assert len(re.findall(rf"its used share\s+{re.escape(money(used))}", shown)) == 2
    elsewhere = scalar(
        month.url,
        "SELECT sum(c.cost_pusd) FROM compared c JOIN attempts a USING (attempt_id)"
        " WHERE a.backend = 'own' AND a.slo_met AND a.team_id = 'finance'"
        " AND c.comparator = 'anthropic/claude-haiku-4-5'",
    )
    assert re.search(rf"anthropic/claude-haiku-4-5\s+{re.escape(money(elsewhere))}", shown)
