"""Errors in the body of a 200 whose provider may charge for what it had made before.

What was said or counted before a failure is the provider's to charge for, whatever the error says.
"""

from collections.abc import Mapping
from typing import Any

from backends.errors import BackendError, UpstreamBroken
from backends.usage_places import counts_output, usage_in


def charged_error(reported: BackendError, value: Any) -> BackendError:
    """Return the error as it is charged: `UpstreamBroken` where output was made or counted.

    `value` is the decoded body. Usage of a prompt alone is no output: it was not worked on.
    """
    if isinstance(value, list):  # Google sends a list of one
        value = value[0] if value else None
    if not isinstance(value, Mapping):
        return reported
    usage = usage_in(value)
    counted = usage is not None and (counts_output(usage) or _has_results(value))
    if reported.billable:
        reported.usage = usage if counted else None
        return reported
    if not counted and not _says(value.get("choices")):
        return reported
    broken = UpstreamBroken(str(reported))
    broken.usage = usage if counted else None
    return broken


def _has_results(value: Mapping[str, Any]) -> bool:
    """Whether embeddings, a ranking or a transcript are there: their usage counts no output."""
    for name, kind in (("data", list), ("results", list), ("text", str)):
        found = value.get(name)
        if isinstance(found, kind) and found:
            return True
    return False


def _says(choices: Any) -> bool:
    return isinstance(choices, list) and any(
        isinstance(choice, Mapping) and (bool(choice.get("text")) or _has_words(choice))
        for choice in choices
    )


def _has_words(choice: Mapping[str, Any]) -> bool:
    return any(
        any(value for name, value in words.items() if name != "role")
        for words in (choice.get("message"), choice.get("delta"))
        if isinstance(words, Mapping)
    )
