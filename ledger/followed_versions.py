"""The newest versions of what workers follow: read from the database, shared in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine, func, select

from ledger.budgets.budget_snapshot import BudgetSnapshot
from ledger.commit_watch import CommitWatch, watch_commits
from ledger.database import reading
from ledger.fleet.paidrates import NEWEST_CONTRACT_FILE
from ledger.identity.keyring import KeyGeneration
from ledger.identity.tokens import GENERATION
from ledger.orm import tables as orm
from ledger.overrides import NEWEST_OVERRIDE_FILE
from ledger.policies import NEWEST_POLICY_FILE
from ledger.prices.stored import NEWEST_PRICE_FILE

# The numbers of `LedgerVersions` in their order, read by one statement that is compiled once.
_NEWEST = select(
    select(orm.MetaRow.value).where(orm.MetaRow.name == GENERATION).scalar_subquery(),
    *[
        select(func.max(number)).scalar_subquery()
        for number in (
            orm.PriceVersionRow.version,
            orm.PolicySetRow.number,
            orm.OverrideRow.number,
            orm.GpuContractRow.id,
        )
    ],
)


class LedgerVersions(NamedTuple):
    """The newest version numbers of what workers follow, and the state of budgets."""

    keys: int
    price: int
    policies: int
    override: int
    contract: int
    budgets: BudgetSnapshot

    def numbers(self) -> tuple[int, ...]:
        return self.keys, self.price, self.policies, self.override, self.contract


class _KnownVersions(NamedTuple):
    """Versions as read at one commit, with the starts of the budget windows of that time."""

    version: int | None
    starts: set[int]
    news: LedgerVersions

    def holds_at(self, version: int | None, now_us: int) -> bool:
        known = version is not None and version == self.version
        return known and self.starts == self.news.budgets.starts(now_us)


class FollowedVersions:
    """The reader and publisher of versions on one host.

    `read_budgets` reads budgets and their windows at a time in microseconds.
    """

    def __init__(
        self, engine: Engine, run_dir: Path, read_budgets: Callable[[int], BudgetSnapshot]
    ) -> None:
        self._engine, self._read_budgets = engine, read_budgets
        self._commits = CommitWatch(engine)
        self._watch = watch_commits(engine)
        self._known: _KnownVersions | None = None
        self._published = (
            KeyGeneration(run_dir),
            KeyGeneration(run_dir, NEWEST_PRICE_FILE),
            KeyGeneration(run_dir, NEWEST_POLICY_FILE),
            KeyGeneration(run_dir, NEWEST_OVERRIDE_FILE),
            KeyGeneration(run_dir, NEWEST_CONTRACT_FILE),
        )

    def close(self) -> None:
        self._commits.close()
        self._watch.close()
        for generation in self._published:
            generation.close()

    def publish(self, versions: LedgerVersions) -> None:
        """Publish the newest numbers to all processes of the host."""
        numbers = versions.numbers()
        for generation, number in zip(self._published, numbers, strict=True):
            generation.publish(number)

    def is_current(self, now_us: int) -> bool:
        """Return whether the last result of `read` is certainly still valid. Does not block."""
        known = self._known
        return (
            known is not None
            and known.version is not None
            and self._commits.is_still()
            and known.starts == known.news.budgets.starts(now_us)
        )

    async def await_commit(self, look_s: float, told_s: float) -> bool:
        """Wait for a write to the database's folder; see `FileWatch.changed`."""
        return await self._watch.changed(look_s, told_s)

    def read(self, now_us: int) -> LedgerVersions:
        """Read the versions, from a cache until a commit or the start of a budget window.

        The call blocks.
        """
        version, known = self._commits.version(), self._known
        if known is not None and known.holds_at(version, now_us):
            return known.news
        with reading(self._engine) as connection:
            found = connection.execute(_NEWEST).one()
        seen = self._read_budgets(now_us)
        keys, price, policies, override, contract = [number or 0 for number in found]
        news = LedgerVersions(keys, price, policies, override, contract, seen)
        self._known = _KnownVersions(version, seen.starts(now_us), news)
        return news
