"""A target's own count of a prompt: asked where it has one, and never a failure."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from backends.errors import UpstreamUnreachable
from gateway.clock import Clock
from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.native_request import NativeRequest
from gateway.request.target_count import TargetCount, count_at_target
from router.reasons import Reason

NATIVE = NativeRequest(decode_members(b'{"model":"ours","messages":[]}'), headers={"a": "b"})


class Exchange:
    headers: dict[str, str] = {}  # noqa: RUF012  (of every answer)

    def __init__(self, body: bytes, status: int) -> None:
        self.body, self.status = body, status

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.body

    async def aclose(self) -> None:
        """Nothing is open."""


class Target:
    """A target and its wire: `answer` is what it says, or why it does not."""

    name, upstream_model, tells_users = "claude/m", "m", False

    def __init__(self, answer: Any, *, speaks: bool = True) -> None:
        self.answer, self.speaks_messages, self.backend = answer, speaks, self
        self.asked: list[Any] = []

    async def open(self, call: Any) -> Exchange:
        self.asked.append(call)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Exchange(*self.answer)


def plans(target: Target | None, reason: Reason = Reason.CHEAPEST) -> Any:
    order = () if target is None else ("first",)
    step = SimpleNamespace(frozen=SimpleNamespace(target=target))
    decision = SimpleNamespace(order=order, reason=reason)
    plan = SimpleNamespace(decision=decision, step=lambda _: step)
    return SimpleNamespace(plan=lambda *_, **__: plan)


async def count(target: Target | None, native: NativeRequest | None = NATIVE, **plan: Any) -> Any:
    asked = SimpleNamespace(native=native)
    return await count_at_target(plans(target, **plan), asked, object(), "req_1", Clock())


async def test_the_first_choice_counts() -> None:
    target = Target((b'{"input_tokens": 7, "more": 1}', 200))
    assert await count(target) == TargetCount(7, "claude/m")
    (call,) = target.asked
    assert (call.path, call.body) == ("/messages/count_tokens", b'{"model":"m","messages":[]}')
    assert call.headers == {"x-request-id": "req_1.0", "a": "b"}


@pytest.mark.parametrize(
    "answer",
    [(b"{}", 200), (b"no", 200), (b'{"input_tokens": 7}', 404), UpstreamUnreachable("away")],
)
async def test_whoever_does_not_tell_is_no_failure(answer: Any) -> None:
    assert await count(Target(answer)) is None


async def test_nobody_is_asked_that_could_not_serve_or_has_no_count() -> None:
    silent = Target((b'{"input_tokens": 7}', 200), speaks=False)
    assert await count(silent) is None
    assert await count(silent, native=None) is None
    assert await count(None, reason=Reason.BUDGET) is None
    assert silent.asked == []


async def test_what_no_target_has_a_form_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = RequestError("unsupported", "no form", param="tools[0]")
    monkeypatch.setattr("gateway.request.target_count.infeasible", lambda _: refusal)
    alone = NativeRequest({}, refusal=refusal)
    with pytest.raises(RequestError) as raised:
        await count(None, native=alone, reason=Reason.FEATURE)
    assert raised.value is refusal
    assert await count(None, native=NATIVE, reason=Reason.FEATURE) is None
