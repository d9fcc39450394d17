"""All verbs, as the routes and their documentation are made of them."""

from typing import Any

from gateway.admin import (
    books,
    engines,
    entries,
    explaining,
    invoices,
    keys,
    overrides,
    policies,
    prices,
    rates,
    whatifs,
)
from gateway.admin.verb import Verb

VERBS: tuple[Verb[Any], ...] = (
    *policies.VERBS,
    *whatifs.VERBS,
    *explaining.VERBS,
    *overrides.VERBS,
    *engines.VERBS,
    *keys.VERBS,
    *prices.VERBS,
    *invoices.VERBS,
    *rates.VERBS,
    *entries.VERBS,
    *books.VERBS,
)
