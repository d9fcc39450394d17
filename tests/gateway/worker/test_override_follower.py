"""Overrides on a running host: they count for the next request, and end by themselves."""

from types import SimpleNamespace

import pytest
from sqlalchemy.exc import OperationalError

from gateway.config.settings import Settings
from gateway.request.active_policies import ActivePolicies
from gateway.worker.override_follower import OverrideFollower
from ledger.overrides import API, DISABLED, NOTHING, OWN, Override, store_override


def say(stack, subject: str, says: str, until_us: int | None = None) -> None:
    store_override(stack.database, Override(0, subject, says, until_us, 1, "ann", "testing"))


def backend(stack, model: str = "chat") -> str:
    answer = stack.chat(model, max_tokens=3)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-breakeven-backend"]


def test_a_disabled_target_gets_no_new_request_until_it_is_enabled(stack, patiently) -> None:
    assert backend(stack) == "pool:main/0"
    say(stack, "target:pool:main", DISABLED)
    patiently(lambda: backend(stack) == "alpha/m")
    answer = stack.chat("chat", max_tokens=3)
    (row,) = stack.settled(answer)
    assert row["spill_reason"] == "disabled"
    say(stack, "target:pool:main", NOTHING)
    patiently(lambda: backend(stack) == "pool:main/0")


def test_what_runs_there_goes_on(stack, patiently) -> None:
    body = {"model": "own", "messages": [{"role": "user", "content": "x"}], "stream": True,
            "max_tokens": 2000, "ignore_eos": True}  # fmt: skip
    connection = stack.raw(body)
    first = connection.recv(65536)
    assert b" 200 " in first
    say(stack, "target:pool:main/0", DISABLED)
    refused = patiently(
        lambda: (answer := stack.chat("own", max_tokens=3)).status_code == 503 and answer
    )
    assert refused.json()["error"]["code"] == "unavailable"
    assert "(disabled)" in refused.json()["error"]["message"]
    assert "retry-after" in refused.headers
    text = first
    while b"[DONE]" not in text[-4096:]:
        part = connection.recv(1 << 20)
        assert part, text[-300:]
        text += part
    connection.close()
    say(stack, "target:pool:main/0", NOTHING)
    patiently(lambda: stack.chat("own", max_tokens=3).status_code == 200)


def test_a_forced_route_ends_by_itself(stack, patiently) -> None:
    until_us = stack.app.hot._clock.wall_us() + 3_000_000
    say(stack, "model:*", API, until_us)
    patiently(lambda: backend(stack) == "alpha/m")
    patiently(lambda: backend(stack) == "pool:main/0")
    assert stack.app.hot._clock.wall_us() >= until_us


def test_what_is_internal_only_never_leaves_for_it(stack, patiently) -> None:
    say(stack, "model:*", API)
    patiently(lambda: backend(stack) == "alpha/m")
    before = len(stack.entries("alpha"))
    key = stack.key("inside", residency="internal_only")
    answer = stack.chat("chat", token=key.token, max_tokens=3)
    assert answer.status_code == 503
    assert len(stack.entries("alpha")) == before
    say(stack, "model:*", NOTHING)
    patiently(lambda: backend(stack) == "pool:main/0")


class Books:
    def __init__(self) -> None:
        self.kept: list[Override] = []
        self.away = False

    def __call__(self) -> list[Override]:
        if self.away:
            raise OperationalError("select", {}, Exception("gone"))
        return list(self.kept)


def one(number: int, until_us: int | None = None) -> Override:
    return Override(number, f"target:{number}", DISABLED, until_us, 0, "ann")


@pytest.fixture
def followed():
    books, now = Books(), SimpleNamespace(us=0)
    in_force = ActivePolicies(Settings(), "1")
    made = in_force.hold(lambda _settings, _version: [held.number for held in in_force.overrides])
    return books, now, in_force, made, OverrideFollower(books, in_force, lambda: now.us)


async def test_it_reads_what_is_new_and_drops_what_is_over(followed) -> None:
    books, now, _, made, overruling = followed
    assert made.value == []
    books.kept = [one(1), one(2, until_us=50)]
    await overruling.follow(2)
    assert made.value == [1, 2]
    now.us = 50
    await overruling.follow(2)
    assert made.value == [1]


async def test_while_the_ledger_is_away_what_stands_goes_on(followed) -> None:
    books, _, _, made, overruling = followed
    books.kept = [one(1)]
    await overruling.follow(1)
    books.away, books.kept = True, []
    await overruling.follow(2)
    assert made.value == [1]
    assert overruling.known == 1
    books.away = False
    await overruling.follow(2)
    assert made.value == []


def test_what_cannot_be_made_leaves_all_as_it_was(followed) -> None:
    _, _, in_force, made, _ = followed

    def refuse(_settings: Settings, _version: str) -> None:
        if in_force.overrides:
            raise LookupError

    in_force.hold(refuse)
    with pytest.raises(LookupError):
        in_force.overrule((one(1),))
    assert in_force.overrides == ()
    assert made.value == []


def test_own_alone_is_the_other_way_round(stack, patiently) -> None:
    say(stack, "model:pair", OWN)
    patiently(lambda: stack.chat("pair", max_tokens=3).status_code == 503)
    assert backend(stack) == "pool:main/0"
    say(stack, "model:pair", NOTHING)
    patiently(lambda: stack.chat("pair", max_tokens=3).status_code == 200)
