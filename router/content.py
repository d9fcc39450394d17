"""Content terms of a policy: what to do with each kind of content found in a request.

Several actions may apply to one kind: a rule has one, and rules whose condition cannot be decided
add theirs. Terms are sorted pairs, so that policies compare and serialize as plain values.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

ContentTerms = tuple[tuple[str, str], ...]  # kind and action

UNKNOWN = "unknown"  # what no detector can read, and a detector that failed
NOT_INSPECTED: ContentTerms = ()


class ContentAction(StrEnum):
    RECORD = "record"  # recorded; the request is not changed
    MASK = "mask"  # a placeholder is sent in its place
    KEEP_INSIDE = "keep_inside"  # the request goes to own engines alone
    REFUSE = "refuse"


def content_terms(actions: Mapping[str, str]) -> ContentTerms:
    """Return the terms of a rule. Unreadable content stays inside unless the rule decides."""
    if not actions:
        return NOT_INSPECTED
    stated = {UNKNOWN: ContentAction.KEEP_INSIDE.value, **actions}
    return tuple(sorted(stated.items()))


def join_terms(terms: Iterable[ContentTerms]) -> ContentTerms:
    """Return the union of the terms of several rules: each of their actions applies."""
    return tuple(sorted({pair for pairs in terms for pair in pairs}))


def kinds_under(terms: ContentTerms, action: ContentAction, found: Collection[str]) -> list[str]:
    """Return the found kinds that have this action."""
    return [kind for kind, word in terms if word == action and kind in found]


def is_as_strict(upper: ContentTerms, lower: ContentTerms, *, inside: bool) -> bool:
    """Return whether `upper` protects everything that `lower` protects.

    `inside` is whether requests that `upper` applies to stay on own engines in any case.
    """
    has = set(upper)
    for kind, action in lower:
        if action == ContentAction.RECORD or (kind, action) in has:
            continue
        if (kind, ContentAction.REFUSE) in has:
            continue
        if action != ContentAction.KEEP_INSIDE or not inside:
            return False
    return True
