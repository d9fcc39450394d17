"""What is asked in place of a request that nobody can serve, and when nothing is."""

from types import SimpleNamespace
from typing import Any

import pytest

from gateway.request.lesser_requests import ask_less
from router.reasons import Reason


def plan(*reasons: Reason | None, order: tuple[Any, ...] = (), **asked: Any) -> Any:
    verdicts = [
        SimpleNamespace(reason=reason, candidate=SimpleNamespace(context_tokens=100 * (place + 1)))
        for place, reason in enumerate(reasons)
    ]
    given = {"instead": None, "shorten": None, "prompt_bytes": 4000, **asked}
    request = SimpleNamespace(
        prompt_tokens_bound=4000, prompt_tokens=1000, context_margin=1.1, max_tokens=None
    )
    decision = SimpleNamespace(order=order, verdicts=verdicts)
    return SimpleNamespace(asked=SimpleNamespace(**given), decision=decision, request=request)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (plan(Reason.FEATURE, instead="less"), "less"),
        (plan(Reason.FEATURE, Reason.CONTEXT, instead="less", shorten=len), "less"),
        (plan(None, Reason.FEATURE, order=("somebody",), instead="less"), None),
        (plan(Reason.BUDGET, instead="less", shorten=lambda _: "short"), None),
        (plan(Reason.CONTEXT, instead="less"), None),
        (plan(Reason.CONTEXT, shorten=lambda _: None), None),
        (plan(Reason.FEATURE, shorten=lambda _: "short"), None),
    ],
)
def test_less_is_asked_for_what_it_helps(given: Any, expected: str | None) -> None:
    assert ask_less(given) == expected


def test_what_is_too_much_for_the_largest_context_goes() -> None:
    asked: Any = ask_less(plan(Reason.CONTEXT, Reason.CONTEXT, shorten=lambda much: much))
    assert asked == round((1 - 199 / 1100) * 4000)
