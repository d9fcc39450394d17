"""The finds of detectors in a request: kinds and counts, never a text."""

import msgspec

from router.content import ContentTerms

LONGEST_LABEL = 400


class ContentFindings(msgspec.Struct, frozen=True):
    """`found`: kinds with their counts. `actions`: what was done. `kept_for`: what keeps it in."""

    found: tuple[tuple[str, int], ...] = ()
    actions: tuple[str, ...] = ()
    kept_for: str = ""
    terms: ContentTerms = ()  # of the policy that it was inspected under

    @property
    def is_clean(self) -> bool:
        """Return whether nothing was found or done, so that the request is what its client sent."""
        return not (self.found or self.actions or self.kept_for)

    @property
    def label(self) -> str:
        """Return kinds and counts as headers and rows have them: `card=2 email=1`."""
        return " ".join(f"{kind}={count}" for kind, count in self.found)[:LONGEST_LABEL]

    @property
    def row(self) -> str:
        """Return what headers and rows have: `card=2 email=1; mask`; `nothing` of a clean one."""
        label = self.label or "nothing"
        return f"{label}; {' '.join(self.actions)}" if self.actions else label
