"""How a stored object that is still made stands, without what it says."""

from typing import NamedTuple

from sqlalchemy import Engine, select

from ledger.database import read_row
from ledger.orm.stored import StoredObjectRow
from ledger.stored_objects import CANCELLED, UNFINISHED


class ObjectProgress(NamedTuple):
    """The state of an object. `lease_us`: until then its worker is known to live.

    `cancel_us`: when its end was asked for; from then on nothing else is stored of it.
    """

    status: str | None
    lease_us: int | None
    cancel_us: int | None

    def status_at(self, now_us: int) -> str | None:
        """Return how it stands: cancelled once that is asked for, failed with its worker."""
        if self.status not in UNFINISHED:
            return self.status
        if self.cancel_us is not None:
            return CANCELLED
        left = self.lease_us is not None and self.lease_us < now_us
        return "failed" if left else self.status

    def is_made_at(self, now_us: int) -> bool:
        """Whether a worker still makes it."""
        return self.status_at(now_us) in UNFINISHED


def find_progress(
    engine: Engine, team_id: str, object_id: str, *, now_us: int
) -> ObjectProgress | None:
    """Return how the team's object of this id stands; None where there is none."""
    row_of = StoredObjectRow
    query = select(row_of.status, row_of.lease_us, row_of.cancel_us).where(
        row_of.team_id == team_id, row_of.id == object_id, row_of.expires_us > now_us
    )
    row = read_row(engine, query)
    return None if row is None else ObjectProgress(*row)
