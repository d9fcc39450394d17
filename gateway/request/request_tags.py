"""Tags that a request sets itself, as `x-breakeven-tags: run=42`, for budgets by value.

Only names with a budget on `tag:NAME=*` may be set: everything else that depends on tags uses those
of keys (`Identity.own_tags`). Other names are ignored, and listed in the answer's
`x-breakeven-ignored`, since clients keep sending the header after a budget has ended. A tag of the
key cannot be changed, and the tag of batches is set by the gateway.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Protocol

from gateway.errors import RequestError
from ledger.budgets.scopes import EACH
from ledger.identity.keys import BATCH_TAG, Identity

HEADER: Final = "x-breakeven-tags"
VALUE_LIMIT: Final = 128  # characters


class ValuedTags(Protocol):
    """Source of the tags with a budget for each value; implemented by `BudgetAdmission`."""

    @property
    def valued_tags(self) -> frozenset[str]: ...


def with_request_tags(
    identity: Identity, said: str, budgets: ValuedTags
) -> tuple[Identity, tuple[str, ...]]:
    """Return the identity with the request's tags, and the names that were ignored.

    `said` is `NAME=VALUE` pairs separated by commas. Raises `RequestError` if malformed.
    """
    names = budgets.valued_tags
    tags = dict(identity.tags)
    pinned = set(tags)
    ignored: dict[str, None] = {}
    for name, value in _pairs(said):
        is_other = name in pinned and tags[name] != value
        if name not in names or name == BATCH_TAG or is_other:
            ignored[f"{HEADER}.{name}"] = None
            continue
        if not 0 < len(value) <= VALUE_LIMIT or not value.isprintable() or value == EACH:
            raise _fault(
                f"The tag `{name}` needs a value of 1 to {VALUE_LIMIT} printable characters, not "
                f"`{EACH}`."
            )
        if tags.setdefault(name, value) != value:
            raise _fault(f"The tag `{name}` has two values. Send one.")
    named = frozenset(tags.keys() - pinned)
    return replace(identity, tags=tuple(tags.items()), named_tags=named), tuple(ignored)


def _pairs(said: str) -> Iterator[tuple[str, str]]:
    for pair in filter(None, map(str.strip, said.split(","))):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not name or not equals:
            raise _fault(
                f"`{pair[:VALUE_LIMIT]}` is not a tag. Write `NAME=VALUE`, for example `run=42`. "
                "Separate two tags by a comma; a value must not contain one."
            )
        yield name, value


def _fault(words: str) -> RequestError:
    return RequestError("bad_request", f"`{HEADER}`: {words}", param=HEADER)
