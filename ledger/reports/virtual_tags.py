"""Virtual tags: values that rules give to past and future requests alike.

A virtual tag has a name, such as `product`, and rules in order, one per line: `support:
team=support|helpdesk`, then `search: team=search, model=chat`. The first matching rule gives the
value; a request without a match is `UNASSIGNED`. So each attempt counts once, and the values of a
tag add up to the cost of all attempts. Besides `team`, the rules of one tag may use one more
dimension, because sums are kept by team and one other: `model`, `key` (an id), or `tag:NAME` (a tag
of the request or its key).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Connection

from ledger.manual_entries import VIRTUAL_TAG, standing_entries
from ledger.queries.attempts import SpendPoint
from ledger.queries.rollups import SumQuery, sums
from ledger.queries.tags import sums_by_key, sums_by_tags
from ledger.reporting_zone import ReportingZone
from ledger.reports.zone_days import day_spent
from ledger.spans import Scope
from ledger.sums.rollup import ATTEMPTS, LIMB

UNASSIGNED = "(no rule)"
MOST_RULES = 100
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_FIELDS = ("team", "model", "key")
_TAG = re.compile("tag:.+")
_COSTS = ("attempts", "input_tokens", "output_tokens", "cost_high", "cost_low")


class VirtualTagError(ValueError):
    """Faults of a virtual tag, one per line."""


@dataclass(frozen=True, slots=True)
class TagRule:
    """A rule of a virtual tag. `matches` has its accepted values by dimension or `tag:NAME`."""

    value: str
    matches: Mapping[str, tuple[str, ...]]

    def holds(self, found: Mapping[str, str]) -> bool:
        return all(found.get(name) in wanted for name, wanted in self.matches.items())


@dataclass(frozen=True, slots=True)
class VirtualTag:
    """A virtual tag.

    `by` is its dimension besides the team: `model`, `key`, `tags`, or `None`.
    """

    name: str
    rules: tuple[TagRule, ...]

    @property
    def by(self) -> str | None:
        return next(iter(_beside_team(self.rules)), None)

    def value_of(self, found: Mapping[str, str]) -> str:
        return next((rule.value for rule in self.rules if rule.holds(found)), UNASSIGNED)


@dataclass(frozen=True, slots=True)
class VirtualSpend:
    """Attempts of one value: own engines at the provisional charge, unpriced attempts at zero."""

    value: str
    attempts: int
    input_tokens: int
    output_tokens: int
    cost_pusd: int


def parse_tag(name: str, lines: Sequence[str]) -> VirtualTag:
    """Return the virtual tag of these rules. Raises `VirtualTagError`, which names each line."""
    faults = []
    if not _NAME.fullmatch(name):
        faults.append("name: letters, digits and _.- only, at most 60, as `product`")
    rules = []
    for number, line in enumerate((line for line in lines if line.strip()), 1):
        rule = _parse_rule(line)
        if isinstance(rule, str):
            faults.append(f"rule {number}, `{line.strip()[:80]}`: {rule}")
        else:
            rules.append(rule)
    if not rules and not faults:
        faults.append("rules: at least one, as `support: team=support|helpdesk`")
    if len(rules) > MOST_RULES:
        faults.append(f"rules: at most {MOST_RULES}")
    if len(_beside_team(rules)) > 1:
        beside = ", ".join(sorted(_beside_team(rules)))
        faults.append(f"rules: beside `team` one dimension in all, not {beside}")
    if faults:
        raise VirtualTagError("\n".join(faults))
    return VirtualTag(name, tuple(rules))


def _parse_rule(line: str) -> TagRule | str:
    """Return the rule, or the error of its line."""
    value, colon, rest = (part.strip() for part in line.partition(": "))
    if not (value and colon and rest):
        return "write `VALUE: team=A|B, model=C`, with a blank after the first colon"
    if value == UNASSIGNED:
        return f"`{UNASSIGNED}` is what no rule takes: choose another value"
    matches: dict[str, tuple[str, ...]] = {}
    for part in rest.split(","):
        name, equals, wanted = (piece.strip() for piece in part.partition("="))
        values = tuple(item.strip() for item in wanted.split("|"))
        if not equals or not all(values):
            return f"`{part.strip()}`: write `team=A` or `team=A|B`"
        if name in matches:
            return f"`{name}` stands there twice: write `{name}=A|B`"
        matches[name] = values
    for name in matches:
        if name not in _FIELDS and not _TAG.fullmatch(name):
            return f"`{name}` is none of team, model, key, tag:NAME"
    return TagRule(value, matches)


def _beside_team(rules: Iterable[TagRule]) -> set[str]:
    names = {name.partition(":")[0] for rule in rules for name in rule.matches}
    return {"tags" if name == "tag" else name for name in names} - {"team"}


def rule_lines(says: Mapping[str, Any]) -> list[str]:
    """Return the rules of an entry as entered."""
    return [str(line) for line in says["rules"]]


def virtual_tags(connection: Connection, at_us: int) -> dict[str, VirtualTag]:
    """Return the active virtual tags by name."""
    standing = standing_entries(connection, VIRTUAL_TAG, at_us)
    return {
        name: parse_tag(name, rule_lines(entry.says))
        for name, entry in sorted(standing.items())
        if entry.says is not None
    }


def virtual_spend(connection: Connection, scope: Scope, tag: VirtualTag) -> list[VirtualSpend]:
    """Return the spend of each value, including `UNASSIGNED`, most expensive first."""
    added: dict[str, list[int]] = {}
    for _, names, figures in _cells(connection, scope, tag, None):
        attempts, given, answered, high, low = figures
        row = added.setdefault(tag.value_of(names), [0, 0, 0, 0])
        for place, figure in enumerate((attempts, given, answered, high * LIMB + low)):
            row[place] += figure
    rows = [VirtualSpend(value, *figures) for value, figures in added.items()]
    return sorted(rows, key=lambda row: (-row.cost_pusd, row.value))


def virtual_spend_by_day(
    connection: Connection, scope: Scope, zone: ReportingZone, tag: VirtualTag
) -> dict[tuple[int, str], int]:
    """Return the pico-USD by the start of each day of the zone and by value."""
    found = Counter[tuple[int, str]]()
    for point in day_spent(connection, scope, zone, partial(_points, tag)):
        found[point.start_us, point.name] += point.cost_pusd
    return dict(found)


def _points(
    tag: VirtualTag, connection: Connection, scope: Scope, width_us: int
) -> list[SpendPoint]:
    return [
        SpendPoint(start_us, tag.value_of(names), figures[3] * LIMB + figures[4])
        for start_us, names, figures in _cells(connection, scope, tag, width_us)
    ]


def _cells(
    connection: Connection, scope: Scope, tag: VirtualTag, bucket_us: int | None
) -> Iterable[tuple[int, dict[str, str], list[int]]]:
    """Yield sums by bucket, team and the tag's other dimension; dimensions are by name."""
    by = {"key": ("team_id", "key_id"), "tags": ("team_id", "tags")}.get(
        tag.by or "", ("team_id", "model")
    )
    ask = SumQuery(by, bucket_us, measures=_COSTS)
    if tag.by == "key":
        found = sums_by_key(connection, scope, ask)
    elif tag.by == "tags":
        found = sums_by_tags(connection, scope, ask)
    else:
        found = sums(connection, ATTEMPTS, scope, ask)
    for (start_us, team, other), figures in found.items():
        names = {"team": team}
        if tag.by == "tags":
            said = msgspec.json.decode(other, type=dict[str, str])
            names |= {f"tag:{name}": value for name, value in said.items()}
        else:
            names[tag.by or "model"] = other
        yield start_us, names, figures
