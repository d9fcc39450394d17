"""A stored object with its decrypted content, as the gateway reads and writes it."""

from dataclasses import dataclass, replace
from typing import Any

from ledger.stored_objects import UNFINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A stored object; `content` is JSON by its kind.

    For a `response` it is `{"response": ..., "input": [items]}`, for a `chat` `{"completion": ...,
    "messages": [...]}`, for a `conversation` and an `item` the object. `parent` is the answer that
    a response continues, or the conversation of an item.
    """

    team_id: str
    id: str
    kind: str
    content: Any
    created_us: int
    expires_us: int
    parent: str | None = None
    residency: str = "any"
    status: str | None = None
    lease_us: int | None = None
    cancel_us: int | None = None

    @property
    def owner(self) -> tuple[str, ...]:
        """Return the names that its encryption is bound to."""
        return self.team_id, self.id, self.kind, self.residency

    def with_content(self, content: Any) -> "StoredDocument":
        """Return the object with other content."""
        return replace(self, content=content)

    def status_at(self, now_us: int) -> str | None:
        """Return the status: cancelled once that is requested, failed if its worker is gone."""
        if self.status not in UNFINISHED:
            return self.status
        if self.cancel_us is not None:
            return "cancelled"
        left = self.lease_us is not None and self.lease_us < now_us
        return "failed" if left else self.status
