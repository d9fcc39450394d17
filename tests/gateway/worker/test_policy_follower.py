"""A running gateway follows the policies; what is under way keeps those that it began with."""

import time

import pytest
from sqlalchemy.exc import OperationalError

from gateway.config.settings import parse, version
from gateway.followers import FOLLOW_S
from gateway.policies.sets import rules_of
from gateway.request.active_policies import ActivePolicies
from gateway.worker.policy_follower import PolicyFollower
from ledger.policies import PolicySet, store_policies

CONFIG = parse("models: {chat: {targets: [openai/m]}}\nproviders: {openai: {}}", name="x")
CALM = "policies: [{name: calm, slo: {ttft_ms: 5000}}]"


def test_a_set_counts_within_its_time_and_not_for_what_is_under_way(stack, patiently) -> None:
    (before,) = stack.settled(stack.chat("api", max_tokens=4))
    body = {"model": "steady", "stream": True, "max_tokens": 30,
            "messages": [{"role": "user", "content": "hello"}]}  # fmt: skip
    long = stack.raw(body)  # 0.05 s a token
    patiently(lambda: stack.rows("model = 'steady'"))
    now_us = time.time_ns() // 1000
    store_policies(stack.database, PolicySet(1, CALM, now_us, "ann"))
    stored_s = time.monotonic()

    def follows() -> bool:
        (row,) = stack.settled(stack.chat("api", max_tokens=4))
        return row["policy"] == "calm"

    while not follows():
        assert time.monotonic() - stored_s < FOLLOW_S
    answer = stack.chat("api", max_tokens=4)
    (row,) = stack.settled(answer)
    assert answer.headers["x-breakeven-policy"] == "calm"
    assert row["policy_version"] != before["policy_version"]
    (slow,) = patiently(lambda: stack.rows("model = 'steady' AND settled_us IS NOT NULL"))
    long.close()
    assert slow["policy_version"] == before["policy_version"]
    store_policies(stack.database, PolicySet(2, None, now_us, "ann"))

    def is_back() -> bool:
        (row,) = stack.settled(stack.chat("api", max_tokens=4))
        return row["policy_version"] == before["policy_version"]

    patiently(is_back)


@pytest.fixture
def following():
    """A worker's view, and the list that it reads the newest set from."""
    stored, in_force = [], ActivePolicies(CONFIG, version(CONFIG))

    def read() -> PolicySet | None:
        answer = stored.pop(0) if stored else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    return stored, in_force, PolicyFollower(CONFIG, read, in_force)


async def test_a_new_set_is_used_whole(following) -> None:
    stored, in_force, repolicing = following
    held = in_force.hold(lambda settings, _: [rule.name for rule in settings.policies])
    new = PolicySet(1, CALM, 0, "ann")
    stored += [new, new]
    assert await repolicing.follow(9)
    assert held.value == ["calm"]
    assert in_force.version == rules_of(CONFIG, new).version
    assert not await repolicing.follow(9)  # it is known


async def test_a_set_that_does_not_fit_is_told_once_and_left_out(following, caplog) -> None:
    stored, in_force, repolicing = following
    stored.append(PolicySet(1, "policies: [{name: a, match: {models: [no]}}]", 0, "ann"))
    assert not await repolicing.follow(9)
    assert in_force.settings is CONFIG
    (told,) = caplog.messages
    assert "a policy set does not fit and is not used set=1" in told


async def test_with_the_database_away_the_known_ones_stay_until_it_is_back(following) -> None:
    stored, in_force, repolicing = following
    stored += [OperationalError("", {}, Exception("away")), PolicySet(1, CALM, 0, "ann")]
    assert not await repolicing.follow(9)
    assert in_force.settings is CONFIG
    assert await repolicing.follow(9)
