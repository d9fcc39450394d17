"""Spend by key, by tag and by hour: from sums, or from attempts where sums begin too late.

An attempt with two tags counts under each, so groups do not add up to the total.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
from sqlalchemy import Connection, select

from ledger.orm.tables import KeyRow
from ledger.queries import requests
from ledger.queries.attempts import SpendPoint
from ledger.queries.requests import AttemptDetail
from ledger.queries.rollups import (
    RollupProgress,
    SumQuery,
    Sums,
    read_consistently,
    rollup_progress,
    sums_at,
)
from ledger.seals.retirements import retired_until_us
from ledger.spans import HOUR_US, Scope
from ledger.sums.rollup import ATTEMPTS, KEYED, LIMB, TAGGED
from ledger.sums.tagsums import read_start

_BY_TAGS = SumQuery(("tags",))
_BY_KEY = SumQuery(("team_id", "key_id", "backend"))
_BY_HOUR = SumQuery((), HOUR_US, measures=("cost_high", "cost_low"))


@dataclass(frozen=True, slots=True)
class TagSpend:
    """Attempts with one tag, those of own engines at their provisional charge."""

    tag: str  # name=value
    attempts: int
    input_tokens: int
    output_tokens: int
    cost_pusd: int


def tagged(connection: Connection, scope: Scope) -> list[TagSpend]:
    """Return the spend of each tag, most expensive first."""
    found = sums_by_tags(connection, scope, _BY_TAGS)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for (_, text), (attempts, given, answered, high, low) in found.items():
        for name, value in msgspec.json.decode(text, type=dict[str, str]).items():
            _add(sums[f"{name}={value}"], [attempts, given, answered, high * LIMB + low])
    groups = [TagSpend(tag, *values) for tag, values in sums.items()]
    return sorted(groups, key=lambda group: (-group.cost_pusd, group.tag))


@dataclass(frozen=True, slots=True)
class KeySpend:
    """Attempts by one key on one backend, those of own engines at their provisional charge."""

    team: str
    key_id: str
    backend: str  # own | api
    attempts: int
    input_tokens: int
    output_tokens: int
    cost_pusd: int
    unpriced: int


def keyed(connection: Connection, scope: Scope) -> list[KeySpend]:
    """Return the spend by team, key and backend."""
    found = sums_by_key(connection, scope, _BY_KEY)
    return [
        KeySpend(
            team, key, backend, items[0], items[1], items[2], items[3] * LIMB + items[4], items[5]
        )
        for (_, team, key, backend), items in sorted(found.items())
    ]


def spent_by_key(connection: Connection, scope: Scope, bucket_us: int) -> list[SpendPoint]:
    """Return the spend by bucket and key, in time order."""
    ask = SumQuery(("key_id",), bucket_us, measures=("cost_high", "cost_low"))
    found = sums_by_key(connection, scope, ask)
    return [
        SpendPoint(start_us, key, high * LIMB + low)
        for (start_us, key), (high, low) in sorted(found.items())
    ]


def sums_by_key(connection: Connection, scope: Scope, ask: SumQuery) -> Sums:
    """Return the requested sums by dimensions of `KEYED`, read from one state."""
    return read_consistently(connection, partial(_by_key, connection, scope, ask))


def sums_by_tags(connection: Connection, scope: Scope, ask: SumQuery) -> Sums:
    """Return the requested sums by team and tags (JSON text), read from one state."""
    return read_consistently(connection, partial(_by_tags, connection, scope, ask))


def own_tokens_of_keys(
    connection: Connection, scope: Scope, keys: Sequence[str], here: RollupProgress | None
) -> dict[tuple[int, str], int]:
    """Return tokens of own engines for these keys, by hour and team.

    Call this inside `read_consistently`.
    """
    ask = SumQuery(
        ("team_id",),
        HOUR_US,
        lambda of: [of.key_id.in_(keys), of.backend == "own"],
        ("input_tokens", "output_tokens"),
    )
    found = _by_key(connection, scope, ask, here)
    return {place: given + made for place, (given, made) in found.items()}


def attempts_of_key(
    connection: Connection,
    scope: Scope,
    key_id: str,
    *,
    where: dict[str, str],
    limit: int,
    dearest: bool = False,
) -> list[AttemptDetail]:
    """Return single attempts of one key; `where` and `dearest` as in `requests.attempts`.

    No index contains keys. Sums tell the key's team and hours, which limit the rows to read.
    """
    ask = SumQuery(("team_id",), HOUR_US, lambda of: [of.key_id == key_id], ("attempts",))
    found = sums_by_key(connection, scope, ask)
    start_us = end_us = 0
    seen = 0
    for (hour_us, _), (count,) in sorted(found.items(), reverse=True):
        start_us, end_us = hour_us, end_us or hour_us + HOUR_US
        seen += count
        if seen >= limit and not where and not dearest:
            break
    whose = {team for _, team in found}
    within = replace(
        scope,
        start_us=max(start_us, scope.start_us),
        end_us=min(end_us, scope.end_us),
        team=scope.team if len(whose) > 1 else min(whose, default=scope.team),
    )
    where = {**where, "key_id": key_id}
    return requests.attempts(connection, within, where=where, limit=limit, dearest=dearest)


def whole_from_us(connection: Connection) -> int:
    """Return the time before which sums by key and tag may lack attempts, 0 if none can."""
    gone_us, here = retired_until_us(connection), rollup_progress(connection)
    kept = None if here is None else read_start(connection, here.version)
    return gone_us if kept is None else min(gone_us, kept.from_us)


def key_names(connection: Connection, team: str | None) -> dict[str, str]:
    """Return the names of a team's keys (`None`: of all teams) by key id."""
    query = select(KeyRow.id, KeyRow.name)
    if team is not None:
        query = query.where(KeyRow.team_id == team)
    return {row[0]: row[1] for row in connection.execute(query)}


def spent_by_hour(connection: Connection, scope: Scope) -> dict[int, int]:
    """Return the pico-USD of priced attempts by the start of each hour with attempts.

    Sums by team and tags are read, which are far fewer than those by all page dimensions.
    """
    found = read_consistently(connection, partial(_by_hour, connection, scope))
    return {start_us: high * LIMB + low for (start_us,), (high, low) in found.items()}


def _by_tags(
    connection: Connection, scope: Scope, ask: SumQuery, here: RollupProgress | None
) -> Sums:
    return sums_at(connection, TAGGED, scope, ask, _tagged_to(connection, scope, here))


def _by_key(
    connection: Connection, scope: Scope, ask: SumQuery, here: RollupProgress | None
) -> Sums:
    return sums_at(connection, KEYED, scope, ask, _tagged_to(connection, scope, here))


def _by_hour(connection: Connection, scope: Scope, here: RollupProgress | None) -> Sums:
    kept = _tagged_to(connection, scope, here)
    if kept is None:
        return sums_at(connection, ATTEMPTS, scope, _BY_HOUR, here)
    return sums_at(connection, TAGGED, scope, _BY_HOUR, kept)


def _tagged_to(
    connection: Connection, scope: Scope, here: RollupProgress | None
) -> RollupProgress | None:
    """Return the position of the sums by tag and key, or `None` if they begin too late.

    These sums have no packed tiers.
    """
    kept = None if here is None else read_start(connection, here.version)
    if here is None or kept is None or kept.from_us > scope.start_us:
        return None
    return replace(here, packed_us=0)


def _add(into: list[int], figures: list[int]) -> None:
    for place, figure in enumerate(figures):
        into[place] += figure
