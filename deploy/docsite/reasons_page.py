"""The page `reference/reasons.md`: every reason of a decision."""

from typing import Final

from deploy.docsite.markdown import code, head, table
from gateway.errors import TABLE
from router.reasons import REASONS, Outlook, Overflow, Reason

_OUTLOOKS: Final = {
    Outlook.FEASIBLE: "now",
    Outlook.PERMANENT: "never, unless the request or the configuration changes",
    Outlook.FULL: "when the target has room",
    Outlook.AWAY: "when the target serves again",
    Outlook.LATER: "when a budget resets or an engine is idle",
}
_OVERFLOWS: Final = {
    Overflow.LACK_OF_CAPACITY: "lack of capacity",
    Overflow.AWAY: "engines away",
    Overflow.CANNOT_SERVE: "engines cannot serve it",
    Overflow.BY_CHOICE: "choice",
}


def text() -> str:
    """Return the text of the page."""
    return "\n\n".join([
        head(
            "Reasons of decisions",
            "Every candidate of a decision has one of these reasons. The header "
            "`x-breakeven-decision`, the label `reason` of metrics, the ledger's column and "
            "`breakeven policy explain` carry the same words.",
            "*Can serve* says when a target with this reason may serve the request. *Spill counted "
            "as* is how the dashboard groups requests that an API served because of it. *Client "
            "gets* is the advice of the error where no target can ever serve the request, behind "
            "the error's `code` where it has one; its message names target and reason.",
        ),
        table(
            ("reason", "meaning", "can serve", "spill counted as", "client gets"),
            (_row(reason) for reason in REASONS),
        ),
    ]) + "\n"  # fmt: skip


def _row(reason: Reason) -> tuple[str, ...]:
    traits = REASONS[reason]
    remedy = traits.remedy
    told = "" if remedy is None else remedy.advice
    if remedy is not None and (error_code := TABLE[remedy.error].code):
        told = f"{code(error_code)}: {remedy.advice}" if remedy.advice else code(error_code)
    return (
        code(reason.value), traits.explained or traits.sentence, _OUTLOOKS[traits.outlook],
        _OVERFLOWS[traits.overflow], told,
    )  # fmt: skip
