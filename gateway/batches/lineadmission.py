"""Budgets for lines: only money that is spent refuses one; money that is held frees itself.

A batch's own lines hold their bounds beside each other, and so fill a budget that has room for all
of them one after the other. A line without room among the holds waits, as one without an engine.
"""

from collections.abc import Sequence

from gateway.admission import Admission
from gateway.errors import RequestError
from ledger.budgets.desk import Refusal
from ledger.journals.records import Hold

RETRY_AFTER_S = 1.0


class LineAdmission(Admission):
    """Over the same desk as everybody's."""

    async def hold(
        self, attempt_id: str, scopes: Sequence[str], bound_pusd: int
    ) -> tuple[Hold, ...] | Refusal:
        """The refusal where what is left unspent is less than the bound; else raises `not_idle`."""
        held = await super().hold(attempt_id, scopes, bound_pusd)
        if not isinstance(held, Refusal):
            return held
        room = self.desk.room(scopes)
        if room is not None and room < bound_pusd:
            return held
        message = f"Budget `{held.scope}` has room for this line once others have ended."
        raise RequestError("not_idle", message, retry_after_s=RETRY_AFTER_S)
