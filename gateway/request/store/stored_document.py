"""A stored object with its decrypted content, as the gateway reads and writes it."""

from dataclasses import dataclass, replace
from typing import Any

from ledger.stored_progress import ObjectProgress


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

    @property
    def progress(self) -> ObjectProgress:
        """Return how it stands, as a look at its row alone finds it."""
        return ObjectProgress(self.status, self.lease_us, self.cancel_us)

    def with_content(self, content: Any) -> "StoredDocument":
        """Return the object with other content."""
        return replace(self, content=content)

    def status_at(self, now_us: int) -> str | None:
        """Return how it stands: cancelled once that is asked for, failed with its worker."""
        return self.progress.status_at(now_us)
