"""One look at the books: the parts of a survey agree with one another and with the records."""

from dataclasses import replace

import pytest
from sqlalchemy import event, insert

from ledger.economics.cost import TokenBasis, Volume
from ledger.fleet.capability import CapabilitySource
from ledger.journals.records import ComparedCost, TokenCounts
from ledger.orm import tables as orm
from ledger.queries.reads import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.reports.series import SpendSeries, spend
from ledger.reports.survey import spending, survey, surveys
from ledger.writing.repository import LedgerRepository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
NOW_US = START_US + 30 * MINUTE_US
SCOPE = Scope(NOW_US - DAY_US, NOW_US)
BOTH = TokenBasis.INPUT_OUTPUT
USD = 10**12
OVER_TIME = 1  # statement: what a team spent over time is all that is read of it alone


@pytest.fixture
def fill(engine, opened, settled):
    """Ten own answers of 1,000 + 100 tokens and one spilled, half an hour into a $2 contract."""

    def write(rate: int | None) -> None:
        records = []
        for n in range(11):
            own = n < 10
            at_us = START_US + n * MINUTE_US
            records.append(
                opened(
                    n, opened_us=at_us, backend="own" if own else "api",
                    pool="llama" if own else None,
                    target="pool:llama/0" if own else "openai/x",
                    spill_reason=None if own else "ttft",
                )
            )  # fmt: skip
            records.append(
                settled(
                    n, settled_us=at_us + 9, tokens=TokenCounts(input=1_000, output=100),
                    cost_pusd=USD // 100 if own else USD, slo_met=n != 0,
                    engine_us=HOUR_US // 200 if own else 0,
                    compared=(ComparedCost("openai/x", 1, USD),),
                )
            )  # fmt: skip
        LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOW_US)
        row = {
            "pool": "llama", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
            "billing": "reserved", "pusd_per_hour": rate, "ops_seconds_per_week": 0,
            "ops_pusd_per_hour": 0, "simulated": False, "recorded_us": START_US,
        }  # fmt: skip
        with engine.begin() as connection:
            connection.execute(insert(orm.GpuContractRow), row)

    return write


def test_a_running_hour_without_any_closed_one(engine, fill) -> None:
    fill(2 * USD)
    with engine.connect() as connection:
        look = survey(connection, SCOPE, bucket_us=MINUTE_US, basis=BOTH)
    (bill,) = look.standing.bills
    assert (bill.bill_pusd, bill.used_pusd, bill.idle_pusd) == (USD, USD // 10, USD * 9 // 10)
    assert look.standing.served == Volume(9 * 1_100, BOTH), "the answer outside the SLO is not in"
    (verdict,) = look.standing.verdicts
    assert (verdict.avoided_pusd, verdict.missed_pusd) == (9 * USD, USD)
    assert verdict.result_pusd == 8 * USD
    assert (look.api_pusd, look.own_pusd, look.unpriced) == (USD, USD, 0)
    assert look.standing.capability.known is CapabilitySource.FLOOR, "one spill teaches nothing"
    totals = dict.fromkeys(SpendSeries, 0)
    for amount in spend(look):
        totals[amount.line] += amount.pusd
    assert totals == {
        SpendSeries.USED: USD // 10,
        SpendSeries.IDLE: USD * 9 // 10,
        SpendSeries.UNAVAILABLE: 0,
        SpendSeries.OPS: 0,
        SpendSeries.API: USD,
        SpendSeries.ADJUSTED: 0,
    }


def test_a_pool_that_served_without_a_contract_is_unrated(engine, fill, opened, settled) -> None:
    fill(None)
    records = [
        opened(50, opened_us=START_US, backend="own", pool="other", target="pool:other/0"),
        settled(50, settled_us=START_US),
    ]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOW_US)
    with engine.connect() as connection:
        look = survey(connection, SCOPE, bucket_us=DAY_US, basis=BOTH)
    assert look.standing.unrated == ("llama", "other")
    assert look.own_pusd == 0
    assert look.standing.verdicts[0].stands is None


@pytest.mark.parametrize("team", [None, "search"])
def test_spending_is_the_survey_without_what_pools_could_carry(engine, fill, team) -> None:
    fill(2 * USD)
    scope = replace(SCOPE, team=team)
    with engine.connect() as connection:
        look = survey(connection, scope, bucket_us=MINUTE_US, basis=BOTH)
        less = spending(connection, scope, bucket_us=MINUTE_US, basis=BOTH)
    assert look.pools
    assert look.standing.capability is not None
    plain = [replace(verdict, even=None, stands=None) for verdict in look.standing.verdicts]
    kept = [replace(verdict, even=None, stands=None) for verdict in less.standing.verdicts]
    assert plain == kept
    bare = replace(look.standing, capability=None, verdicts=less.standing.verdicts)
    assert less == replace(look, pools={}, standing=bare, verdict=None)


def test_an_empty_ledger_is_surveyed(engine) -> None:
    with engine.connect() as connection:
        look = survey(connection, SCOPE, bucket_us=HOUR_US, basis=TokenBasis.OUTPUT)
    assert (look.cells, look.contracts, look.standing.verdicts) == ((), (), ())
    assert look.standing.capability is None
    assert spend(look) == []


def test_a_teams_view_has_the_capacity_of_the_pool(engine, fill, opened, settled) -> None:
    """Everyone's requests tell what the engines can do; the load is the team's."""
    fill(2 * USD)
    records = [
        opened(
            60,
            opened_us=START_US,
            backend="own",
            pool="llama",
            target="pool:llama/0",
            team_id="other",
        ),
        settled(
            60, settled_us=START_US + 9, tokens=TokenCounts(input=400, output=100), slo_met=True
        ),
    ]
    LedgerRepository(engine, host="h").import_records(records, journal="k", at_us=NOW_US)
    with engine.connect() as connection:
        looks = [
            survey(connection, replace(SCOPE, team=team), bucket_us=MINUTE_US, basis=BOTH)
            for team in (None, "other")
        ]
    whole, mine = (look.pools["llama"] for look in looks)
    assert whole.capability == mine.capability
    assert (sum(whole.load), sum(mine.load)) == (11 * 1_100 + 500, 500)
    assert mine.standing.served == Volume(500, BOTH)


def test_everyones_and_a_teams_of_one_read_are_what_two_reads_say(
    engine, fill, opened, settled
) -> None:
    fill(2 * USD)
    records = [
        opened(11, opened_us=START_US, backend="own", pool="llama", target="pool:llama/0",
               team_id="other"),
        settled(11, settled_us=START_US + 9, tokens=TokenCounts(input=500, output=50), slo_met=True,
                engine_us=5, compared=(ComparedCost("openai/x", 1, USD),)),
    ]  # fmt: skip
    LedgerRepository(engine, host="h").import_records(records, journal="k", at_us=NOW_US)
    asked, said = {"bucket_us": MINUTE_US, "basis": BOTH}, []
    event.listen(engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    with engine.connect() as connection:
        house = survey(connection, SCOPE, **asked)
        alone = len(said)
        mine = spending(connection, replace(SCOPE, team="other"), **asked)
        apart = len(said)
        assert surveys(connection, replace(SCOPE, team="other"), **asked) == (house, mine)
    assert (
        sum(cell.attempts for cell in mine.cells) == 1 < sum(cell.attempts for cell in house.cells)
    )
    assert len(said) - apart <= alone + OVER_TIME, "what is of both is read once"
