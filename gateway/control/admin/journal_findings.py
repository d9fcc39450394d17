"""Operations on journal findings: where records may be missing, and acknowledgements."""

from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, OPERATIONS
from gateway.control.admin.verb import Note, OperationContext, OperationRefused, list_document, verb
from ledger.money import usd_exact
from ledger.writing.findings import OpenFinding, acknowledge, open_findings

ACKNOWLEDGED_MOST = 1_000  # places of one order

_Place = Annotated[str, msgspec.Meta(min_length=1, max_length=400, description="as listed")]


class ListFindingsInput(msgspec.Struct, forbid_unknown_fields=True):
    journal: Annotated[str | None, msgspec.Meta(description="this journal alone")] = None


class AcknowledgeInput(msgspec.Struct, forbid_unknown_fields=True):
    places: Annotated[
        list[_Place], msgspec.Meta(max_length=ACKNOWLEDGED_MOST, description="of findings")
    ] = []
    whole: Annotated[bool, msgspec.Meta(description="every finding that is open")] = False
    note: Note | None = None


@verb(
    "GET /journal_findings",
    OPERATIONS,
    "ledger findings",
    "Places of journals where rows may lack, and quarantined records, until they are acknowledged",
    ListFindingsInput,
)
def findings_list(place: OperationContext, given: ListFindingsInput) -> dict[str, Any]:
    with place.ledger.connect() as connection:
        found = open_findings(connection)
    wanted = [each for each in found if _is_of(each, given.journal)]
    return list_document([_document(finding) for finding in wanted])


@verb(
    "POST /journal_findings/acknowledge",
    OPERATIONS + APPLY,
    "ledger acknowledge",
    "Say that findings in journals have been seen: checks and alerts pass over them",
    AcknowledgeInput,
)
def findings_acknowledge(place: OperationContext, given: AcknowledgeInput) -> dict[str, Any]:
    """Acknowledge all named findings or none. They stay in the ledger, and each is recorded."""
    with place.ledger.begin() as connection:
        known = {finding.place for finding in open_findings(connection)}
        missing = sorted({*given.places} - known)
        if missing:
            words = f"no open finding at {missing[0]}; `breakeven ledger findings`"
            raise OperationRefused(words, param="places")
        if not given.places and not given.whole:
            raise OperationRefused("name the places of findings, or use --all", param="places")
        seen = known if given.whole else {*given.places}
        acknowledge(connection, seen, by=place.by, note=given.note, at_us=place.now_us)
    return {"acknowledged": sorted(seen), "by": place.by}


def _is_of(finding: OpenFinding, journal: str | None) -> bool:
    return journal is None or finding.place.rsplit(":", 2)[0] == journal


def _document(finding: OpenFinding) -> dict[str, Any]:
    found = finding.finding
    at_most = None if found is None else found.bound.at_most_pusd
    return {
        "place": finding.place,
        "host": finding.host,
        "at_us": finding.at_us,
        "text": finding.text,
        "after": None if found is None else found.after,
        "missing": None if found is None else found.missing,
        "at_most_usd": None if at_most is None else usd_exact(at_most),
        "within_budgets_usd": None if found is None else usd_exact(found.bound.budgets_pusd),
    }


VERBS = (findings_list, findings_acknowledge)
