"""Shares of per-minute rate limits: the part of each limit that one host may admit.

A host admits at most its share in any 60 seconds, and a limit's shares never exceed the limit: they
grow only while the limit's row is locked, and shrink only by what is idle. So no minute exceeds its
limit, however shares move. A host holds its shares by a lease that it renews. Once a lease has
lapsed for so long that its admissions no longer count, other hosts take the shares, except for the
kept part. The host goes on with its kept part if the database is away, and loses it after `KEPT_S`.
Times between hosts are the database's.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    and_,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from ledger.database import database_us
from ledger.orm.base import Stored, aliased
from ledger.orm.rates import RateAccountRow, RateHostRow, RatePartRow
from ledger.upserts import insert_into

LEASE_S = 5
FORGOTTEN_S = 61  # older admissions no longer count
MARGIN_S = 1  # time between checking the lease and counting an admission
TAKEN_OVER_S = LEASE_S + FORGOTTEN_S + MARGIN_S
KEPT_S = 3600
WANTED_S = 2  # older needs are of a host that gave up or died
_US = 1_000_000
Pair = tuple[int, int]  # requests, tokens
Limits = tuple[int | None, int | None]


class LeaseLapsed(Exception):
    """The host has no lease, so its shares may be outdated."""


class RateShare(NamedTuple):
    """One host's share of one limit: the limits, the held part and the kept part."""

    limits: Limits
    held: Pair
    kept: Pair


class RateShareNeed(NamedTuple):
    """The need of one limit. `target` is the total that the host wants to admit."""

    name: str
    limits: Limits
    target: Pair


