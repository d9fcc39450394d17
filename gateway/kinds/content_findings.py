"""Findings of content detectors in a request: kinds and counts, without any text."""

import msgspec

from router.content import ContentTerms

LONGEST_LABEL = 400


class ContentFindings(msgspec.Struct, frozen=True):
    """Findings by kind with counts, the actions taken, and the kinds that keep it inside."""

    found: tuple[tuple[str, int], ...] = ()
    actions: tuple[str, ...] = ()
    kept_for: str = ""
    terms: ContentTerms = ()  # of the policy under which it was inspected

    @property
    def is_clean(self) -> bool:
        """Return whether nothing was found or changed."""
        return not (self.found or self.actions or self.kept_for)

    @property
    def label(self) -> str:
        """Return kinds and counts as in headers and rows: `card=2 email=1`."""
        return " ".join(f"{kind}={count}" for kind, count in self.found)[:LONGEST_LABEL]

    @property
    def row(self) -> str:
        """Return the value for headers and rows: `card=2 email=1; mask`, or `nothing`."""
        label = self.label or "nothing"
        return f"{label}; {' '.join(self.actions)}" if self.actions else label
