"""Rates over a gateway: asked before, entered by name, in the contract and the books' log."""

import time

import pytest
from sqlalchemy import update

from dashboard.page import rates
from ledger.database import make_engine
from ledger.fleet.paidrates import ops_sources
from ledger.fleet.pool_records import ContractVersion
from ledger.identity.people import DashboardRole
from ledger.manual_entries import RATE, ManualEntry
from ledger.manual_entries import enter as enter_row
from ledger.orm import tables as orm
from ledger.queries.fleet import contract_versions

FAY, JOE = "fay@example.com", "joe@example.com"
DAY_US = 86_400 * 10**6
POOL = "llama-70b"


@pytest.fixture
def looking(page_as):
    def look(person: str | None = FAY, role: DashboardRole = DashboardRole.FINANCE):
        return page_as("rates", person, role)

    return look


def newest(gateway) -> ContractVersion:
    with gateway.engine.connect() as connection:
        return contract_versions(connection)[-1]


def enter(test, usd: float, source: str = "contract 2026-17"):
    test.number_input(key=f"rates-usd-{POOL}").set_value(usd)
    test.text_input(key=f"rates-source-{POOL}").set_value(source)
    test.text_input(key="rates-note").set_value("renewed")
    test.run()
    test.button(key="rates-enter").click().run()
    assert not test.exception
    return test


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("usd", -3.0, "more than 0 and at most 1,000,000"),
        ("usd", 0.0, "amortisation and its power"),
        ("usd", 1e99, "more than 0 and at most 1,000,000"),
        ("hours", 169.0, "0 to 168"),
        ("ops", -1.0, "0 to 1,000,000"),
    ],
)
def test_a_number_that_cannot_be_is_said_and_cannot_be_entered(
    looking, field: str, typed: float, said: str
) -> None:
    """A field's own bounds kept what was typed on the screen and entered what was there before."""
    test = looking()
    test.text_input(key=f"rates-source-{POOL}").set_value("contract 2026-17").run()
    assert not test.button(key="rates-enter").disabled, "the control"
    test.number_input(key=f"rates-{field}-{POOL}").set_value(typed).run()
    assert said in test.error[0].value
    assert test.button(key="rates-enter").disabled


def test_a_rate_is_shown_asked_and_entered_by_name(gateway, looking, text_of) -> None:
    before = newest(gateway)
    test = enter(looking(), 0.75)
    assert "+GPU: $0.750000 an hour, contract 2026-17" in test.code[0].value
    assert "people" not in test.code[0].value, "what stays is no change"
    assert newest(gateway) == before, "the control: nobody has said yes"
    test.button(key="rates-yes").click().run()
    assert test.success[0].value == f"The rate of {POOL} is entered, at once, by {FAY}."
    assert newest(gateway).pusd_per_hour == 750_000_000_000
    told = " ".join(text_of(test).split())
    assert "$0.75 an hour" in told
    assert f"Entered by {FAY}" in told
    assert "renewed" in told


def test_ops_alone_are_entered_with_their_own_source(gateway, looking, text_of) -> None:
    """Red before: the form sent the whole rate, and the GPU's source became that of the ops."""
    before = newest(gateway)
    test = looking()
    test.number_input(key=f"rates-hours-{POOL}").set_value(2.5)
    test.text_input(key=f"rates-source-{POOL}").set_value("HR")
    test.run()
    test.button(key="rates-enter").click().run()
    assert "GPU" not in test.code[0].value, "what stays is no change"
    assert "+people: 2.5 h a week at" in test.code[0].value
    assert ", HR" in test.code[0].value
    test.button(key="rates-yes").click().run()
    assert not test.exception
    after = newest(gateway)
    assert (after.pusd_per_hour, after.source) == (before.pusd_per_hour, before.source)
    assert after.ops_seconds_per_week == 9_000
    with gateway.engine.connect() as connection:
        assert ops_sources(connection, 0) == {POOL: "HR"}


def test_it_is_taken_back_to_the_configurations(gateway, looking) -> None:
    test = enter(looking(), 0.8)
    test.button(key="rates-yes").click().run()
    test.button(key="rates-withdraw").click().run()
    test.button(key="rates-yes").click().run()
    assert newest(gateway).pusd_per_hour == 400_000_000_000
    assert "rates-withdraw" not in {button.key for button in test.button}


def test_what_the_dashboard_believes_of_somebody_opens_nothing(gateway, looking) -> None:
    before = newest(gateway)
    test = enter(looking(JOE, DashboardRole.FINANCE), 9.0)
    test.button(key="rates-yes").click().run()
    assert f"{JOE} does not have the scope `contracts:apply`" in test.error[0].value
    assert newest(gateway) == before


def test_others_are_told_the_command(looking, text_of) -> None:
    test = looking(None, DashboardRole.ADMIN)
    assert "breakeven rates enter POOL" in text_of(test)
    assert not [button for button in test.button if button.key.startswith("rates")]


def test_without_a_rate_it_asks_and_never_says_nothing(books, page, text_of) -> None:
    filled = books(days=1, peak=1.0, rate_pusd=None)
    told = text_of(page("rates", filled.url))
    assert f"Enter your GPU rate for `{POOL}`" in told
    assert "$0.00" not in told
    engine = make_engine(filled.url)
    with engine.begin() as connection:
        connection.execute(update(orm.GpuContractRow).values(pusd_per_hour=10**12))
    engine.dispose()
    assert "$1.00 an hour" in text_of(page("rates", filled.url, period="7 d"))


def test_what_is_to_come_is_drawn_to_a_month_after_it() -> None:
    version = ContractVersion(
        "a", "L4", 1, 1, "owned", 10**12, "s", None, None, 0, 0, simulated=False, recorded_us=5
    )
    says = {"pusd_per_hour": 2 * 10**12, "source": "t", "ops_seconds_per_week": 0,
            "ops_pusd_per_hour": 0}  # fmt: skip
    later = ManualEntry(1, RATE + "a", says, 10 * DAY_US, 5, "ada")
    records = rates.records_of([version], [later], 5)
    assert [(record["usd"], record["said"]) for record in records] == [
        (1, True),
        (2, True),
        (2, False),
    ]
    assert records[-1]["at"].timestamp() == 40 * 86_400


def test_a_rate_of_the_last_of_all_days_is_drawn_and_none_beyond_it(gateway, page, text_of) -> None:
    """The month after it is of no year that can be written: nobody could open the page."""
    says = {"pusd_per_hour": 2 * 10**12, "source": "t", "ops_seconds_per_week": 0,
            "ops_pusd_per_hour": 0}  # fmt: skip
    from_us = rates.LAST_US
    with gateway.engine.begin() as connection:
        at_us = time.time_ns() // 1000
        enter_row(connection, ManualEntry(0, RATE + POOL, says, from_us, at_us, "ada"))
    assert "From 31 Dec 9999 (UTC)" in text_of(page("rates", gateway.url, period="24 h"))
