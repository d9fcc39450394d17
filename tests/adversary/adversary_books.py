"""A real ledger for schedules: their prices, budgets and grants, the writer, and its two judges.

`AdversaryLedger.play` plays schedules into one journal; `write_books` takes a copy of it into a
migrated database with the product's own tail, sealer and sums; `faults_in_books` asks `ledger
verify`, and by SQL what each hard budget spent and what each attempt owes the provider.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from adversary_calls import AdversaryCall, AdversarySchedule
from adversary_judge import bill_pusd
from adversary_world import (
    ACCOUNT,
    MODEL,
    WALL_S,
    WINDOW_S,
    AdversaryWorld,
    CallResult,
    SchedulePlace,
)
from sqlalchemy import Connection, Engine, and_, func, insert, select

from ledger.accounts import provider_payable
from ledger.budgets.versions import record_versions
from ledger.database import reading
from ledger.journals.journal import JournalWriter
from ledger.journals.reader import JournalReader
from ledger.orm.books import AttemptRow, PostingRow, PriceVersionRow
from ledger.orm.budgets import BudgetRow, BudgetWindowRow, GrantRow
from ledger.orm.types import exact_sum
from ledger.prices.book import Price
from ledger.seals.audit_log import AuditLog
from ledger.seals.sealer import Sealer
from ledger.sums.rollups import Rollups
from ledger.verify.checks import verify
from ledger.writing.repository import LedgerRepository
from ledger.writing.rows import DISPUTED
from ledger.writing.tail import JournalTailer

HOST = "adversary"
START_US, END_US = (WALL_S - 60) * 10**6, (WALL_S + 60) * 10**6


@dataclass(frozen=True, slots=True)
class SentCall:
    """An attempt that the books must have, with the price that it was sent at."""

    call: AdversaryCall
    price: Price


@dataclass(slots=True)
class AdversaryLedger:
    """Schedules that were played into one journal, and what the books must hold of them."""

    folder: Path
    schedules: list[tuple[SchedulePlace, AdversarySchedule]] = field(default_factory=list)
    sent: dict[str, SentCall] = field(default_factory=dict)
    journal: JournalWriter = field(init=False)

    def __post_init__(self) -> None:
        self.journal = JournalWriter(self.folder / "journals", "w0")

    def play(self, world: AdversaryWorld, schedule: AdversarySchedule) -> list[CallResult]:
        number = len(self.schedules) + 1
        place = SchedulePlace(f"t{number}", number, self.journal)
        self.schedules.append((place, schedule))
        results = world.play(schedule, place)
        price = Price(number, MODEL, "adversary", 0, schedule.terms)
        for result in results:
            if result.opened is not None:
                self.sent[result.opened.attempt_id] = SentCall(result.call, price)
        return results

    def end(self) -> None:
        """The worker is gone: its journal can be finished."""
        self.journal.close()


def write_books(ledger: AdversaryLedger, engine: Engine, folder: Path) -> None:
    """Everything into a migrated, empty database, as declarations and a writer would."""
    _declare(ledger, engine)
    journals = folder / "journals"
    shutil.copytree(ledger.folder / "journals", journals)
    repository = LedgerRepository(engine, host=HOST)
    tail = JournalTailer(repository, JournalReader(journals), lambda: END_US)
    while tail.step().moved or tail.journals():
        pass
    sealer, registers, sums = Sealer(engine), AuditLog(engine), Rollups(engine)
    while sealer.seal(at_us=END_US):
        pass
    while registers.follow(at_us=END_US):
        pass
    while sums.follow():
        pass


def _declare(ledger: AdversaryLedger, engine: Engine) -> None:
    prices: list[dict[str, Any]] = []
    budgets: list[dict[str, Any]] = []
    windows: list[dict[str, Any]] = []
    grants: list[dict[str, Any]] = []
    for place, schedule in ledger.schedules:
        price = Price(place.version, MODEL, "adversary", 0, schedule.terms)
        prices.append({
            "version": place.version, "name": MODEL, "since_us": 0, "source": "adversary",
            "price": msgspec.to_builtins(price), "recorded_us": START_US,
        })  # fmt: skip
        budgets.append({
            "id": place.budget_id, "scope": f"team:{place.team}", "period": "day",
            "limit_pusd": schedule.limit_pusd, "hard": True, "timezone": "UTC",
            "created_us": START_US,
        })  # fmt: skip
        # As `ledger.budgets.grants.grow` leaves them, which takes 3 ms for each.
        money = {"budget_id": place.budget_id, "window": WINDOW_S, "spent_pusd": 0}
        money |= {"granted_pusd": schedule.limit_pusd}
        windows.append({**money, "limit_pusd": schedule.limit_pusd})
        grants.append({**money, "host": HOST})
    with engine.begin() as connection:
        connection.execute(insert(PriceVersionRow), prices)
        connection.execute(insert(BudgetRow), budgets)
        connection.execute(insert(BudgetWindowRow), windows)
        connection.execute(insert(GrantRow), grants)
        record_versions(connection, START_US)


def faults_in_books(ledger: AdversaryLedger, engine: Engine) -> list[str]:
    with reading(engine) as connection:
        found = verify(connection).findings
        faults = [f"verify: {each.check} {each.subject}: {each.message}" for each in found]
        return [*faults, *_overspent(connection), *_unlike_the_bill(connection, ledger)]


def _overspent(connection: Connection) -> Iterator[str]:
    """Of attempts themselves, whatever windows and holds say."""
    spent = exact_sum(AttemptRow.cost_pusd)
    query = (
        select(BudgetRow.id, BudgetRow.limit_pusd, spent)
        .join(AttemptRow, BudgetRow.scope == "team:" + AttemptRow.team_id)
        .group_by(BudgetRow.id, BudgetRow.limit_pusd)
    )
    for budget_id, limit, pusd in connection.execute(query):
        if pusd is not None and pusd > limit:
            yield f"limit: {budget_id} has {pusd} of {limit}"
    above = select(AttemptRow.attempt_id).where(AttemptRow.cost_pusd > AttemptRow.bound_pusd)
    yield from (f"hold: {name} is above its hold" for name in connection.execute(above).scalars())


def _unlike_the_bill(connection: Connection, ledger: AdversaryLedger) -> Iterator[str]:
    """What is owed to the provider, posting by posting, against what an honest one bills."""
    owed = func.coalesce(exact_sum(PostingRow.amount_pusd), 0)
    query = (
        select(AttemptRow.attempt_id, AttemptRow.cost_pusd, AttemptRow.flag, owed)
        .outerjoin(
            PostingRow,
            and_(
                PostingRow.entry_id == AttemptRow.attempt_id,
                PostingRow.account == provider_payable(ACCOUNT),
            ),
        )
        .group_by(AttemptRow.attempt_id, AttemptRow.cost_pusd, AttemptRow.flag)
    )
    missing = dict(ledger.sent)
    for name, cost, flag, pusd in connection.execute(query):
        sent = missing.pop(name, None)
        if sent is None:
            yield f"row: {name} was never sent"
            continue
        yield from _of_row(name, sent, cost, flag, -int(pusd))
    yield from (f"row: {name} is not in the books" for name in missing)


def _of_row(
    name: str, sent: SentCall, cost: int | None, flag: str | None, owed: int
) -> Iterator[str]:
    call = sent.call
    if call.made is not None:
        bill = bill_pusd(call, sent.price)
        if owed != bill:
            yield f"bill: {name} owes {owed}, {bill} billed for {call.made}"
        if flag == DISPUTED and not call.is_odd:
            yield f"disputed: {name}, honest usage"
        return
    least = bill_pusd(call, sent.price, fee=False)
    if (cost or 0) < least:
        yield f"least: {name} has {cost}, {least} made"
    if call.is_lie and flag is None:
        yield f"mark: {name} is a lie without a flag"
