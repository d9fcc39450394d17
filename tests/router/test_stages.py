"""When a later stage's turn comes: by the causes of those before, whatever their order."""

from itertools import chain, combinations
from types import SimpleNamespace

import pytest

from router.reasons import REASONS, Outlook, Reason
from router.stages import StageCause, cause_of, causes_of, is_due, rejections_of
from router.types import Decision, InfeasibleAction, Verdict

ANY, FAILURE, CONTEXT, POLICY = StageCause
CAUSES = [set(some) for some in chain(*(combinations(StageCause, n) for n in range(5)))]


@pytest.mark.parametrize("causes", CAUSES, ids=lambda some: "+".join(sorted(some)) or "none")
def test_a_stage_waits_for_its_own_cause_and_one_without_for_all(causes) -> None:
    assert is_due({ANY}, causes)
    for after in CAUSES:
        assert is_due(after, causes) is (ANY in after or bool(after & causes))


def test_every_reason_has_a_cause_and_what_is_known_to_fail_is_a_failure() -> None:
    found = {reason: cause_of(reason) for reason in Reason}
    assert found[Reason.CONTEXT] is CONTEXT
    assert POLICY not in found.values()  # nobody knows before it was asked
    away = {reason for reason, traits in REASONS.items() if traits.outlook is Outlook.AWAY}
    failing = {reason for reason, cause in found.items() if cause is FAILURE}
    assert failing == away | {Reason.RATE_LIMIT}
    for reason in (Reason.TTFT, Reason.KV_HEADROOM, Reason.BUDGET, Reason.RESIDENCY):
        assert found[reason] is ANY


def test_only_who_cannot_serve_has_a_cause() -> None:
    named = SimpleNamespace(name="a/m")
    good, bad = Verdict(named, True, Reason.CHEAPEST), Verdict(named, False, Reason.CIRCUIT_OPEN)
    made = Decision("p", (good,), (good, bad), Reason.CHEAPEST, InfeasibleAction.REJECT)
    assert causes_of(made.verdicts) == {FAILURE}
    assert rejections_of([made, made]) == (("a/m", Reason.CIRCUIT_OPEN),) * 2
