"""Decides what a policy does with kinds of content that a request has.

Several actions may hold for one kind: a rule says one, and rules whose condition cannot be told add
theirs. They are kept as sorted pairs, so that policies compare and are written as plain values.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

ContentTerms = tuple[tuple[str, str], ...]  # kind and action

UNKNOWN = "unknown"  # what no detector can read, and a detector that failed
NOT_INSPECTED: ContentTerms = ()


class ContentAction(StrEnum):
    RECORD = "record"  # told, and nothing else
    MASK = "mask"  # a placeholder is sent in its place
    KEEP_INSIDE = "keep_inside"  # the request goes to own engines alone
    REFUSE = "refuse"


def content_terms(actions: Mapping[str, str]) -> ContentTerms:
    """Return the terms of a rule. What cannot be read stays inside unless the rule says other."""
    if not actions:
        return NOT_INSPECTED
    stated = {UNKNOWN: ContentAction.KEEP_INSIDE.value, **actions}
    return tuple(sorted(stated.items()))


def join_terms(terms: Iterable[ContentTerms]) -> ContentTerms:
    """Return all that several rules say: each of their actions holds."""
    return tuple(sorted({pair for pairs in terms for pair in pairs}))


def kinds_under(terms: ContentTerms, action: ContentAction, found: Collection[str]) -> list[str]:
    """Return which of the found kinds have this action."""
    return [kind for kind, word in terms if word == action and kind in found]


def is_as_strict(upper: ContentTerms, lower: ContentTerms, *, inside: bool) -> bool:
    """Return whether all that `lower` protects is protected by `upper`.

    `inside`: whether what falls under the upper one stays inside in any case.
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
