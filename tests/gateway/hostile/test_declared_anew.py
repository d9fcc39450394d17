"""Hard budgets that are declared, lowered or struck while requests and batches are under way."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_client_tricks import ASK, CHAT, batch_of, ended
from test_last_cents import Gate

from gateway.config.declarations import budgets
from ledger.declared import BudgetSpec, declare

LINES = 40


class Declarations:
    """What a reload of the file does to budgets: those of the test beside the host's own."""

    def __init__(self, hostile) -> None:
        self.stack, self._patiently = hostile.stack, hostile.patiently

    def apply(self, **limits_pusd: int) -> None:
        """Each team's limit of a day, in pico-USD, once workers know of it."""
        stack = self.stack
        added = [
            BudgetSpec(f"team:{team}", "day", limit, hard=True, timezone="UTC")
            for team, limit in limits_pusd.items()
        ]
        declare(
            stack.database, contracts=(), budgets=[*budgets(stack.settings), *added],
            config=("declared", "declared"), at_us=time.time_ns() // 1000,
        )  # fmt: skip
        desk = stack.app.hot._dispatcher.admission.desk

        def known() -> bool:
            limits = {team: desk.tightest((f"team:{team}",)) for team in limits_pusd}
            return all(limits[team].limit_pusd == limits_pusd[team] for team in limits)

        self._patiently(known)


@pytest.fixture
def declared(hostile) -> Iterator[Declarations]:
    made = Declarations(hostile)
    yield made
    made.apply()


def wait_at_gate(hostile, name: str, count: int) -> Gate:
    gate = Gate()
    hostile.provider.plays[name] = [gate] * count
    return gate


def open_gate(hostile, gate: Gate) -> None:
    hostile.provider.loop.call_soon_threadsafe(gate.opened.set)


def test_a_budget_that_finds_a_batch_under_way_refuses_none_of_its_lines(
    hostile, runner, declared
) -> None:
    """All of it fits by its cost, and what is out when it is declared does not by its bound."""
    team, gate = "declared", wait_at_gate(hostile, "third", LINES)
    path = batch_of(hostile, team, "third", LINES)
    hostile.patiently(lambda: gate.waiting > LINES // 2)
    seen = hostile.patiently(lambda: hostile.stack.rows("team_id = :team", team=team)[LINES // 2 :])
    bound_pusd = seen[0]["bound_pusd"]
    declared.apply(**{team: bound_pusd * LINES // 2})
    open_gate(hostile, gate)
    assert ended(hostile, team, path)["request_counts"]["completed"] == LINES
    rows = hostile.judged(team)
    assert sum(row["cost_pusd"] for row in rows) <= bound_pusd * LINES // 2


def test_who_finds_only_holds_in_the_way_is_told_to_come_again(hostile, declared) -> None:
    """Red before: it was told that there is no room until the next day, and not to retry."""
    team, count = "declared_live", 4
    gate, token = wait_at_gate(hostile, "first", count), hostile.token("declared_live")
    with ThreadPoolExecutor(count) as pool:
        sent = [pool.submit(hostile.stack.post, CHAT, ASK, token) for _ in range(count)]
        hostile.patiently(lambda: gate.waiting == count)
        (first, *_) = hostile.patiently(lambda: hostile.stack.rows("team_id = :team", team=team))
        declared.apply(**{team: first["bound_pusd"] * count})
        told = hostile.post(team, CHAT, ASK)
        open_gate(hostile, gate)
        assert [answer.result().status_code for answer in sent] == [200] * count
    assert (told.status_code, told.json()["error"]["code"]) == (429, "budget_exceeded")
    assert "once others have ended" in told.json()["error"]["message"]
    assert (told.headers["retry-after"], told.headers.get("x-should-retry")) == ("1", None)
    hostile.rows(team)  # all of it is in the books
    while (last := hostile.post(team, CHAT, ASK)).status_code == 200:
        hostile.rows(team)
    assert (last.headers["x-should-retry"], "until it resets" in last.text) == ("false", True)
    assert len(hostile.judged(team)) > count
