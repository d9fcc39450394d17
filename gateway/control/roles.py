"""Roles: named sets of scopes, and the scopes that a scope includes.

A key stores the scopes of its role when it is created, so that its rights never grow with a
release.
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
    KEYS_OWN,
    OPERATIONS,
    POLICIES,
    PRICES,
    USAGE,
)


class KeyScope(StrEnum):
    """Scopes of keys, as routes require them (`gateway.control.access`)."""

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
    KEYS_OWN = KEYS_OWN
    KEYS_OF_ALL = KEYS + EVERY_TEAM


class KeyRole(StrEnum):
    VIEWER = "viewer"
    FINANCE = "finance"
    DEVELOPER = "developer"
    MEMBER = "member"
    TEAM_ADMIN = "team_admin"
    ADMIN = "admin"


_VIEWED = {
    KeyScope.USAGE_OF_ALL,
    KeyScope.BUDGETS_OF_ALL,
    KeyScope.POLICIES,
    KeyScope.OPERATIONS,
    KeyScope.PRICES,
}
_COUNTED = {
    KeyScope.APPLY_PRICES,
    KeyScope.APPLY_INVOICES,
    KeyScope.APPLY_CONTRACTS,
    KeyScope.CHANGES,
}
_BUILT = {KeyScope.INFERENCE, KeyScope.USAGE}

ROLES: dict[KeyRole, frozenset[str]] = {
    KeyRole.VIEWER: frozenset(_VIEWED),
    KeyRole.FINANCE: frozenset({KeyScope.USAGE_OF_ALL, KeyScope.BUDGETS_OF_ALL} | _COUNTED),
    KeyRole.DEVELOPER: frozenset(_BUILT),
    KeyRole.MEMBER: frozenset(_BUILT | {KeyScope.KEYS_OWN}),
    KeyRole.TEAM_ADMIN: frozenset(_BUILT | {KeyScope.BUDGETS, KeyScope.KEYS}),
    KeyRole.ADMIN: frozenset(KeyScope),
}


def expand_scopes(scopes: Iterable[str]) -> set[str]:
    """Return the scopes with those they include: `usage:all` includes `usage`."""
    given = set(scopes)
    return given | {value.removesuffix(end) for value in given for end in (EVERY_TEAM, APPLY)}


def missing_scopes(scopes: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Return the scopes that a holder of the others cannot grant.

    A holder of `keys` may let others make their own keys.
    """
    held = expand_scopes(scopes)
    return sorted(set(wanted) - held - ({KEYS_OWN} if KEYS in held else set()))


def role_of(scopes: Collection[str]) -> KeyRole | None:
    """Return the role with exactly these scopes, or `None`."""
    return next((role for role, held in ROLES.items() if held == set(scopes)), None)
