"""A small ledger with a row in every table, as the product writes them: closed, sealed and sound.

Two days of traffic of which the older part was retired and condensed, two hosts under a hard
budget, one that counts only, an invoice posted, a key, prices, policies. What nothing that is at
hand here writes (a client's batch, an answer kept) is a row made up from its columns.
"""

from typing import Any

import msgspec
from edit_values import made_up
from sqlalchemy import Engine, func, insert, select

from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow
from ledger.budgets.windows import window_at
from ledger.declared import declare
from ledger.fleet.model_routes import ModelRoute, RouteApi, record_routes
from ledger.identity.keys import KeySpec, create_key
from ledger.invoices.books import post_invoice, store
from ledger.invoices.files import parse
from ledger.journals.reader import JournalOffset
from ledger.journals.records import AttemptLeg, CacheHit, ComparedCost, Hold, TokenCounts
from ledger.orm import tables as orm
from ledger.policies import PolicySet, store_policies
from ledger.seals.annex import SealAnnex
from ledger.seals.audit_log import AuditLog
from ledger.seals.compact import PostingCompactor
from ledger.seals.retire import AttemptRetirer
from ledger.seals.retire_hits import HitRetirer
from ledger.seals.sealer import Sealer
from ledger.spans import DAY_US
from ledger.sums.rollups import Rollups
from ledger.sums.samplehours import pack_hours
from ledger.writing.fold import JournalItem
from ledger.writing.repository import JournalMove, LedgerRepository

HARD, SOFT = "team:search@month", "org:acme@day"
ATTEMPTS = 60
LATER_US = 2**62
HELD_PUSD = 10**12


def fill(engine: Engine, make_random_ledger, opened, settled, refused) -> None:
    """Two days of random traffic, then the budgets' own, then everything that follows by itself."""
    random = make_random_ledger(7, ATTEMPTS)
    random.adjusted = {}  # postings of invoices that are not there
    _declare(engine, random.START_US)
    random.fill(engine)
    _refusals(engine, random, refused)
    _cached(engine, random)
    _budgets(engine, random, opened, settled, random.end_us - DAY_US)
    _house(engine, random.START_US)
    _follow(engine)
    _retire(engine)
    for days in (8, 17):  # so that a whole week is over in between
        _budgets(engine, random, opened, settled, random.end_us + days * DAY_US)
        _follow(engine)
    _the_rest(engine)


def _declare(engine: Engine, at_us: int) -> None:
    budgets = [
        BudgetSpec("team:search", "month", 10**15, hard=True, timezone="UTC"),
        BudgetSpec("org:acme", "day", 10**14, hard=False, timezone="UTC"),
        BudgetSpec("team:ads", "day", 10**14, hard=True, timezone="Europe/Berlin"),
    ]
    config = ("hash", "budgets: []")
    declare(engine, contracts=(), budgets=budgets, config=config, at_us=at_us)


def _refusals(engine: Engine, random: Any, refused) -> None:
    records = [
        msgspec.structs.replace(
            refused(n),
            refused_us=random.START_US + n * DAY_US // 2,
            content="card:mask",
            bound_pusd=9,
            room_pusd=5,
            limit_pusd=70,
            since_us=1,
            until_us=2,
        )
        for n in range(4)
    ]
    LedgerRepository(engine, host="h").import_records(records, journal="r", at_us=random.end_us)


