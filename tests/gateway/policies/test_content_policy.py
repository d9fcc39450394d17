"""Whether a request that was or was not inspected may leave under a policy."""

from types import SimpleNamespace

import pytest

from gateway.kinds.content_findings import ContentFindings
from gateway.policies.content_policy import apply_content, kept_kinds, recorded_kinds
from router.content import content_terms
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.types import OutputMoments, Residency, RoutingRequest

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


REQUEST = RoutingRequest(RequestKind.CHAT, "m", 1, 1, 1, OutputMoments(1, 1.0, 1.0, 1.0))
TARGETS = [SimpleNamespace(name="a/m"), SimpleNamespace(name="pool:main/0")]
KEEP, MASK, REFUSE = (content_terms({"card": word}) for word in ("keep_inside", "mask", "refuse"))


def test_a_row_has_its_kinds() -> None:
    assert recorded_kinds("card=2 email=1; mask") == {"card", "email"}
    assert recorded_kinds("nothing") == recorded_kinds(None) == frozenset()


@pytest.mark.parametrize(
    ("row", "terms"), [("card=1", MASK), ("email=1", KEEP), (None, KEEP), ("card=1", ())]
)
def test_what_is_masked_or_was_not_found_is_routed_as_before(row, terms) -> None:
    assert apply_content(REQUEST, row, terms, TARGETS) is REQUEST


def test_what_is_kept_stays_inside_and_what_is_refused_goes_nowhere() -> None:
    kept = apply_content(REQUEST, "card=1", KEEP, TARGETS)
    assert (kept.residency, kept.kept_for) == (Residency.INTERNAL_ONLY, "card")
    refused = apply_content(REQUEST, "card=1", REFUSE, TARGETS)
    assert {name: reason for name, (reason, _) in refused.barred.items()} == {
        "a/m": Reason.CONTENT, "pool:main/0": Reason.CONTENT,
    }  # fmt: skip