def grown(limit: int, mine: int, others: int, target: int, hosts: int) -> int:
    """Return a host's share after it asked for `target`. The sum stays within the limit.

    Up to an even share is granted at once, so that the next host finds its own; above that, half of
    the rest is granted.
    """
    mine = max(0, min(mine, limit - others))
    free, missing = max(0, limit - others - mine), target - mine
    if missing <= 0 or missing >= free:
        return mine + (free if missing > 0 else 0)
    even = limit // hosts - mine
    return mine + max(missing, min(free, even) if even > 0 else free // 2)


class RateShares:
    """One host's shares in the database. Every method is one short transaction."""

    def __init__(
        self,
        engine: Engine,
        holder: str,
        host: str,
        clock_us: Callable[[Connection], int] = database_us,
    ) -> None:
        self._engine, self._holder, self._host, self._clock_us = engine, holder, host, clock_us

    def renew(self) -> tuple[int, bool]:
        """Renew the lease. Return the number of live hosts, and whether the lease had lapsed.

        After a lapse, read `own_shares` again.
        """
        with self._engine.begin() as connection:
            found = self._own_row(connection)
            now_us = self._clock_us(connection)
            lapsed = found is None or now_us - found > LEASE_S * _US
            if found is None:
                row = {"holder": self._holder, "host": self._host, "renewed_us": now_us}
                connection.execute(insert(RateHostRow), [row])
            else:
                mine = RateHostRow.holder == self._holder
                connection.execute(update(RateHostRow).where(mine).values(renewed_us=now_us))
            return _alive(connection, now_us), lapsed

    def own_shares(self) -> dict[str, RateShare]:
        with self._engine.begin() as connection:
            query = select(RatePartRow.name, *_LIMITS, *_HELD, *_KEPT).where(
                RatePartRow.holder == self._holder
            )
            return {
                row[0]: RateShare(row[1:3], row[3:5], row[5:7]) for row in connection.execute(query)
            }

    def grow(self, needs: Iterable[RateShareNeed]) -> tuple[int, dict[str, RateShare]]:
        """Ask for larger shares. Return the number of live hosts and this host's shares.

        Missing amounts are recorded, so that other hosts release them.
        """
        with self._engine.begin() as connection:
            now_us = self._check_lease(connection)
            hosts = _alive(connection, now_us)
            ordered = sorted(needs)
            parts = {need.name: self._grow(connection, need, hosts, now_us) for need in ordered}
            return hosts, parts

    def wanted_by_others(self) -> dict[str, Pair]:
        """Return the amounts that other hosts lack, for limits of which this host has a share."""
        mine = aliased(RatePartRow)
        query = (
            select(
                RatePartRow.name,
                func.sum(RatePartRow.wanted_requests),
                func.sum(RatePartRow.wanted_tokens),
            )
            .join(mine, and_(mine.name == RatePartRow.name, mine.holder == self._holder))
            .where(
                RatePartRow.wanted_us.is_not(None),
                RatePartRow.holder != self._holder,
                or_(mine.requests > 0, mine.tokens > 0),
            )
            .group_by(RatePartRow.name)
        )
        with self._engine.begin() as connection:
            since_us = self._clock_us(connection) - WANTED_S * _US
            rows = connection.execute(query.where(RatePartRow.wanted_us > since_us))
            return {name: (int(requests), int(tokens)) for name, requests, tokens in rows}

    def write_shares(self, parts: Mapping[str, RateShare]) -> None:
        """Write this host's current shares, which must not be above the stored ones."""
        with self._engine.begin() as connection:
            self._check_lease(connection)
            for name, part in sorted(parts.items()):
                _lock_account(connection, name)
                connection.execute(update(RatePartRow).where(self._is(name)).values(_columns(part)))

    def release_shares(self, parts: Mapping[str, RateShare]) -> None:
        """Release shares like `write_shares`, and clear what other hosts recorded as missing."""
        with self._engine.begin() as connection:
            self._check_lease(connection)
            for name, part in sorted(parts.items()):
                _lock_account(connection, name)
                connection.execute(update(RatePartRow).where(self._is(name)).values(_columns(part)))
                others = and_(
                    RatePartRow.name == name,
                    RatePartRow.holder != self._holder,
                    RatePartRow.wanted_us.is_not(None),
                )
                connection.execute(update(RatePartRow).where(others).values(wanted_us=None))

    def release_all(self) -> None:
        """Give up the kept parts.

        Other hosts take the shares once this host's admissions no longer count.
        """
        with self._engine.begin() as connection:
            mine = update(RatePartRow).where(RatePartRow.holder == self._holder)
            connection.execute(mine.values(kept_requests=0, kept_tokens=0, wanted_us=None))

    def take_over(self) -> int:
        """Reduce the shares of dead hosts to the kept part, and to nothing after `KEPT_S`.

        Returns the number of dead hosts.
        """
        with self._engine.begin() as connection:
            now_us = self._clock_us(connection)
            query = (
                select(RateHostRow.holder, RateHostRow.renewed_us)
                .where(RateHostRow.renewed_us < now_us - TAKEN_OVER_S * _US)
                .order_by(RateHostRow.holder)
                .with_for_update(skip_locked=True)
            )
            gone = connection.execute(query).all()
            over_us = now_us - (KEPT_S + TAKEN_OVER_S) * _US
            for holder, renewed_us in gone:
                theirs = RatePartRow.holder == holder
                if renewed_us < over_us:
                    connection.execute(delete(RatePartRow).where(theirs))
                    connection.execute(delete(RateHostRow).where(RateHostRow.holder == holder))
                else:
                    kept = {
                        "requests": RatePartRow.kept_requests,
                        "tokens": RatePartRow.kept_tokens,
                    }
                    more = or_(
                        RatePartRow.requests > RatePartRow.kept_requests,
                        RatePartRow.tokens > RatePartRow.kept_tokens,
                    )
                    statement = update(RatePartRow).where(theirs, more)
                    connection.execute(statement.values({**kept, "wanted_us": None}))
            return len(gone)

    def _grow(
        self, connection: Connection, need: RateShareNeed, hosts: int, now_us: int
    ) -> RateShare:
        _lock_account(connection, need.name)
        mine = RatePartRow.holder == self._holder
        query = select(
            *(func.sum(case((mine, cell), else_=0)) for cell in _HELD),
            *(func.sum(case((mine, 0), else_=cell)) for cell in _HELD),
            func.count().filter(mine),
        ).where(RatePartRow.name == need.name)
        *sums, known = connection.execute(query).one()
        held, kept, wanted = [], [], []
        for kind, limit in enumerate(need.limits):
            before, others = int(sums[kind] or 0), int(sums[2 + kind] or 0)
            after = 0 if limit is None else grown(limit, before, others, need.target[kind], hosts)
            held.append(after)
            kept.append(0 if limit is None else min(after, limit // hosts))
            wanted.append(0 if limit is None else max(0, need.target[kind] - after))
        part = RateShare(need.limits, (held[0], held[1]), (kept[0], kept[1]))
        values = {
            **_columns(part),
            "wanted_requests": wanted[0],
            "wanted_tokens": wanted[1],
            "wanted_us": now_us if any(wanted) else None,
        }
        if known:
            connection.execute(update(RatePartRow).where(self._is(need.name)).values(values))
        else:
            key = {"name": need.name, "holder": self._holder}
            connection.execute(insert(RatePartRow), [{**key, **values}])
        return part

    def _own_row(self, connection: Connection) -> int | None:
        """Lock this host's row, against a takeover, and return the time of its last renewal."""
        query = select(RateHostRow.renewed_us).where(RateHostRow.holder == self._holder)
        return connection.execute(query.with_for_update()).scalar_one_or_none()

    def _check_lease(self, connection: Connection) -> int:
        found, now_us = self._own_row(connection), self._clock_us(connection)
        if found is None or now_us - found > LEASE_S * _US:
            raise LeaseLapsed
        return now_us

    def _is(self, name: str) -> ColumnElement[bool]:
        return and_(RatePartRow.name == name, RatePartRow.holder == self._holder)


def _alive(connection: Connection, now_us: int) -> int:
    query = select(func.count()).where(RateHostRow.renewed_us >= now_us - LEASE_S * _US)
    return max(1, int(connection.execute(query).scalar_one()))


def _lock_account(connection: Connection, name: str) -> None:
    """Lock the shares of this limit until the transaction ends."""
    add = insert_into(connection, RateAccountRow).on_conflict_do_nothing()
    connection.execute(add, [{"name": name}])
    query = select(RateAccountRow.name).where(RateAccountRow.name == name)
    connection.execute(query.with_for_update()).one()


def _columns(part: RateShare) -> dict[str, int | None]:
    cells = (*part.limits, *part.held, *part.kept)
    columns: tuple[Stored[Any], ...] = (*_LIMITS, *_HELD, *_KEPT)
    return {column.key: cell for column, cell in zip(columns, cells, strict=True)}


_LIMITS = (RatePartRow.limit_requests, RatePartRow.limit_tokens)
_HELD = (RatePartRow.requests, RatePartRow.tokens)
_KEPT = (RatePartRow.kept_requests, RatePartRow.kept_tokens)