def _budgets(engine: Engine, random: Any, opened, settled, at_us: int) -> None:
    """Attempts that settled, one that was lost, one under way; each of two hosts has its own."""
    month = window_at("month", "UTC", at_us // 10**6).start_s
    day = window_at("day", "UTC", at_us // 10**6).start_s
    need = GrantNeed(BudgetAccount(HARD, month), 3 * HELD_PUSD, HELD_PUSD)
    price, tokens = random.prices[0], TokenCounts(input=100, cached=7, output=30)
    day_of = at_us // DAY_US * 100
    for host, first in (("h", day_of), ("g", day_of + 11)):
        grow(engine, host, [need])
        records = []
        for number in range(first, first + 4):
            holds = (Hold(HARD, month, HELD_PUSD), Hold(SOFT, day, 0))
            start = opened(
                number, opened_us=at_us + number, price_version=price.version, holds=holds,
                bound_pusd=HELD_PUSD, target=price.name, user_id="ann", inputs=b"\x90",
            )  # fmt: skip
            cost = random._cost(start, tokens, price, None)
            compared = (
                ComparedCost("acme/fee", 4, 5, cached_tokens=7),
                ComparedCost("acme/surcharged", 3, 6),
            )
            end = settled(
                number, settled_us=at_us + number + 9, cost_pusd=cost, tokens=tokens,
                compared=compared, claimed_pusd=cost + 9,
            )  # fmt: skip
            records += [start, end] if number - first < 2 else [start]
        own = opened(
            first + 7, opened_us=at_us, backend="own", pool="owned", provider=None, holds=(),
            target="pool:owned/0", price_version=None,
        )  # fmt: skip
        legs = (
            AttemptLeg("pool:owned/1", "prefill", 3, 100, 2, None, "done"),
            AttemptLeg("pool:owned/0", "decode", 2, 110, 2, 1, "done"),
        )
        end = settled(first + 7, settled_us=at_us + 5, engine_us=5, cost_pusd=77, legs=legs)
        _apply(engine, host, [*records, own, end], at_us)
        if host == "g":
            LedgerRepository(engine, host=host).settle_lost("g-journal", at_us=at_us + 99)


def _apply(engine: Engine, host: str, records: list[Any], at_us: int) -> None:
    journal = f"{host}-journal"
    items = [JournalItem(journal, 1, place, b"", record) for place, record in enumerate(records)]
    move = JournalMove(journal, "w", JournalOffset(0, 0), JournalOffset(1, 7))
    LedgerRepository(engine, host=host).apply(items, (move,), at_us=at_us)


def _cached(engine: Engine, random: Any) -> None:
    """Hits of the response cache, of two days."""
    records = [
        CacheHit(
            f"hit-{n}", random.START_US + n * DAY_US // 12, "k", "ann", "search", "acme", "chat",
            False, "chat", "plain", "openai/x", "api" if n % 3 else "own", "r0", 5, 10, 3,
            None if n % 4 == 0 else 70 + n, 7, (("app", "web"),),
        )
        for n in range(24)
    ]  # fmt: skip
    LedgerRepository(engine, host="h").import_records(records, journal="c", at_us=random.end_us)


def _house(engine: Engine, at_us: int) -> None:
    """What people enter."""
    with engine.begin() as connection:
        spec = KeySpec("ci", team="search", user="ann", tags=(("app", "web"), ("a", "b")))
        made = create_key(connection, spec, pepper=b"p" * 32, now_us=5)
        said = {"key_id": made.key_id, "event": "made", "actor": "ann", "recorded_us": 5}
        connection.execute(insert(orm.KeyChangeRow), [said])
    apis = (RouteApi("openai/x", "openai/x", 1_000),)
    record_routes(engine, [ModelRoute("chat", "any", apis)], at_us=at_us)
    with engine.begin() as connection:
        connection.execute(insert(orm.OverrideRow), [
            {"number": 1, "subject": "target:a", "says": "disabled", "recorded_us": 3,
             "actor": "ann@host"}])  # fmt: skip
    store_policies(engine, PolicySet(1, "policies: []", 3, "ann@host"))
    bill = parse("date,item,amount\n2026-06-01,plain,4000.5\n2026-06-02,plain,3.25\n")
    number = store(engine, bill, party="provider:openai", name="june.csv", by="ana", at_us=at_us)
    assert post_invoice(engine, number, by="ben", at_us=LATER_US)
    other = parse("date,item,amount\n2026-06-01,H200,7\n")
    store(engine, other, party="gpu:owned", name="gpu.csv", by="ana", at_us=at_us)


def _follow(engine: Engine) -> None:
    """Sealed in small links, and added up."""
    sealer = Sealer(engine, rows_at_once=30)
    while sealer.seal(at_us=7):
        pass
    while Rollups(engine).follow():
        pass
    while pack_hours(engine, at_us=LATER_US):
        pass
    for follower in (AuditLog(engine), SealAnnex(engine, rows_at_once=10)):
        while follower.follow(at_us=10):
            pass


def _retire(engine: Engine) -> None:
    """All but what is under the last link."""
    for of_rows in (
        AttemptRetirer(engine),
        PostingCompactor(engine, rows_at_once=20),
        HitRetirer(engine),
    ):
        while not of_rows.step(before_us=LATER_US, at_us=1).waits_for:
            pass


def _the_rest(engine: Engine) -> None:
    """A made-up row where there is none, and once more the registers."""
    with engine.begin() as connection:
        for table in orm.LedgerBase.metadata.sorted_tables:
            if table.name in NEVER:
                continue
            if not connection.execute(select(func.count()).select_from(table)).scalar_one():
                connection.execute(insert(table), [made_up(connection, table)])
    _follow(engine)


NEVER = {
    "quarantine",
    "journal_findings",
    "rollup_waiting",
}  # a row there is a finding, or is waited for
