"""The budget scopes: everything that a budget or a rate limit can be set on, one entry each.

`SCOPE_KINDS` is the only list of them. Admission names the scopes of an attempt with it, a new
budget finds the attempts that it missed, and the configuration checks what a file may say. A new
scope of something that an attempt has is one entry, at the end, with the next `width`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from ledger.model_names import counted_names

EACH = "*"  # the name of a default: of each user, of each value of a tag


class Payer(Protocol):
    """Identity of the key that asks: `ledger.identity.keyring.Identity`, or an open record.

    `counts_on`: other keys whose budgets bind this one, too.
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
    """The target of an attempt: `gateway.fleet.fleet.Target`, or the record of one."""

    @property
    def provider(self) -> str | None: ...
    @property
    def simulated(self) -> bool: ...


class NameRule(Enum):
    """Rule for the name behind the prefix."""

    NONE = auto()  # the prefix is the whole scope
    IDENTITY = auto()  # printable text of at most 128 characters
    KEY = auto()
    MODEL = auto()
    PROVIDER = auto()
    TAG = auto()


class BudgetReader(Enum):
    """Holds who is told of a budget beside the people who run the house."""

    OWNER = auto()  # a key that bears this name itself is told all, another what is left
    SHARER = auto()  # each key that it binds is told what is left
    NOBODY = auto()  # a key is told whether anything is left


class AttemptRows(Enum):
    """Which attempts in the books fall under a scope."""

    ALL = auto()
    EXTERNAL = auto()  # those of a provider that is not simulated
    COLUMN = auto()  # those with the name in `column`
    TAGGED = auto()


@dataclass(frozen=True, slots=True)
class BudgetScope:
    """One kind of scope.

    `of_request` returns the names that a request falls under wherever it goes, `of_target` those
    of an attempt at a target; "" stands for a scope without a name. `width` orders the scopes from
    the widest to the narrowest: hosts lock them in this order, so it never changes. A budget on
    `team:*` is one for each team, if `for_each`; on `tag:run=*` one for each value. `own_name`
    returns the name that a key bears itself, None for a key without one: of `OWNER` alone.
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
        """Whether a rate limit can be set on it: it is known before the request goes anywhere."""
        return self.of_request is not None

    @property
    def is_of_keys(self) -> bool:
        """Whether the ledger's keys bear its names: people, teams and tags, but no model."""
        return self.of_request is not None and self.name_rule not in (
            NameRule.NONE,
            NameRule.MODEL,
        )

    @property
    def is_one_name(self) -> bool:
        """Whether it is a text that a request has before it goes anywhere, as a condition asks."""
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
    """Return the scopes of a request, wherever it goes."""
    return tuple([kind.scope(name) for kind, names in _OF_REQUEST for name in names(payer, model)])


def team_of(scopes: Iterable[str]) -> str:
    """Return the team of a request by its scopes, "" where none is named."""
    begin = TEAM.scope("")
    return next((name.removeprefix(begin) for name in scopes if name.startswith(begin)), "")


def target_scopes(target: Destination) -> tuple[str, ...]:
    """Return the scopes that an attempt has for its target alone."""
    return tuple([kind.scope(name) for kind, names in _OF_TARGET for name in names(target)])


def valued_tag(scope: str) -> str | None:
    """Return `run` for `tag:run=*`, the default of each value; None for what is no such default."""
    kind, _, name = scope.partition(":")
    tag, equals, value = name.partition("=")
    return tag if kind in VALUE_KINDS and equals and value == EACH else None
