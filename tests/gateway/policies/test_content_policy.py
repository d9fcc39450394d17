"""Whether a request that was or was not inspected may leave under a policy."""

from types import SimpleNamespace

import pytest

from gateway.kinds.content_findings import ContentFindings
from gateway.policies.content_policy import kept_kinds
from router.content import content_terms

CARD, BOTH = content_terms({"card": "mask"}), content_terms({"card": "mask", "ip": "refuse"})


@pytest.mark.parametrize(
    ("content", "terms", "kept"),
    [
        (None, (), ""), (None, CARD, "unknown"),
        (ContentFindings(terms=CARD), CARD, ""), (ContentFindings(terms=BOTH), CARD, ""),
        (ContentFindings(terms=CARD), BOTH, "unknown"),
        (ContentFindings(kept_for="card", terms=CARD), (), "card"),
        (ContentFindings(kept_for="card", terms=CARD), BOTH, "card"),
    ],
)  # fmt: skip
def test_what_nobody_looked_for_stays(content, terms, kept) -> None:
    assert kept_kinds(SimpleNamespace(content=content), terms) == kept
