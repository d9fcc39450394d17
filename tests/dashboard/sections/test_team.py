"""One team's figures: its share of the bill and its API spend, never the fleet's bill."""

import pytest

from dashboard.data import reads
from dashboard.sections import team
from ledger.economics.cost import TokenBasis
from ledger.queries.reads import DAY_US, Scope
from ledger.reports.survey import survey

TEAMS = ("search", "support", "coding", "finance")


@pytest.fixture
def of(month):
    def read(name: str | None):
        engine = reads.open_readonly(month.url)
        scope = Scope(month.now_us - 30 * DAY_US, month.now_us, name)
        with engine.connect() as connection:
            found = survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)
        engine.dispose()
        return found

    return read


def test_shares_of_teams_add_up_to_what_was_used(of) -> None:
    shares = {name: team.own_pusd(of(name)) for name in TEAMS}
    bills = of(None).standing.bills
    assert sum(shares.values()) == sum(bill.used_pusd for bill in bills)
    assert sum(shares.values()) < sum(bill.bill_pusd for bill in bills), "idle time is nobody's"


def test_the_running_hour_is_in_a_share(books) -> None:
    filled = books(peak=20.0, days=1)
    engine = reads.open_readonly(filled.url)
    total = 0
    with engine.connect() as connection:
        for name in (None, *TEAMS):
            scope = Scope(filled.now_us - DAY_US, filled.now_us, name)
            found = survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)
            running = sum(rest.used_pusd.get(name or "", 0) for rest in found.running)
            closed = sum(cell.used_pusd for cell in found.team_hours if cell.team == name)
            if name is not None:
                assert team.own_pusd(found) == closed + running
                total += running
    engine.dispose()
    assert total > 0


def test_it_says_whose_verdict_it_is(of) -> None:
    said = team.scope_note(of("finance"))
    assert "are of all teams" in said
    assert "team finance alone" in said
