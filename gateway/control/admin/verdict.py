"""Verdict on own GPUs over HTTP; the same object as `ledger report --json`."""

from typing import Annotated, Any

import msgspec

from gateway.auth import CONTRACTS
from gateway.control.admin.verb import OperationContext, OperationRefused, verb
from ledger.spans import DAY_US, Scope

DAYS, DAYS_MOST = 30, 366


class ReadVerdictInput(msgspec.Struct, forbid_unknown_fields=True):
    """Period of the verdict. A calendar month has its own hours; otherwise a month is 720 h."""

    days: Annotated[
        int, msgspec.Meta(ge=1, le=DAYS_MOST, description="the last so many days of traffic")
    ] = DAYS
    month: (
        Annotated[str, msgspec.Meta(description="a calendar month of `timezone` instead, YYYY-MM")]
        | None
    ) = None


@verb(
    "GET /verdict",
    CONTRACTS,
    None,
    "Whether to keep, add to, reduce or leave own GPUs, dollars a month, and every assumption",
    ReadVerdictInput,
)
def verdict_read(place: OperationContext, given: ReadVerdictInput) -> dict[str, Any]:
    from ledger.economics.cost import HOURS_OF_A_MONTH  # noqa: PLC0415  (a thirtieth of a start)
    from ledger.reporting_zone import reporting_zone  # noqa: PLC0415  (as above)
    from ledger.reports.verdict_read import MonthError, month_scope, read_verdict  # noqa: PLC0415  (as above)

    scope, hours = Scope.last(given.days * DAY_US, place.now_us), HOURS_OF_A_MONTH
    with place.ledger.connect() as connection:
        if given.month is not None:
            try:
                scope, hours = month_scope(reporting_zone(connection), given.month, place.now_us)
            except MonthError as error:
                raise OperationRefused(str(error), param="month") from None
        return read_verdict(connection, scope, month_hours=hours).described()


VERBS = (verdict_read,)
