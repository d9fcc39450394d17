"""The budget scopes: everything that a budget or a rate limit can be set on.

`SCOPE_KINDS` is the only list of them. Admission uses it to name an attempt's scopes, a new budget
to find earlier attempts, and the configuration to check names. A new scope of a property that
attempts already have is one entry at the end, with the next `width`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from ledger.model_names import counted_names

EACH = "*"  # the name of a default: of each user, of each value of a tag


class Payer(Protocol):
    """Identity behind a request: `ledger.identity.keyring.Identity`, or an open record.

    `counts_on` are other keys whose budgets also bind this one.
    """

    @property
    def key_id(self) -> str: ...
    @property
    def user_id(self) -> str | None: ...
    @property
    def team_id(self) -> str: ...
    @property
    def org_id(self) -> str: ...
    @property
    def tags(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def counts_on(self) -> tuple[str, ...]: ...


class Destination(Protocol):
    """Target of an attempt: `gateway.fleet.fleet.Target`, or the record of one."""

    @property
    def provider(self) -> str | None: ...
    @property
    def simulated(self) -> bool: ...


class NameRule(Enum):
    """Rule for the name after the prefix."""

    NONE = auto()  # the prefix is the whole scope
    IDENTITY = auto()  # printable text of at most 128 characters
    KEY = auto()
    MODEL = auto()
    PROVIDER = auto()
    TAG = auto()


class BudgetReader(Enum):
    """Keys that may see a budget, besides the operators."""

    OWNER = auto()  # a key with this name sees everything, other keys the remaining amount
    SHARER = auto()  # each key that it binds sees the remaining amount
    NOBODY = auto()  # a key only sees whether anything remains


class AttemptRows(Enum):
    """Kind of condition that selects the attempts of a scope."""

    ALL = auto()
    EXTERNAL = auto()  # those of a provider that is not simulated
    COLUMN = auto()  # those with the name in `column`
    TAGGED = auto()


@dataclass(frozen=True, slots=True)
class BudgetScope:
    """One kind of scope.

    `of_request` returns the names that a request has at any target, `of_target` those that an
    attempt has because of its target; "" is a scope without a name. `width` orders scopes from the
    widest to the narrowest. Hosts lock in this order, so it never changes. With `for_each`, a
    budget on `team:*` is one for each team; `tag:run=*` is one for each value. `own_name` returns
    the key's own name, `None` for a key without one; it is set only for `OWNER`.
    """

    prefix: str
    width: int
    words: str  # for people
    name_rule: NameRule
    rows: AttemptRows
    told_to: BudgetReader
    column: str | None = None  # of attempts
    of_request: Callable[[Payer, str], Iterable[str]] | None = None
    of_target: Callable[[Destination], Iterable[str]] | None = None
    own_name: Callable[[Payer], str | None] | None = None
    for_each: bool = False

    @property
    def limits_rates(self) -> bool:
        """Return whether a rate limit can be set on it: it is known before a target is chosen."""
        return self.of_request is not None

    @property
    def is_of_keys(self) -> bool:
        """Return whether keys of the ledger have its names: people, teams and tags, not models."""
        return self.of_request is not None and self.name_rule not in (
            NameRule.NONE,
            NameRule.MODEL,
        )

    @property
    def is_one_name(self) -> bool:
        """Return whether it is one text that a request has before a target is chosen."""
        return self.of_request is not None and self.name_rule not in (NameRule.NONE, NameRule.TAG)

    def scope(self, name: str) -> str:
        """Return the scope of one name: `team:search`."""
        return self.prefix if self.name_rule is NameRule.NONE else f"{self.prefix}:{name}"


def _tags(payer: Payer, _model: str) -> Iterable[str]:
    for name, value in payer.tags:
        yield name
        yield f"{name}={value}"


def _user(payer: Payer, _model: str) -> Iterable[str]:
    return () if payer.user_id is None else (payer.user_id,)


def _provider(target: Destination) -> Iterable[str]:
    return () if target.provider is None else (target.provider,)


def _external(target: Destination) -> Iterable[str]:
    return () if target.provider is None or target.simulated else ("",)


TEAM = BudgetScope(
    "team", 3, "team", NameRule.IDENTITY, AttemptRows.COLUMN, BudgetReader.SHARER, "team_id",
    of_request=lambda payer, _: (payer.team_id,), for_each=True,
)  # fmt: skip
# In the order in which a request is counted on them.
SCOPE_KINDS: tuple[BudgetScope, ...] = (
    BudgetScope(
        "global", 0, "everything", NameRule.NONE, AttemptRows.ALL, BudgetReader.NOBODY,
        of_request=lambda _, __: ("",),
    ),
    BudgetScope(
        "org", 2, "organisation", NameRule.IDENTITY, AttemptRows.COLUMN, BudgetReader.NOBODY,
        "org_id", of_request=lambda payer, _: (payer.org_id,),
    ),
    TEAM,
    BudgetScope(
        "key", 5, "key", NameRule.KEY, AttemptRows.COLUMN, BudgetReader.OWNER, "key_id",
        of_request=lambda payer, _: (payer.key_id, *payer.counts_on),
        own_name=lambda payer: payer.key_id, for_each=True,
    ),
    BudgetScope(
        "model", 7, "model", NameRule.MODEL, AttemptRows.COLUMN, BudgetReader.NOBODY, "model",
        of_request=lambda _, model: counted_names(model),
    ),
    BudgetScope(
        "user", 4, "user", NameRule.IDENTITY, AttemptRows.COLUMN, BudgetReader.OWNER, "user_id",
        of_request=_user, own_name=lambda payer: payer.user_id, for_each=True,
    ),
    BudgetScope(
        "tag", 8, "tag", NameRule.TAG, AttemptRows.TAGGED, BudgetReader.SHARER, of_request=_tags
    ),
    BudgetScope(
        "provider", 6, "provider", NameRule.PROVIDER, AttemptRows.COLUMN, BudgetReader.NOBODY,
        "provider", of_target=_provider,
    ),
    BudgetScope(
        "external", 1, "all providers", NameRule.NONE, AttemptRows.EXTERNAL, BudgetReader.NOBODY,
        of_target=_external,
    ),
)  # fmt: skip
BY_PREFIX = {kind.prefix: kind for kind in sorted(SCOPE_KINDS, key=lambda kind: kind.width)}
_OF_REQUEST = [(kind, kind.of_request) for kind in SCOPE_KINDS if kind.of_request is not None]
_OF_TARGET = [(kind, kind.of_target) for kind in SCOPE_KINDS if kind.of_target is not None]


def prefixes(chosen: Callable[[BudgetScope], bool] = lambda _: True) -> tuple[str, ...]:
    """Return the prefixes of the chosen scopes, from the widest to the narrowest."""
    return tuple(prefix for prefix, kind in BY_PREFIX.items() if chosen(kind))


EACH_KINDS = prefixes(lambda kind: kind.for_each)
VALUE_KINDS = prefixes(lambda kind: kind.name_rule is NameRule.TAG)
"""Kinds whose names have values: `tag:run=*` is one budget for each value of `run`."""


def request_scopes(payer: Payer, model: str) -> tuple[str, ...]:
    """Return the scopes that a request has at any target."""
    return tuple([kind.scope(name) for kind, names in _OF_REQUEST for name in names(payer, model)])


def team_of(scopes: Iterable[str]) -> str:
    """Return the team among a request's scopes, "" without one."""
    begin = TEAM.scope("")
    return next((name.removeprefix(begin) for name in scopes if name.startswith(begin)), "")


def target_scopes(target: Destination) -> tuple[str, ...]:
    """Return the scopes that an attempt has because of its target."""
    return tuple([kind.scope(name) for kind, names in _OF_TARGET for name in names(target)])


def valued_tag(scope: str) -> str | None:
    """Return `run` for `tag:run=*`, `None` for other scopes."""
    kind, _, name = scope.partition(":")
    tag, equals, value = name.partition("=")
    return tag if kind in VALUE_KINDS and equals and value == EACH else None
