"""What the file declares: versions of contracts, budgets that come and go, each file once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from lock_waits import is_somebody_waiting
from sqlalchemy import event, select

from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import (
    BudgetAccount,
    GrantNeed,
    grow,
    standings,
)
from ledger.budgets.open_claims import (
    WAIVED,
    Resolution,
    claims_of,
    resolve_claims,
    serialize_claims,
)
from ledger.budgets.windows import window_at
from ledger.database import make_engine
from ledger.declared import DeclaredContract, declare, other_billed_pools
from ledger.instants import DAY_US, day_of
from ledger.invoices.books import post_invoice, store
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.orm.books import ConfigVersionRow
from ledger.orm.budgets import BudgetRow, BudgetWindowRow
from ledger.orm.fleet import GpuContractRow
from ledger.verify.budgets import windows_count_claims

CONTRACT = DeclaredContract(
    pool="llama",
    gpu_type="H200",
    gpus_per_replica=2,
    replicas=3,
    billing="reserved",
    pusd_per_hour=3_500_000_000_000,
    source="contract 17",
    since=date(2026, 11, 1),
    until=date(2027, 10, 31),
    ops_seconds_per_week=18_000,
    ops_pusd_per_hour=95 * 10**12,
    simulated=False,
)
SEARCH = BudgetSpec("team:search", "month", 500 * 10**12, hard=True, timezone="UTC")
ACME = BudgetSpec("org:acme", "day", 10**30, hard=False, timezone="Europe/Berlin")


@pytest.fixture
def apply(engine):
    """Declares, and leaves out what a test does not care about."""

    def apply(at_us, contracts=(), budgets=(), config=("hash", "text")):
        declare(engine, contracts=contracts, budgets=budgets, config=config, at_us=at_us)

    return apply


def rows(engine, *columns):
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(*columns))]


def contracts(engine):
    table = GpuContractRow.__table__
    found = rows(engine, *(column for column in table.columns if column.name != "id"))
    names = [column.name for column in table.columns if column.name != "id"]
    return [dict(zip(names, row, strict=True)) for row in found]


def budgets(engine):
    columns = (
        BudgetRow.id,
        BudgetRow.limit_pusd,
        BudgetRow.hard,
        BudgetRow.created_us,
        BudgetRow.retired_us,
    )
    return sorted(rows(engine, *columns))


def test_a_contract_is_stored_whole_and_once(engine, apply):
    apply(100, [CONTRACT])
    apply(200, [CONTRACT])
    (row,) = contracts(engine)
    assert row.pop("recorded_us") == 100
    assert DeclaredContract(**row) == CONTRACT


@pytest.mark.parametrize(
    "change",
    [
        {"pusd_per_hour": 3_000_000_000_000},
        {"pusd_per_hour": None},
        {"replicas": 4},
        {"billing": "on_demand"},
        {"until": None},
        {"ops_seconds_per_week": 0},
    ],
)
def test_a_changed_contract_is_a_row_more(engine, apply, change):
    """Also back to an earlier one: what counts is the latest, not whether it was ever seen."""
    for at_us, item in enumerate((CONTRACT, replace(CONTRACT, **change), CONTRACT), start=1):
        apply(at_us, [item])
    found = contracts(engine)
    assert [row["recorded_us"] for row in found] == [1, 2, 3]
    (name,) = change
    assert [row[name] for row in found] == [
        getattr(CONTRACT, name), change[name], getattr(CONTRACT, name),
    ]  # fmt: skip


def test_pools_do_not_touch_each_other(engine, apply):
    other = replace(CONTRACT, pool="qwen", replicas=1)
    apply(1, [CONTRACT, other])
    apply(2, [CONTRACT, replace(other, replicas=2)])
    assert [(row["pool"], row["replicas"]) for row in contracts(engine)] == [
        ("llama", 3), ("qwen", 1), ("qwen", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pool", "at", "goes_on"),
    [
        ({"pool": "old"}, date(2027, 10, 31), True),
        ({"pool": "old"}, date(2027, 11, 1), False),  # its last day is over
        ({"pool": "old", "until": None}, date(2040, 1, 1), True),
        ({"pool": "old", "pusd_per_hour": None}, date(2027, 1, 1), False),  # billed for nothing
        ({"pool": "old", "simulated": True}, date(2027, 1, 1), False),
        ({"pool": "llama"}, date(2027, 1, 1), False),  # the file has it
    ],
    ids=str,
)
def test_a_pool_that_left_the_file_is_billed_until_its_contract_ends(
    engine, apply, pool, at, goes_on
):
    apply(1, [replace(CONTRACT, **pool)])
    apply(2, [CONTRACT])
    at_us = int(datetime(at.year, at.month, at.day, 23, 59, tzinfo=UTC).timestamp()) * 1_000_000
    with engine.connect() as connection:
        found = other_billed_pools(connection, {"llama": CONTRACT}, at_us)
    assert found == (["old"] if goes_on else [])


def test_a_contract_that_was_ended_is_billed_no_more(engine, apply):
    apply(1, [replace(CONTRACT, pool="old", until=None)])
    apply(2, [replace(CONTRACT, pool="old", until=date(2026, 11, 20))])
    with engine.connect() as connection:
        assert other_billed_pools(connection, (), 1_800_000_000_000_000) == []


def test_budgets_are_made_changed_retired_and_revived(engine, apply):
    apply(1, budgets=[SEARCH, ACME])
    assert budgets(engine) == [
        ("org:acme@day", 10**30, False, 1, None),
        ("team:search@month", 500 * 10**12, True, 1, None),
    ]
    apply(2, budgets=[replace(SEARCH, limit_pusd=7)])
    apply(3, budgets=[replace(SEARCH, limit_pusd=7)])
    assert budgets(engine) == [
        ("org:acme@day", 10**30, False, 1, 2),  # retired when first missing, and only then
        ("team:search@month", 7, True, 1, None),
    ]
    apply(4, budgets=[SEARCH, ACME])
    assert [row[-1] for row in budgets(engine)] == [None, None]


def test_another_limit_leaves_hosts_their_grants(engine, apply):
    """What of a grant is held, only the host's desk knows: it gives back what is not."""
    at_us, budget = 1_780_000_000_000_000, "team:search@month"
    apply(at_us, budgets=[SEARCH])
    account = BudgetAccount(budget, window_at("month", SEARCH.timezone, at_us // 10**6).start_s)
    held = grow(engine, "h1", [GrantNeed(account, 300 * 10**12, 300 * 10**12)])[account].mine_pusd
    apply(at_us + 1, budgets=[replace(SEARCH, limit_pusd=10**12)])
    apply(at_us + 2, budgets=[SEARCH])
    assert standings(engine, "h1")[account].mine_pusd == held == 300 * 10**12
    assert standings(engine, "h1")[account].remaining_pusd == 200 * 10**12


def test_periods_of_one_scope_are_two_budgets(engine, apply):
    apply(1, budgets=[SEARCH, replace(SEARCH, period="day", limit_pusd=5)])
    assert [row[:2] for row in budgets(engine)] == [
        ("team:search@day", 5),
        ("team:search@month", 500 * 10**12),
    ]


def test_each_version_of_the_file_is_kept_once(engine, apply):
    for at_us, config in enumerate((("a", "one"), ("a", "one"), ("b", "two"), ("a", "one"))):
        apply(at_us, config=config)
    columns = (ConfigVersionRow.hash, ConfigVersionRow.yaml, ConfigVersionRow.applied_us)
    assert sorted(rows(engine, *columns)) == [("a", "one", 0), ("b", "two", 2)]


def test_a_declaration_holds_whole_or_not_at_all(engine, apply):
    broken = replace(SEARCH, limit_pusd=None)
    with pytest.raises(Exception, match=r"(?i)null"):
        apply(1, [CONTRACT], [broken])
    assert contracts(engine) == []
    assert rows(engine, ConfigVersionRow.hash) == []


def test_a_budget_that_is_declared_while_a_claim_is_waived_does_not_count_it(
    lent_database, opened, settled, write
):
    """Two connections: the waiver does not see the new window, and it did not see the waiver."""
    engine = make_engine(lent_database.lend())
    try:
        write(engine, opened(1), settled(1, cost_pusd=5, claimed_pusd=105, plausible_pusd=70))
        at_us = opened(1).opened_us
        with ThreadPoolExecutor(1) as pool:
            with engine.begin() as connection:
                serialize_claims(connection)
                claims_of(connection, ["r1.1"])
                resolve_claims(connection, {"r1.1": 0}, Resolution(WAIVED, 7, "ann"))
                told = pool.submit(
                    declare, engine, contracts=(), budgets=[replace(ACME, hard=True)],
                    config=("h", "t"), at_us=at_us,
                )  # fmt: skip
                while not told.done() and not is_somebody_waiting(engine):
                    pass
            told.result()
        with engine.connect() as connection:
            assert [*windows_count_claims(connection)] == []
            query = select(BudgetWindowRow.spent_pusd, BudgetWindowRow.claimed_pusd)
            mine = BudgetWindowRow.budget_id.like("org:acme@%")
            assert connection.execute(query.where(mine)).all() == [(5, 0)]
    finally:
        engine.dispose()
        lent_database.take_back()


@pytest.mark.parametrize("is_posted_first", [True, False])
def test_a_budget_that_is_declared_while_a_bill_is_posted_counts_what_is_left_of_claims(
    lent_database, opened, settled, write, is_posted_first
):
    """Two connections: each side starts before the other one's transaction ends."""
    url = lent_database.lend()
    engine, other = make_engine(url), make_engine(url)
    try:
        end = settled(1, cost_pusd=5, claimed_pusd=105, plausible_pusd=70)
        write(engine, opened(1), end)
        day, at_us = day_of(end.settled_us), opened(1).opened_us
        lines = [
            InvoiceLine(day + timedelta(days=ahead), "m", 35 * (ahead == 0)) for ahead in (-1, 0, 1)
        ]
        number = store(
            engine, InvoiceFile("csv", tuple(lines), 12, "d"), party="provider:openai",
            name="x.csv", by="ann", at_us=at_us,
        )  # fmt: skip

        def post(using):
            post_invoice(using, number, by="ann", at_us=at_us + 30 * DAY_US)

        def announce(using):
            budgets = [replace(ACME, hard=True)]
            declare(using, contracts=(), budgets=budgets, config=("h", "t"), at_us=at_us)

        first, second = (post, announce) if is_posted_first else (announce, post)
        with ThreadPoolExecutor(1) as pool:
            started = []

            def start_second(_connection):
                if not started:
                    started.append(pool.submit(second, other))
                    while not started[0].done() and not is_somebody_waiting(other):
                        pass

            event.listen(engine, "commit", start_second)
            first(engine)
            event.remove(engine, "commit", start_second)
            started[0].result()
        with engine.connect() as connection:
            assert [*windows_count_claims(connection)] == []
            query = select(BudgetWindowRow.spent_pusd, BudgetWindowRow.claimed_pusd)
            mine = BudgetWindowRow.budget_id.like("org:acme@%")
            assert connection.execute(query.where(mine)).all() == [(5, 30)]
    finally:
        for each in (engine, other):
            each.dispose()
        lent_database.take_back()
