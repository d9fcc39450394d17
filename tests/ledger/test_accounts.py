import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.accounts import (
    US_PER_HOUR,
    AccountsError,
    Posting,
    adjustments,
    balanced,
    close_hour,
    correction_postings,
    counted_claim_pusd,
    postings_for_attempt,
    postings_for_invoice,
    postings_for_suspense,
    provider_payable,
    provisional_charge_pusd,
    surplus_pusd,
)
from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts

HOUR = US_PER_HOUR
RATE = 9_800_000_000_000


def opened(backend="api", **fields):
    base = {
        "attempt_id": "r1.1", "request_id": "r1", "attempt_no": 1, "opened_us": 0, "key_id": "k",
        "user_id": None, "team_id": "search", "org_id": "acme", "kind": "chat", "stream": False,
        "model": "chat", "target": "pool:p/0" if backend == "own" else "openai/gpt-4o-mini",
        "backend": backend, "pool": "p" if backend == "own" else None, "engine": None,
        "provider": None if backend == "own" else "openai", "upstream_model": "m",
        "simulated": False, "policy": "default", "policy_version": "1", "reason": "cheapest",
        "spill_reason": None, "price_version": 1, "bound_pusd": 500, "prompt_tokens_estimate": 1,
    }  # fmt: skip
    return AttemptOpened(**(base | fields))


def settled(cost):
    return AttemptSettled(
        attempt_id="r1.1", settled_us=1, status="finished", http_status=200, tokens=TokenCounts(),
        basis="reported", cost_pusd=cost, ttft_us=None, duration_us=1,
    )  # fmt: skip


OPENAI = (adjustments("openai"), provider_payable("openai"))


def as_dict(postings):
    return {posting.account: posting.amount_pusd for posting in postings}


def total(*entries):
    sums = {}
    for entry in entries:
        for account, amount in as_dict(entry).items():
            sums[account] = sums.get(account, 0) + amount
    return {account: amount for account, amount in sums.items() if amount}


def test_an_api_attempt_is_the_teams_expense_and_owed_to_the_provider():
    assert as_dict(postings_for_attempt(opened(), settled(120))) == {
        "expense:team:search": 120,
        "payable:provider:openai": -120,
    }


def test_an_own_attempt_is_charged_against_the_pools_bill():
    assert as_dict(postings_for_attempt(opened("own"), settled(120))) == {
        "expense:team:search": 120,
        "payable:gpu:p": -120,
    }


def test_an_unpriced_attempt_posts_nothing_and_a_free_one_neither():
    assert postings_for_attempt(opened(), settled(None)) == ()
    assert postings_for_attempt(opened(), settled(0)) == ()


@pytest.mark.parametrize("cost", [0, 120, 500, 700])
def test_suspense_is_emptied_by_the_late_answer(cost):
    attempt = opened()
    late = postings_for_attempt(attempt, settled(cost), suspended=True)
    assert total(postings_for_suspense(attempt), late) == total(
        postings_for_attempt(attempt, settled(cost))
    )


def test_suspense_holds_the_bound():
    assert as_dict(postings_for_suspense(opened())) == {
        "suspense:openai": 500,
        "payable:provider:openai": -500,
    }


def test_own_engines_have_no_suspense_because_the_hour_is_paid_anyway():
    assert postings_for_suspense(opened("own")) == ()


def test_an_invoice_difference_is_a_line_of_its_own():
    assert as_dict(postings_for_invoice(*OPENAI, booked_pusd=100, invoiced_pusd=130)) == {
        "adjustments:openai": 30,
        "payable:provider:openai": -30,
    }
    assert postings_for_invoice(*OPENAI, booked_pusd=100, invoiced_pusd=100) == ()


def test_unbalanced_lines_and_negative_figures_are_bugs():
    with pytest.raises(AccountsError, match="unbalanced by 1"):
        balanced([("a", 2), ("b", -1)])
    with pytest.raises(AccountsError, match="cost -1"):
        postings_for_attempt(opened(), settled(-1))
    with pytest.raises(AccountsError, match="never negative"):
        provisional_charge_pusd(-1, RATE, 1)
    with pytest.raises(AccountsError, match="never negative"):
        close_hour("p", -1, busy_us={}, unavailable_us=0, provisional_pusd={}, hour_us=HOUR)


def test_lines_on_one_account_are_added_and_zeros_left_out():
    lines = [("a", 2), ("a", 3), ("b", -5), ("c", 4), ("c", -4)]
    assert balanced(lines) == (Posting("a", 5), Posting("b", -5))


@pytest.mark.parametrize(
    ("engine_us", "gpus", "pusd"),
    [(HOUR, 1, RATE), (HOUR, 8, 8 * RATE), (10**6, 1, 2_722_222_222), (0, 1, 0)],
)
def test_provisional_charge_is_engine_time_at_the_contract_rate(engine_us, gpus, pusd):
    assert provisional_charge_pusd(engine_us, RATE, gpus) == pusd


