"""Roles: named sets of scopes, and what a scope holds beside itself.

A role is written out when a key is made, so that what a key may do never grows with a release.
"""

from collections.abc import Collection, Iterable
from enum import StrEnum

from gateway.auth import (
    APPLY,
    APPLY_POLICIES,
    BUDGETS,
    CHANGES,
    CONTRACTS,
    EVERY_TEAM,
    INFERENCE,
    INVOICES,
    KEYS,
    OPERATIONS,
    POLICIES,
    PRICES,
    USAGE,
)


class Scope(StrEnum):
    """What keys may do, as routes ask for it (`gateway.access`)."""

    INFERENCE = INFERENCE
    USAGE = USAGE
    USAGE_OF_ALL = USAGE + EVERY_TEAM
    POLICIES = POLICIES
    APPLY_POLICIES = APPLY_POLICIES
    OPERATIONS = OPERATIONS
    APPLY_OPERATIONS = OPERATIONS + APPLY
    BUDGETS = BUDGETS
    BUDGETS_OF_ALL = BUDGETS + EVERY_TEAM
    PRICES = PRICES
    APPLY_PRICES = PRICES + APPLY
    INVOICES = INVOICES
    APPLY_INVOICES = INVOICES + APPLY
    CONTRACTS = CONTRACTS
    APPLY_CONTRACTS = CONTRACTS + APPLY
    CHANGES = CHANGES
    KEYS = KEYS
    KEYS_OF_ALL = KEYS + EVERY_TEAM


class Role(StrEnum):
    VIEWER = "viewer"
    FINANCE = "finance"
    DEVELOPER = "developer"
    TEAM_ADMIN = "team_admin"
    ADMIN = "admin"


_VIEWED = {Scope.USAGE_OF_ALL, Scope.BUDGETS_OF_ALL, Scope.POLICIES, Scope.OPERATIONS, Scope.PRICES}
_COUNTED = {Scope.APPLY_PRICES, Scope.APPLY_INVOICES, Scope.APPLY_CONTRACTS, Scope.CHANGES}
_BUILT = {Scope.INFERENCE, Scope.USAGE}

ROLES: dict[Role, frozenset[str]] = {
    Role.VIEWER: frozenset(_VIEWED),
    Role.FINANCE: frozenset({Scope.USAGE_OF_ALL, Scope.BUDGETS_OF_ALL} | _COUNTED),
    Role.DEVELOPER: frozenset(_BUILT),
    Role.TEAM_ADMIN: frozenset(_BUILT | {Scope.BUDGETS, Scope.KEYS}),
    Role.ADMIN: frozenset(Scope),
}


def reach(scopes: Iterable[str]) -> set[str]:
    """These, and what they hold: `usage:all` holds `usage`, `policies:apply` holds `policies`."""
    given = set(scopes)
    return given | {one.removesuffix(end) for one in given for end in (EVERY_TEAM, APPLY)}


def lacking(scopes: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """What of these scopes nobody with the others could hand on."""
    return sorted(set(wanted) - reach(scopes))


def role_of(scopes: Collection[str]) -> Role | None:
    """The role that these scopes are, if they are one."""
    return next((role for role, held in ROLES.items() if held == set(scopes)), None)
