"""Table of all operations, from which routes, access rules and documentation are made.

Each entry has name, path, scope, command, summary and input with its function, in the file of its
subject. A new operation of a known subject is an entry there. A new subject is a line here.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.control.access import OTHER_ROUTES
from gateway.control.admin import (
    books,
    budgets,
    businessmetrics,
    engines,
    entries,
    estimates,
    explaining,
    fleets,
    invoices,
    journal_findings,
    keys,
    muting,
    offers,
    open_claims,
    overrides,
    own_keys,
    policies,
    prices,
    rates,
    verdict,
    virtualtags,
    whatifs,
)
from gateway.control.admin.verb import PREFIX, AdminOperation

OPERATIONS: Final[tuple[AdminOperation[Any], ...]] = (
    *policies.VERBS,
    *whatifs.VERBS,
    *explaining.VERBS,
    *overrides.VERBS,
    *engines.VERBS,
    *fleets.VERBS,
    *estimates.VERBS,
    *keys.VERBS,
    *own_keys.VERBS,
    *prices.VERBS,
    *invoices.VERBS,
    *open_claims.VERBS,
    *rates.VERBS,
    *budgets.VERBS,
    *verdict.VERBS,
    *entries.VERBS,
    *offers.VERBS,
    *books.VERBS,
    *muting.VERBS,
    *virtualtags.VERBS,
    *businessmetrics.VERBS,
    *journal_findings.VERBS,
)
# By `METHOD /path`, the scope of every route there may be.
ROUTES: Final[Mapping[str, str]] = OTHER_ROUTES | {
    f"{operation.method} {PREFIX}{operation.path}": operation.scope for operation in OPERATIONS
}
