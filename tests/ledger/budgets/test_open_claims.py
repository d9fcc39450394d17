"""Claims narrow the windows of their attempts until they are reconciled, and are never spent."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select, update

from ledger.budgets.grants import (
    BudgetAccount,
    GrantNeed,
    grow,
    shrink,
    standings,
    used_of_windows,
)
from ledger.budgets.open_claims import (
    WAIVED,
    Resolution,
    claims_of,
    heal_windows,
    list_claims,
    recount_claims,
    resolve_claims,
    stop_counting,
)
from ledger.journals.records import Hold
from ledger.orm import tables as orm
from ledger.verify.budgets import totals_equal_sums, windows_count_claims
from ledger.writing.repository import LedgerRepository

WINDOW = 1_778_000_000
TEAM = BudgetAccount("team:search@month", WINDOW)
LIMIT = 1000
SETTLED = Resolution(WAIVED, 7, "ann")


@pytest.fixture
def limited(engine):
    row = {
        "id": TEAM.budget_id, "scope": "team:search", "period": "month",
        "limit_pusd": LIMIT, "hard": True, "created_us": 0,
    }  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.BudgetRow), [row])
    return engine


def window_of(engine, account=TEAM):
    with engine.connect() as connection:
        table = orm.BudgetWindowRow
        query = select(table.spent_pusd, table.claimed_pusd).where(
            table.budget_id == account.budget_id, table.window == account.window
        )
        return tuple(connection.execute(query).one())


def taken_of(engine):
    """What is granted and spent of the window, if there is one yet."""
    with engine.connect() as connection:
        table = orm.BudgetWindowRow
        query = select(table.granted_pusd, table.spent_pusd)
        row = connection.execute(query.where(table.budget_id == TEAM.budget_id)).one_or_none()
    return (0, 0) if row is None else tuple(row)


def faults(engine):
    with engine.connect() as connection:
        return [*windows_count_claims(connection), *totals_equal_sums(connection)]


def lend(engine, host, missing):
    return grow(engine, host, [GrantNeed(TEAM, missing, missing)])[TEAM]


def test_the_plausible_part_narrows_what_can_be_granted(limited, opened, settled, write):
    write(limited, opened(1), settled(1, cost_pusd=100, claimed_pusd=900, plausible_pusd=300))
    assert window_of(limited) == (100, 300)
    assert used_of_windows(limited) == {TEAM: 400}
    refused = lend(limited, "a", 601)
    assert (refused.mine_pusd, refused.remaining_pusd) == (0, 600)
    assert lend(limited, "b", 600).mine_pusd == 600
    assert faults(limited) == []


def test_idle_grants_are_beyond_the_limit_once_a_claim_comes(limited, opened, settled, write):
    assert lend(limited, "a", LIMIT).mine_pusd == LIMIT
    write(limited, opened(1), settled(1, cost_pusd=100, claimed_pusd=500, plausible_pusd=400))
    assert standings(limited, "a")[TEAM].remaining_pusd == -400
    shrink(limited, "a", TEAM, LIMIT)
    # The host of these records is another one: nothing of the grant was spent.
    assert lend(limited, "a", 501).mine_pusd == 0
    assert lend(limited, "a", 500).mine_pusd == 500


@pytest.mark.parametrize("plausible", [None, 0])
def test_what_nobody_knows_to_be_plausible_narrows_nothing(
    limited, opened, settled, write, plausible
):
    write(limited, opened(1), settled(1, cost_pusd=5, claimed_pusd=900, plausible_pusd=plausible))
    assert window_of(limited) == (5, 0)
    assert faults(limited) == []


def test_a_claim_counts_once_on_each_of_its_budgets_and_stops(limited, opened, settled, write):
    holds = tuple(Hold(name, WINDOW, 1_000) for name in (TEAM.budget_id, "org:acme@month"))
    end = settled(1, cost_pusd=5, claimed_pusd=105, plausible_pusd=70)
    write(limited, opened(1, holds=holds), end, end)
    write(limited, end)
    org = BudgetAccount("org:acme@month", WINDOW)
    assert window_of(limited) == window_of(limited, org) == (5, 70)
    with limited.begin() as connection:
        (claim,) = claims_of(connection, ["r1.1"])
        assert (claim.surplus_pusd, claim.counted_pusd, claim.team) == (100, 70, "search")
        resolve_claims(connection, {"r1.1": 0}, SETTLED)
    assert window_of(limited) == window_of(limited, org) == (5, 0)
    with limited.connect() as connection:
        assert list_claims(connection, None, whole=False, limit=9) == []
        (claim,) = list_claims(connection, "search", whole=True, limit=9)
        assert list_claims(connection, "other", whole=True, limit=9) == []
    assert (claim.resolution, claim.resolved_us, claim.resolved_by) == (WAIVED, 7, "ann")
    assert claim.claimed_pusd == 105
    assert faults(limited) == []


def test_a_late_answer_brings_its_claim(limited, opened, settled, write):
    write(limited, opened(1, bound_pusd=50))
    LedgerRepository(limited, host="h").settle_lost("j", at_us=9)
    assert window_of(limited)[1] == 0
    write(limited, settled(1, cost_pusd=50, claimed_pusd=60, plausible_pusd=10))
    assert window_of(limited) == (50, 10)
    assert faults(limited) == []


def test_attempts_that_leave_the_books_take_their_claims_along(limited, opened, settled, write):
    for number in (1, 2):
        end = settled(number, cost_pusd=5, claimed_pusd=15, plausible_pusd=10)
        write(limited, opened(number), end)
    with limited.begin() as connection:
        stop_counting(connection, ["r1.1"])
    assert window_of(limited) == (10, 10)


def test_a_claim_that_counts_too_much_is_found(limited, opened, settled, write):
    write(limited, opened(1), settled(1, cost_pusd=5, claimed_pusd=15, plausible_pusd=10))
    with limited.begin() as connection:
        connection.execute(update(orm.ClaimRow).values(counted_pusd=11))
    assert [text for _, text in faults(limited)] == [
        "window says 10 claimed, its claims 11",
        "its claim counts 11, which is more than is plausible in it",
    ]
    with limited.begin() as connection:
        recount_claims(connection, {"r1.1": 4})
    assert faults(limited) == [("r1.1", "its claim counts 4, and nobody resolved it")]
    with limited.begin() as connection:
        resolve_claims(connection, {"r1.1": 4}, SETTLED)
    assert faults(limited) == []


def test_what_a_host_of_an_earlier_release_leaves_behind_is_healed(limited, opened, settled, write):
    """It takes claims out of the books, and the window goes on counting them."""
    for number in (1, 2):
        end = settled(number, cost_pusd=5, claimed_pusd=15, plausible_pusd=10)
        write(limited, opened(number), end)
    assert heal_windows(limited) == 0
    with limited.begin() as connection:
        connection.execute(delete(orm.ClaimRow).where(orm.ClaimRow.attempt_id == "r1.1"))
    assert [text for _, text in faults(limited)] == ["window says 20 claimed, its claims 10"]
    assert heal_windows(limited) == 1
    assert (window_of(limited), faults(limited)) == ((10, 10), [])
    assert heal_windows(limited) == 0


NUMBERS = itertools.count(1)  # an attempt's name is never used again
ACTS = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from("ab"), st.integers(1, 400)),
    st.tuples(st.just("claim"), st.integers(1, 150), st.integers(0, 500)),
    st.tuples(st.just("resolve"), st.integers(0, 20), st.integers(0, 100)),
    st.tuples(st.just("share"), st.sampled_from("ab"), st.just(0)),
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(acts=st.lists(ACTS, max_size=12))
def test_what_is_admitted_fits_beside_what_is_booked_and_claimed(
    engine, opened, settled, write, acts
):
    """Property: a grant is raised only where all grants and open claims are within the limit."""
    with engine.begin() as connection:
        for table in (orm.ClaimRow, orm.HoldRow, orm.BudgetRow, orm.BudgetWindowRow, orm.GrantRow):
            connection.execute(table.__table__.delete())
        row = {
            "id": TEAM.budget_id, "scope": "team:search", "period": "month",
            "limit_pusd": LIMIT, "hard": True, "created_us": 0,
        }  # fmt: skip
        connection.execute(insert(orm.BudgetRow), [row])
    counted: dict[str, int] = {}
    for act, who, amount in acts:
        number = next(NUMBERS)
        before = taken_of(engine)
        if act == "ask":
            after = lend(engine, who, amount)
            claimed = sum(counted.values())
            if after.granted_pusd > before[0]:
                assert max(after.granted_pusd, after.spent_pusd) + claimed <= LIMIT
            else:
                assert amount > LIMIT - claimed - max(before)
        elif act == "claim":
            end = settled(number, cost_pusd=who, claimed_pusd=who + 400, plausible_pusd=amount)
            write(engine, opened(number), end)
            counted[f"r{number}.1"] = min(400, amount)
        elif act == "resolve" and counted:
            name = sorted(counted)[who % len(counted)]
            counted[name] = min(counted[name], amount)
            with engine.begin() as connection:
                resolve_claims(connection, {name: counted[name]}, SETTLED)
        elif act == "share":
            shrink(engine, who, TEAM, LIMIT)
    if counted:
        assert window_of(engine)[1] == sum(counted.values())
    assert faults(engine) == []
