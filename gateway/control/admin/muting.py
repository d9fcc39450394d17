"""Operations of `breakeven anomalies`: mute alerts on unusual days of a series."""

from typing import Annotated, Any, Literal

import msgspec

from gateway.auth import APPLY, CONTRACTS, EVERY_TEAM, USAGE
from gateway.control.admin.entries import enter_entry, entries_document
from gateway.control.admin.verb import NoInput, Note, OperationContext, OperationRefused, verb
from ledger.manual_entries import MUTE
from ledger.reports.muting import muted_series, series_of


class SeriesInput(msgspec.Struct, forbid_unknown_fields=True):
    by: Literal["team", "key", "model", "backend"]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=300, description="of the series")]
    note: Note | None = None


@verb(
    "GET /anomalies/muted", USAGE + EVERY_TEAM, "anomalies muted", "Series that are muted", NoInput
)
def anomalies_muted(place: OperationContext, _: NoInput) -> dict[str, Any]:
    return entries_document(place, MUTE)


@verb(
    "POST /anomalies/mute",
    CONTRACTS + APPLY,
    "anomalies mute",
    "Tell nobody of this series' unusual days; its spending stays in every sum",
    SeriesInput,
)
def anomalies_mute(place: OperationContext, given: SeriesInput) -> dict[str, Any]:
    series = series_of(given.by, given.name)
    return enter_entry(place, MUTE + series, {"muted": True}, given.note)


@verb(
    "POST /anomalies/unmute",
    CONTRACTS + APPLY,
    "anomalies unmute",
    "Tell of this series' unusual days again",
    SeriesInput,
)
def anomalies_unmute(place: OperationContext, given: SeriesInput) -> dict[str, Any]:
    series = series_of(given.by, given.name)
    with place.ledger.connect() as connection:
        known = muted_series(connection, place.now_us)
    if series not in known:
        raise OperationRefused(
            f"the series `{series}` is not muted; nothing was changed", param="name"
        )
    return enter_entry(place, MUTE + series, None, given.note)


VERBS = (anomalies_muted, anomalies_mute, anomalies_unmute)
