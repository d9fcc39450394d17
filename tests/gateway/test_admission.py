"""Hard budgets: refused once and by name, never exceeded, and no money stays held."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest
from sqlalchemy import text

from gateway.admission import Admission, scopes
from gateway.errors import RequestError
from ledger.desk import DeskAway

# A request for 100 tokens in all is bounded by about 66 millionths of a dollar at this price.
TIGHT = [{"scope": "team:search", "usd": "0.002", "period": "day", "hard": True}]


@pytest.fixture(scope="module")
def tight(tmp_path_factory, running):
    with running(tmp_path_factory.mktemp("host"), budgets=TIGHT) as stack:
        yield stack


def ask(stack, _number: int = 0) -> httpx.Response:
    return stack.chat("api", max_tokens=100)


def spent(stack) -> int:
    return sum(row["cost_pusd"] or 0 for row in stack.rows())


def test_a_budget_is_used_up_and_never_exceeded_by_a_crowd(tight, patiently) -> None:
    with ThreadPoolExecutor(24) as crowd:
        answers = list(crowd.map(lambda number: ask(tight, number), range(120)))
    statuses = {answer.status_code for answer in answers}
    assert statuses == {200, 429}
    limit = 2 * 10**9
    patiently(lambda: all(row["settled_us"] for row in tight.rows()))
    assert spent(tight) <= limit
    bound = max(row["bound_pusd"] for row in tight.rows())
    for _ in range(20):  # alone, each asks in turn until there is truly no room for a bound
        if ask(tight).status_code == 429:
            break
    patiently(lambda: all(row["settled_us"] for row in tight.rows()))
    assert limit - 2 * bound < spent(tight) <= limit
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["x-should-retry"] == "false"
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("insufficient_quota", "budget_exceeded")
    assert "team:search" in error["message"]
    assert "UTC" in error["message"]
    with tight.reader.connect() as connection:
        query = text("SELECT DISTINCT reason, http_status, scope FROM refusals")
        (noted,) = connection.execute(query).all()
    assert tuple(noted[:2]) == ("budget", 429)
    assert noted[2].startswith("team:search")
    desk = tight.app.hot._dispatcher.admission._desk
    assert [piece.held_pusd for piece in desk._slices.values() if piece.held_pusd] == []


def test_a_soft_budget_lets_the_same_crowd_through(run_stack, patiently) -> None:
    """The control: what kept the crowd below the limit was the hold."""
    with run_stack(budgets=[{**TIGHT[0], "hard": False}]) as stack:
        with ThreadPoolExecutor(24) as crowd:
            answers = list(crowd.map(lambda number: ask(stack, number), range(120)))
        assert {answer.status_code for answer in answers} == {200}
        patiently(lambda: all(row["settled_us"] for row in stack.rows()))
        assert spent(stack) > 2 * 10**9


def test_another_team_is_not_refused(tight) -> None:
    other = tight.key("other", team="ads").token
    assert tight.chat("api", other, max_tokens=100).status_code == 200


def test_an_own_engine_serves_what_a_dear_api_may_not(run_stack) -> None:
    """The budget of the provider is spent; the request goes where it fits."""
    budgets = [{"scope": "provider:alpha", "usd": 0, "period": "day", "hard": True}]
    with run_stack(budgets=budgets) as stack:
        assert stack.chat("chat", max_tokens=5).headers["x-breakeven-backend"] == "pool:main/0"
        refused = stack.chat("api", max_tokens=5)
        assert refused.status_code == 429
        assert "provider:alpha" in refused.json()["error"]["message"]


def test_an_open_end_is_capped_only_where_money_is_held(run_stack) -> None:
    budgets = [{"scope": "provider:alpha", "usd": 1, "period": "day", "hard": True}]
    soft = [{"scope": "provider:beta", "usd": 1, "period": "day", "hard": False}]
    models = {name: {"targets": [f"{name}/m"]} for name in ("alpha", "beta")}
    with run_stack(budgets=[*budgets, *soft], models=models) as stack:
        bodies: list[bytes] = []
        dispatcher = stack.app.hot._dispatcher
        backends = dispatcher.planner._fleet._api_backends

        def record(backend):
            send = backend.open

            async def open_(call):
                bodies.append(call.body)
                return await send(call)

            backend.open = open_

        for name in models:
            record(backends[name])
            assert stack.chat(name, stop="e").status_code == 200
        assert b'"max_tokens":4096' in bodies[0]
        assert b"max_tokens" not in bodies[1]


def test_with_the_desk_away_slices_go_on_and_beyond_them_it_is_503(run_stack, patiently) -> None:
    with run_stack(budgets=TIGHT) as stack:
        assert ask(stack).status_code == 200
        stack.call(stack.stop_writer())
        patiently(lambda: stack.get("/readyz").status_code == 503)
        assert stack.get("/readyz").json()["missing"] == ["ledger writer"]
        statuses = [ask(stack).status_code for _ in range(40)]
        assert statuses[-1] == 503
        assert set(statuses) <= {200, 503}
        answer = ask(stack)
        assert (answer.headers["retry-after"], answer.json()["error"]["code"]) == (
            "1",
            "unavailable",
        )
        stack.call(_start(stack))
        patiently(lambda: ask(stack).status_code == 200)


async def _start(stack) -> None:
    stack.start_writer()


def test_scopes_name_everything_a_budget_may_be_set_on(stack) -> None:
    planner = stack.app.hot._dispatcher.planner
    own, api = planner._fleet.targets("chat", stack.settings.models["chat"])
    identity = stack.call(stack.app.hot._keys.lookup(stack.token, 0))
    assert set(scopes(identity, "chat", own)) == {
        "global", "org:default", "team:search", f"key:{identity.key_id}", "model:chat",
    }  # fmt: skip
    ann = replace(identity, user_id="ann")
    assert set(scopes(ann, "chat", api)) - set(scopes(identity, "chat", own)) == {
        "user:ann", "provider:alpha",
    }  # fmt: skip
    real = replace(api, simulated=False)
    assert "external" in scopes(identity, "chat", real)


def test_an_absent_desk_is_a_503_that_may_be_retried() -> None:
    class Away:
        async def hold(self, *_: object) -> None:
            raise DeskAway("gone")

    class Who:
        org_id = team_id = key_id = "x"
        user_id = None

    class Target:
        provider = None

    with pytest.raises(RequestError) as told:
        asyncio.run(Admission(Away()).hold("a.1", Who(), "m", Target(), 1))
    assert (told.value.kind, told.value.retry_after_s) == ("unavailable", 1.0)
