"""Progress of a stored object that is being made, read without its content."""

from typing import NamedTuple

from sqlalchemy import Engine, select

from ledger.database import read_row
from ledger.orm.stored import StoredObjectRow
from ledger.stored_objects import CANCELLED, UNFINISHED


class ObjectProgress(NamedTuple):
    """State of a stored object. Its worker is known to live until `lease_us`.

    `cancel_us` is the time of the request to cancel; nothing is stored for the object after it.
    """

    status: str | None
    lease_us: int | None
    cancel_us: int | None

    def status_at(self, now_us: int) -> str | None:
        """Return the status: cancelled after a request to cancel, failed if its worker is gone."""
        if self.status not in UNFINISHED:
            return self.status
        if self.cancel_us is not None:
            return CANCELLED
        left = self.lease_us is not None and self.lease_us < now_us
        return "failed" if left else self.status

    def is_made_at(self, now_us: int) -> bool:
        """Return whether a worker is still making the object."""
        return self.status_at(now_us) in UNFINISHED


def find_progress(
    engine: Engine, team_id: str, object_id: str, *, now_us: int
) -> ObjectProgress | None:
    """Return the progress of a team's object, None if it does not exist or has expired."""
    row_of = StoredObjectRow
    query = select(row_of.status, row_of.lease_us, row_of.cancel_us).where(
        row_of.team_id == team_id, row_of.id == object_id, row_of.expires_us > now_us
    )
    row = read_row(engine, query)
    return None if row is None else ObjectProgress(*row)
