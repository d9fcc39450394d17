"""Operations of `breakeven tags`: virtual tags, whose rules give each request a value."""

from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, CONTRACTS, EVERY_TEAM, USAGE
from gateway.control.admin.entries import current_entries, enter_entry, entries_document
from gateway.control.admin.verb import NoInput, Note, OperationContext, OperationRefused, verb
from ledger.manual_entries import VIRTUAL_TAG

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=60, description="as `product`")]
_Rule = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]


class EnterTagInput(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    rules: Annotated[
        list[_Rule],
        msgspec.Meta(description="in order, as `support: team=support|helpdesk, model=chat`"),
    ]
    note: Note | None = None


class WithdrawTagInput(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    note: Note | None = None


@verb("GET /virtual-tags", USAGE + EVERY_TEAM, "tags list", "Virtual tags in force", NoInput)
def tags_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    return entries_document(place, VIRTUAL_TAG)


@verb(
    "POST /virtual-tags",
    CONTRACTS + APPLY,
    "tags enter",
    "Enter a virtual tag, or its rules anew; it counts for all requests of the books",
    EnterTagInput,
)
def tags_enter(place: OperationContext, given: EnterTagInput) -> dict[str, Any]:
    from ledger.reports.virtual_tags import (  # noqa: PLC0415  (most starts never need its queries)
        VirtualTagError,
        parse_tag,
    )

    try:
        parse_tag(given.name, given.rules)
    except VirtualTagError as error:
        param = "name" if str(error).startswith("name:") else "rules"
        raise OperationRefused(str(error), param=param) from error
    rules = [line.strip() for line in given.rules if line.strip()]
    return enter_entry(place, VIRTUAL_TAG + given.name, {"rules": rules}, given.note)


@verb(
    "POST /virtual-tags/withdraw",
    CONTRACTS + APPLY,
    "tags withdraw",
    "Take a virtual tag off the pages; no request changes",
    WithdrawTagInput,
)
def tags_withdraw(place: OperationContext, given: WithdrawTagInput) -> dict[str, Any]:
    if given.name not in {entry.name for entry in current_entries(place, VIRTUAL_TAG)}:
        raise OperationRefused(
            f"there is no virtual tag named `{given.name}`; `GET "
            "/v1/organization/virtual_tags` lists all",
            param="name",
        )
    return enter_entry(place, VIRTUAL_TAG + given.name, None, given.note)


VERBS = (tags_list, tags_enter, tags_withdraw)
