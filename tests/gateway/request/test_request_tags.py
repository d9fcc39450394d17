"""A request names its run, and nothing that policies or other budgets go by."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from gateway.clock import Clock
from gateway.config.schema_limits import RateLimitSection
from gateway.errors import RequestError
from gateway.request.admission import BudgetAdmission
from gateway.request.limits.rate_limiter import RateLimiter
from gateway.request.limits.rate_table import RateWindowTable
from gateway.request.request_tags import VALUE_LIMIT, with_request_tags
from ledger.budgets.client import BudgetClient
from ledger.budgets.scopes import request_scopes
from ledger.identity.keys import Identity

KEY = Identity(
    key_id="k", user_id=None, team_id="t", org_id="o", scopes=frozenset(), models=None,
    residency="any", tags=(("app", "web"),), isolation="k",
)  # fmt: skip


class Budgets:
    def __init__(self, *tags: str) -> None:
        self.valued_tags = frozenset(tags)


def test_what_a_request_names_is_counted_beside_the_keys_own_tags() -> None:
    who = with_request_tags(KEY, "run=42, session = a b", Budgets("run", "session"))
    assert who.tags == (("app", "web"), ("run", "42"), ("session", "a b"))
    assert who.own_tags == {"app": "web"}, "policies go by these alone"
    assert with_request_tags(KEY, None, Budgets()) is KEY
    assert {"tag:run=42", "tag:app=web"} <= set(request_scopes(who, "m"))


def test_a_tag_of_the_key_stays() -> None:
    pinned = replace(KEY, tags=(("run", "fixed"),))
    assert with_request_tags(pinned, "run=other", Budgets("run")).tags == (("run", "fixed"),)


@pytest.mark.parametrize(
    "said",
    [
        "app=other", "", "run", "run=", "run=*", "run=a,run=b", "run=a\nb",
        f"run={'a' * (VALUE_LIMIT + 1)}",
    ],
)  # fmt: skip
def test_anything_else_is_refused_by_the_headers_name(said) -> None:
    with pytest.raises(RequestError) as told:
        with_request_tags(KEY, said, Budgets("run"))
    assert told.value.param == "x-breakeven-tags"


def test_rate_limits_go_by_the_keys_own_tags(tmp_path) -> None:
    """Else a client could use up the limit of a tag that another team's key bears."""
    limits = [RateLimitSection(scope="tag:*", requests_per_minute=1)]
    limiter = RateLimiter(RateWindowTable(tmp_path / "rates"), limits, Clock())
    theirs = replace(KEY, tags=(("run", "42"),))
    mine = with_request_tags(replace(KEY, tags=()), "run=42", Budgets("run"))
    try:
        assert asyncio.run(limiter.count(mine, "m", 0)) is None
        used = asyncio.run(limiter.count(theirs, "m", 0))
        assert used is not None
        assert used.counted.over is None
    finally:
        limiter.close()


def test_while_no_budget_is_known_nobody_is_told_that_a_tag_has_none(tmp_path) -> None:
    desk = BudgetClient(tmp_path / "away", worker="w")
    with pytest.raises(RequestError) as told:
        with_request_tags(KEY, "run=42", BudgetAdmission(desk))
    assert told.value.row.status == 503


def test_each_run_is_refused_by_its_own_budget_and_a_run_is_a_tag_of_its_rows(run_stack) -> None:
    """The control is another run, and a request that names none."""
    limit = {"scope": "tag:run=*", "usd": "0.0005", "period": "day", "hard": True}
    with run_stack(budgets=[limit]) as stack:

        def ask(tags: str) -> httpx.Response:
            messages = [{"role": "user", "content": "hello there"}]
            body = {"model": "api", "messages": messages, "max_tokens": 100}
            return stack.post("/v1/chat/completions", body, None, **{"x-breakeven-tags": tags})

        first = ask("run=a")
        assert first.status_code == 200, first.text
        last = next(answer for answer in map(ask, ["run=a"] * 60) if answer.status_code != 200)
        assert last.status_code == 429
        assert "`tag:run=a@day`" in last.json()["error"]["message"]
        assert ask("run=b").status_code == 200
        assert stack.chat("api", max_tokens=100).status_code == 200
        assert ask("app=x").json()["error"]["param"] == "x-breakeven-tags"
        (row,) = stack.settled(first)
        assert row["tags"] in ({"run": "a"}, '{"run": "a"}')