def test_an_hour_of_one_busy_engine():
    close = close_hour(
        "p",
        RATE,
        busy_us={"search": HOUR // 4},
        unavailable_us=HOUR // 2,
        provisional_pusd={"search": RATE // 5},
        hour_us=HOUR,
    )
    assert close.used_pusd == {"search": RATE // 4}
    assert (close.idle_pusd, close.unavailable_pusd) == (RATE // 4, RATE // 2)
    assert as_dict(close.postings) == {
        "expense:team:search": RATE // 4 - RATE // 5,
        "expense:idle:p": RATE // 4,
        "expense:unavailable:p": RATE // 2,
        "payable:gpu:p": RATE // 5 - RATE,
    }


def test_an_engine_that_was_down_for_the_hour_changes_no_bill():
    down = close_hour("p", RATE, busy_us={}, unavailable_us=HOUR, provisional_pusd={}, hour_us=HOUR)
    assert (down.bill_pusd, down.unavailable_pusd, down.idle_pusd) == (RATE, RATE, 0)
    # The control: up and unused, the same bill is idle.
    up = close_hour("p", RATE, busy_us={}, unavailable_us=0, provisional_pusd={}, hour_us=HOUR)
    assert (up.bill_pusd, up.unavailable_pusd, up.idle_pusd) == (RATE, 0, RATE)


def test_a_bill_for_no_time_is_idle_and_a_charge_without_work_is_returned():
    close = close_hour(
        "p", RATE, busy_us={}, unavailable_us=0, provisional_pusd={"ads": 7}, hour_us=0
    )
    assert close.idle_pusd == RATE
    assert as_dict(close.postings)["expense:team:ads"] == -7


TEAMS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3 * HOUR))


@given(
    bill=st.integers(0, 10**18),
    busy=TEAMS,
    unavailable=st.integers(0, 2 * HOUR),
    provisional=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 10**16)),
    hour=st.integers(0, 8 * HOUR),
)
def test_teams_idle_and_unavailable_are_the_bill_to_the_unit(
    bill, busy, unavailable, provisional, hour
):
    close = close_hour(
        "p",
        bill,
        busy_us=busy,
        unavailable_us=unavailable,
        provisional_pusd=provisional,
        hour_us=hour,
    )
    assert sum(close.used_pusd.values()) + close.idle_pusd + close.unavailable_pusd == bill
    assert close.idle_pusd >= 0
    assert close.unavailable_pusd >= 0
    assert min(close.used_pusd.values(), default=0) >= 0
    assert sum(posting.amount_pusd for posting in close.postings) == 0
    # With the provisional charges that were posted at settle, the books show exactly the bill.
    before = balanced(
        [
            *((f"expense:team:{team}", pusd) for team, pusd in provisional.items()),
            ("payable:gpu:p", -sum(provisional.values())),
        ]
    )
    books = total(before, close.postings)
    assert books.get("payable:gpu:p", 0) == -bill
    for team in {*busy, *provisional}:
        assert books.get(f"expense:team:{team}", 0) == close.used_pusd.get(team, 0)


def test_a_correction_moves_money_between_bearers_and_never_the_bill():
    lines = correction_postings(
        "chat", teams={"ads": 30, "search": -10}, idle_pusd=-25, unavailable_pusd=-5,
        provisional_pusd=10,
    )  # fmt: skip
    assert {line.account: line.amount_pusd for line in lines} == {
        "expense:team:ads": 30,
        "expense:team:search": -10,
        "expense:idle:chat": -25,
        "expense:unavailable:chat": -5,
        "payable:gpu:chat": 10,
    }
    with pytest.raises(AccountsError, match="unbalanced by 1 "):
        correction_postings(
            "chat", teams={"ads": 1}, idle_pusd=0, unavailable_pusd=0, provisional_pusd=0
        )


@pytest.mark.parametrize(
    ("cost", "claimed", "surplus"),
    [(5, 9, 4), (5, 5, 0), (9, 5, 0), (5, None, 0), (None, 9, 0)],
)
def test_what_is_claimed_beyond_what_is_booked(cost, claimed, surplus) -> None:
    record = msgspec.structs.replace(settled(cost), claimed_pusd=claimed)
    assert surplus_pusd(record) == surplus


@given(*[st.none() | st.integers(0, 9)] * 2, st.none() | st.integers(-2, 9))
def test_of_a_claim_counts_what_can_have_been_made_and_nothing_where_nobody_knows(
    cost, claimed, plausible
) -> None:
    """Each pico-USD beyond the cost counts that is claimed, and not beyond what is plausible."""
    record = msgspec.structs.replace(settled(cost), claimed_pusd=claimed, plausible_pusd=plausible)
    known = None not in (cost, claimed, plausible)
    counted = [unit for unit in range(cost, claimed) if unit - cost < plausible] if known else []
    assert counted_claim_pusd(record) == len(counted)
