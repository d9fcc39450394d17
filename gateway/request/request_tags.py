"""Tags that a request names for itself, as `x-breakeven-tags: run=42`, for a budget of each value.

It may name those alone that a budget on `tag:NAME=*` is set on: whatever else goes by tags goes by
those of keys. A tag of the key itself stays as it is.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from gateway.errors import RequestError
from ledger.budgets.binding import EACH
from ledger.identity.keys import Identity

HEADER: Final = "x-breakeven-tags"
VALUE_LIMIT: Final = 128  # characters


def with_request_tags(identity: Identity, said: str | None, names: Collection[str]) -> Identity:
    """Return who asks with the tags of a request: `NAME=VALUE`, with commas between.

    `said`: None where it names none. `names`: those that it may name. Raises `RequestError`.
    """
    if said is None:
        return identity
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
    return replace(identity, tags=tuple(tags.items()))


def _fault(words: str) -> RequestError:
    return RequestError("bad_request", words, param=HEADER)
