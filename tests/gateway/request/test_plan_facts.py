"""Residency of a request by all that tightens it."""

from types import SimpleNamespace

import pytest

from gateway.kinds.content_findings import ContentFindings
from gateway.request.plan_facts import may_leave, residency_of, session_key
from router.content import content_terms
from router.types import Residency

ANY, INSIDE = Residency.ANY, Residency.INTERNAL_ONLY
CARD = content_terms({"card": "keep_inside"})


def terms(content=(), residency=ANY):
    return SimpleNamespace(
        rule=SimpleNamespace(policy=SimpleNamespace(content=content, residency=residency))
    )


@pytest.mark.parametrize(
    ("route", "asked", "content", "found", "expected"),
    [
        (ANY, ANY, (), None, (ANY, "")), (INSIDE, ANY, (), None, (INSIDE, "")),
        (ANY, INSIDE, (), None, (INSIDE, "")), (ANY, ANY, CARD, None, (INSIDE, "unknown")),
        (ANY, ANY, CARD, ContentFindings(terms=CARD), (ANY, "")),
        (ANY, ANY, CARD, ContentFindings(kept_for="card", terms=CARD), (INSIDE, "card")),
    ],
)  # fmt: skip
def test_the_tightest_counts(route, asked, content, found, expected) -> None:
    request = SimpleNamespace(residency=asked, content=found)
    assert residency_of(SimpleNamespace(residency=route), request, terms(content)) == expected


def test_nothing_may_leave_that_one_of_them_keeps() -> None:
    free, asked = SimpleNamespace(residency=ANY), SimpleNamespace(residency=ANY)
    assert may_leave(free, asked, terms())
    assert not may_leave(free, asked, terms(residency=INSIDE))
    assert not may_leave(SimpleNamespace(residency=INSIDE), asked, terms())


def test_a_session_is_a_team_s_and_a_model_s() -> None:
    keys = {
        session_key(model, SimpleNamespace(team_id=team), "s") for model in "ab" for team in "xy"
    }
    assert len(keys) == 4
