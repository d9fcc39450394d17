"""All verbs, as the routes and their documentation are made of them."""

from typing import Any

from gateway.admin import engines, keys, overrides, policies
from gateway.admin.verb import Verb

VERBS: tuple[Verb[Any], ...] = (
    *policies.VERBS,
    *overrides.VERBS,
    *engines.VERBS,
    *keys.VERBS,
)
