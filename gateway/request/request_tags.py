"""Tags that a request names for itself, as `x-breakeven-tags: run=42`, for a budget of each value.

It may name those alone that a budget on `tag:NAME=*` is set on: whatever else goes by tags goes by
those of keys (`Identity.own_tags`). A tag of the key itself stays as it is.
"""

from dataclasses import replace
from typing import Final, Protocol

from gateway.errors import RequestError
from ledger.budgets.scopes import EACH
from ledger.identity.keys import Identity

HEADER: Final = "x-breakeven-tags"
VALUE_LIMIT: Final = 128  # characters


class ValuedTags(Protocol):
    """Knows the tags with a budget for each value: `gateway.request.admission`."""

    @property
    def valued_tags(self) -> frozenset[str]: ...


def with_request_tags(identity: Identity, said: str | None, budgets: ValuedTags) -> Identity:
    """Return who asks with the tags of a request: `NAME=VALUE`, with commas between.

    `said`: None where it names none. Raises `RequestError`.
    """
    if said is None:
        return identity
    names = budgets.valued_tags
    tags = dict(identity.tags)
    pinned = set(tags)
    for pair in said.split(","):
        name, _, value = (part.strip() for part in pair.partition("="))
        if name not in names:
            known = ", ".join(sorted(names)) or "none: no budget is on `tag:NAME=*`"
            raise _fault(
                f"A request cannot name the tag `{name[:VALUE_LIMIT]}`. It may name {known}."
            )
        if not 0 < len(value) <= VALUE_LIMIT or not value.isprintable() or value == EACH:
            raise _fault(
                f"The tag `{name}` needs a value of 1 to {VALUE_LIMIT} printable characters."
            )
        if name in tags and name not in pinned and tags[name] != value:
            raise _fault(f"The tag `{name}` has two values. Send one.")
        if name not in pinned:
            tags[name] = value
    return replace(identity, tags=tuple(tags.items()), named_tags=frozenset(tags.keys() - pinned))


def _fault(words: str) -> RequestError:
    return RequestError("bad_request", words, param=HEADER)
