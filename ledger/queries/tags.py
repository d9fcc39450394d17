"""Spend by a key's tags, and by hour: of sums, or of attempts where sums by tag began too late.

An attempt with two tags counts under each, so groups do not add up to the total.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial

import msgspec
from sqlalchemy import Connection

from ledger.queries.rollups import Ask, Rolled, Sums, settle_on, sums_at
from ledger.queries.scope import HOUR_US, Scope
from ledger.sums.rollup import ATTEMPTS, LIMB, TAGGED
from ledger.sums.tagsums import tagging

_BY_TAGS = Ask(("tags",))
_BY_HOUR = Ask((), HOUR_US, measures=("cost_high", "cost_low"))


@dataclass(frozen=True, slots=True)
class Tagged:
    """Attempts of one tag; own ones at their provisional charge."""

    tag: str  # name=value
    attempts: int
    input_tokens: int
    output_tokens: int
    cost_pusd: int


def tagged(connection: Connection, scope: Scope) -> list[Tagged]:
    """The dearest first."""
    found = settle_on(connection, partial(_by_tags, connection, scope))
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for (_, text), (attempts, given, answered, high, low) in found.items():
        for name, value in msgspec.json.decode(text, type=dict[str, str]).items():
            _add(sums[f"{name}={value}"], [attempts, given, answered, high * LIMB + low])
    groups = [Tagged(tag, *values) for tag, values in sums.items()]
    return sorted(groups, key=lambda one: (-one.cost_pusd, one.tag))


def spent_by_hour(connection: Connection, scope: Scope) -> dict[int, int]:
    """pico-USD by the start of each hour with attempts; priced ones only.

    By team and tags there are far fewer sums than by all that pages group by.
    """
    found = settle_on(connection, partial(_by_hour, connection, scope))
    return {start_us: high * LIMB + low for (start_us,), (high, low) in found.items()}


def _by_tags(connection: Connection, scope: Scope, here: Rolled | None) -> Sums:
    return sums_at(connection, TAGGED, scope, _BY_TAGS, _tagged_to(connection, scope, here))


def _by_hour(connection: Connection, scope: Scope, here: Rolled | None) -> Sums:
    kept = _tagged_to(connection, scope, here)
    if kept is None:
        return sums_at(connection, ATTEMPTS, scope, _BY_HOUR, here)
    return sums_at(connection, TAGGED, scope, _BY_HOUR, kept)


def _tagged_to(connection: Connection, scope: Scope, here: Rolled | None) -> Rolled | None:
    """How far sums by tag are, which have no coarser ones; None where they began too late."""
    kept = None if here is None else tagging(connection, here.version)
    if here is None or kept is None or kept.from_us > scope.start_us:
        return None
    return replace(here, packed_us=0)


def _add(into: list[int], figures: list[int]) -> None:
    for place, figure in enumerate(figures):
        into[place] += figure
