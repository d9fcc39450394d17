"""Recorded kinds under another policy."""

from types import SimpleNamespace

import pytest

from gateway.whatif.replay_content import apply_content, recorded_kinds
from router.content import content_terms
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.types import OutputMoments, Residency, RoutingRequest

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
