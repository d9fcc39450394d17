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


def tagged(said: str, *tags: str, key: Identity = KEY) -> tuple[Identity, tuple[str, ...]]:
    return with_request_tags(key, said, Budgets(*tags))


def test_what_a_request_names_is_counted_beside_the_keys_own_tags() -> None:
    who, ignored = tagged("run=42, session = a b,", "run", "session")
    assert who.tags == (("app", "web"), ("run", "42"), ("session", "a b"))
    assert who.own_tags == {"app": "web"}, "policies go by these alone"
    assert ignored == ()
    assert {"tag:run=42", "tag:app=web"} <= set(request_scopes(who, "m"))


@pytest.mark.parametrize(
    ("said", "ignored"),
    [
        ("", []),
        ("run=42", []),
        ("run=other,app=other", ["app"]),
        ("gone=1,run=42,gone=2", ["gone"]),
        ("batch=batch_1", ["batch"]),
        ("pinned=other", ["pinned"]),
        ("pinned=fixed", []),
        ("gone=*,app=", ["gone", "app"]),
    ],
)
def test_what_no_budget_knows_counts_for_nothing_and_is_named(said, ignored) -> None:
    """Red before: the end of a budget made each request of an app a 400."""
    key = replace(KEY, tags=(("pinned", "fixed"),))
    who, told = tagged(said, "run", "batch", "pinned", key=key)
    assert told == tuple(f"x-breakeven-tags.{name}" for name in ignored)
    assert set(who.tags) - {("run", "42"), ("run", "other")} == {("pinned", "fixed")}


@pytest.mark.parametrize(
    "said",
    [
        "run", "run=", "run=*", "run=a,run=b", "run=a\nb", "gone", "=a",
        f"run={'a' * (VALUE_LIMIT + 1)}",
    ],
)  # fmt: skip
def test_what_is_no_tag_is_refused_by_the_headers_name(said) -> None:
    with pytest.raises(RequestError) as told:
        tagged(said, "run")
    assert told.value.param == "x-breakeven-tags"
    assert str(told.value).startswith("`x-breakeven-tags`: "), "clients show the message alone"


def test_rate_limits_go_by_the_keys_own_tags(tmp_path) -> None:
    """Else a client could use up the limit of a tag that another team's key bears."""
    limits = [RateLimitSection(scope="tag:*", requests_per_minute=1)]
    limiter = RateLimiter(RateWindowTable(tmp_path / "rates"), limits, Clock())
    theirs = replace(KEY, tags=(("run", "42"),))
    mine, _ = tagged("run=42", "run", key=replace(KEY, tags=()))
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
        ignored = ask("app=x")
        assert ignored.status_code == 200
        assert ignored.headers["x-breakeven-ignored"] == "x-breakeven-tags.app"
        said = {"x-breakeven-tags": "app=x", "idempotency-key": "k"}
        talk = [{"role": "user", "content": "hi"}]
        chat = {"model": "chat", "messages": talk, "max_tokens": 4}
        spoken = {"model": "chat", "input": "hi", "max_output_tokens": 16}
        for path, body in (
            ("/v1/chat/completions", {**chat, "top_k": 4}), ("/v1/messages", chat),
            ("/v1/chat/completions", {**chat, "stream": True}),
            ("/v1/responses", spoken), ("/v1/responses", {**spoken, "background": True}),
            ("/v1/embeddings", {"model": "nothing", "input": "hi"}),
        ):  # fmt: skip
            for again in (False, True):
                said["idempotency-key"] = f"{path}{len(body)}"
                answer = stack.post(path, body, None, **said)
                assert "x-breakeven-tags.app" in answer.headers["x-breakeven-ignored"], answer.text
                assert not again or answer.headers.get("idempotent-replayed") or answer.is_error
        (row,) = stack.settled(first)
        assert row["tags"] in ({"run": "a"}, '{"run": "a"}')
