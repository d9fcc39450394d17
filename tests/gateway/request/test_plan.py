"""From a question to an ordered list of places: who may, what is counted, what is remembered."""

import json
from dataclasses import replace

import msgspec
import pytest

from gateway.clock import Clock
from gateway.errors import RequestError
from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody
from gateway.request.plan import session_key
from gateway.request.routes import cache_salt
from router.explain import unpack
from router.reasons import Reason


@pytest.fixture(scope="module")
def identity(stack):
    return stack.call(stack.app.hot._keys.lookup(stack.token, 0))


@pytest.fixture(scope="module")
def plan_of(stack, identity):
    def make(who=identity, session=None, path="/v1/chat/completions", **members):
        base = {"messages": [{"role": "user", "content": "hi"}]} if "chat" in path else {}
        text = json.dumps({"model": "chat", **base, **members}).encode()
        body = IncomingBody(text, "application/json", session, max_n=8)
        asked = KIND_PATHS[path].read(body)
        planner = stack.planner
        return planner.plan("req_1", asked, who, clock=Clock(), sticky=lambda _: None)

    return make


def test_a_plan_has_every_feasible_target_in_order(plan_of, stack) -> None:
    plan = plan_of(max_tokens=5)
    assert [step.frozen.target.name for step in plan.steps] == ["pool:main/0", "alpha/m"]
    assert [target.name for target in plan.route.targets] == ["pool:main/0", "alpha/m"]
    assert plan.comparators[0].price.name == "openai/gpt-4o-mini"
    assert plan.best_own is not None
    assert plan_of(model="api").best_own is None
    assert plan.policy_version == stack.runtime.policy_version


def test_the_decision_is_recorded_in_few_bytes(plan_of) -> None:
    plan = plan_of(max_tokens=5)
    assert 0 < len(plan.decision_blob) <= 800
    recorded = unpack(msgspec.msgpack.decode(plan.decision_blob))
    names = [candidate["name"] for candidate in recorded["candidates"]]
    assert names == ["pool:main/0", "alpha/m"]


def test_every_choice_of_every_prompt_is_counted(plan_of) -> None:
    this_plan_of = plan_of(path="/v1/completions", model="api", prompt="a", max_tokens=100)
    many = plan_of(path="/v1/completions", model="api", prompt=["a"] * 4, n=2, max_tokens=100)
    assert (this_plan_of.request.n, many.request.n) == (1, 8)
    # 100 tokens at $0.60 per million, for each of eight answers
    bounds = [plan.steps[0].frozen.candidate.bound_pusd for plan in (this_plan_of, many)]
    assert bounds[1] - bounds[0] >= 7 * 100 * 600_000


def test_a_file_is_held_at_more_than_its_bytes(plan_of) -> None:
    part = {"type": "file", "file": {"file_id": "file-1"}}
    messages = [{"role": "user", "content": [part]}]
    request = plan_of(model="api", messages=messages, max_tokens=5).request
    assert request.prompt_tokens_bound == 1_000_000
    assert request.prompt_tokens < 100


def test_a_prompt_is_counted_as_for_a_decision(plan_of, identity, stack) -> None:
    plan = plan_of(max_tokens=5)
    counted = stack.planner.prompt_tokens
    assert counted(plan.asked, identity) == plan.request.prompt_tokens
    with pytest.raises(RequestError) as forbidden:
        counted(plan.asked, replace(identity, models=("own",)))
    assert forbidden.value.row.status == 403


def test_unknown_and_forbidden_models(plan_of, identity) -> None:
    with pytest.raises(RequestError) as unknown:
        plan_of(model="nothing")
    assert (unknown.value.row.status, unknown.value.param) == (404, "model")
    with pytest.raises(RequestError) as forbidden:
        plan_of(who=replace(identity, models=("own",)))
    assert forbidden.value.row.status == 403


def test_residency_of_the_key_removes_apis(plan_of, identity) -> None:
    plan = plan_of(who=replace(identity, residency="internal_only"))
    assert [step.frozen.target.name for step in plan.steps] == ["pool:main/0"]


def test_tenants_share_neither_sessions_nor_caches(identity) -> None:
    other = replace(identity, team_id="ads")
    assert session_key("m", identity, "s") != session_key("m", other, "s")
    assert session_key("m", identity, "s") != session_key("n", identity, "s")
    assert cache_salt(identity) != cache_salt(other)
    shared = [replace(item, isolation="org") for item in (identity, other)]
    assert cache_salt(shared[0]) == cache_salt(shared[1]) != cache_salt(identity)
    assert cache_salt(replace(identity, isolation="none")) is None


def test_a_budgets_refusal_looks_at_those_that_only_a_budget_keeps_away(plan_of) -> None:
    plan = plan_of(max_tokens=5)
    own, api = plan.decision.verdicts
    lost = own._replace(reason=Reason.BUDGET), api._replace(reason=Reason.RESIDENCY)
    refused = msgspec.structs.replace(plan, decision=plan.decision._replace(verdicts=lost))
    assert [target.name for target in refused.unaffordable] == ["pool:main/0"]


def test_of_a_plan_stays_what_its_one_answer_needs(plan_of) -> None:
    for place in range(2):
        plan = plan_of()
        verdict = plan.decision.order[place]
        kept = plan.reduce_to(verdict)
        assert kept.decision.order == (verdict,)
        assert set(kept.decision.verdicts) == {verdict, plan.best_own}
        assert kept.best_own == plan.best_own
        assert (kept.frozen, kept.decision_blob) == ((), b"")
        assert (kept.asked, kept.request, kept.policy) == (plan.asked, plan.request, plan.policy)


OMNI, SEARCHING = "gemini/gemini-omni-flash-preview", "openai/gpt-4o-search-preview"
LIMITED = [{"scope": "team:search", "usd": 100, "period": "day", "hard": True}]


def priced_as(**names: str):
    def adjust(document, _ports) -> None:
        for provider, name in names.items():
            document["providers"][provider]["prices_as"] = name

    return adjust


def test_a_hard_budget_keeps_from_a_price_that_is_partly_known(run_stack) -> None:
    """Its list has a price of videos, which no term says: a hold cannot count it."""
    adjust = priced_as(alpha=OMNI, beta=SEARCHING)
    with run_stack(budgets=LIMITED, adjust=adjust) as stack:
        refused = stack.chat("api", max_tokens=5)
        assert (refused.status_code, refused.headers["x-should-retry"]) == (400, "false")
        told = refused.json()["error"]["message"]
        assert f"price of {OMNI} partly known (output_cost_per_video_token)" in told
        assert "state the fee in a price file" in told
        other = stack.chat("pair", max_tokens=5)  # the next target's price says all
        assert other.headers["x-breakeven-backend"] == "beta/m"
        (row,) = stack.settled(other)
        tokens = row["input_tokens"] * 2_500_000 + row["output_tokens"] * 10_000_000
        assert (row["cost_pusd"] - tokens, row["flag"]) == (25 * 10**9, None)
        assert row["bound_pusd"] >= row["cost_pusd"]
        ads = stack.key("ads", team="ads").token  # without a budget
        (row,) = stack.settled(stack.chat("api", ads, max_tokens=5))
        assert row["flag"] == "partly_priced"


@pytest.mark.parametrize("stated", ["complete: true", "usd_per_request: 0.02"])
def test_a_price_file_says_what_the_list_left_open(run_stack, tmp_path, stated) -> None:
    """A fee answers what a list leaves open of searches; `complete` answers all."""
    name = OMNI if "complete" in stated else "vercel_ai_gateway/perplexity/sonar"
    file = tmp_path / "ours.yaml"
    price = f"usd_per_million: {{input: 1, output: 2}}, {stated}"
    file.write_text(f"source: offer\nsource_date: 2026-11-01\nprices: {{{name}: {{{price}}}}}")
    changes = {"budgets": LIMITED, "adjust": priced_as(alpha=name), "prices": [str(file)]}
    with run_stack(**changes) as stack:
        (row,) = stack.settled(stack.chat("api", max_tokens=5))
        assert row["flag"] is None
        fee = 2 * 10**10 if "request" in stated else 0
        assert (
            row["cost_pusd"] == row["input_tokens"] * 10**6 + row["output_tokens"] * 2 * 10**6 + fee
        )


def test_a_tier_without_a_price_is_refused_where_a_hard_budget_counts(run_stack, tmp_path) -> None:
    file = tmp_path / "ours.yaml"
    flex = "tiers: {flex: {input: 1, output: 2}}"
    prices = f"usd_per_million: {{input: 1, output: 2}}, complete: true, {flex}"
    file.write_text(f"source: offer\nsource_date: 2026-11-01\nprices: {{x/ours: {{{prices}}}}}")
    changes = {"adjust": priced_as(alpha="x/ours"), "prices": [str(file)]}
    with run_stack(budgets=LIMITED, **changes) as stack:
        asked = {"max_tokens": 5, "service_tier": "scale"}
        refused = stack.chat("api", **asked)
        assert (refused.status_code, refused.headers["x-should-retry"]) == (400, "false")
        told = refused.json()["error"]["message"]
        assert "no price of service tier `scale`" in told
        assert "leave `service_tier` out" in told
        for tier in ("flex", "auto"):
            assert stack.chat("api", max_tokens=5, service_tier=tier).status_code == 200
        own = stack.chat("chat", **asked)  # other targets are tried
        assert own.headers["x-breakeven-backend"].startswith("pool:")
        ads = stack.key("ads", team="ads").token  # without a budget
        (row,) = stack.settled(stack.chat("api", ads, **asked))
        assert row["flag"] == "unknown_tier"


def test_a_target_in_a_cheaper_tier_is_chosen_where_no_deadline_speaks_against_it(
    run_stack, tmp_path
) -> None:
    """Two names of one model: `beta` asks for the tier `flex` at half the price, `alpha` for none.

    A client that names a tier itself is sent with it, and is charged for it, wherever it goes.
    """
    file = tmp_path / "ours.yaml"
    flex = "tiers: {flex: {input: 1, output: 2}}"
    prices = f"usd_per_million: {{input: 2, output: 4}}, complete: true, {flex}"
    file.write_text(f"source: offer\nsource_date: 2026-11-01\nprices: {{x/m: {{{prices}}}}}")

    def adjust(document, _ports) -> None:
        document["providers"]["alpha"] |= {"prices_as": "x"}
        document["providers"]["beta"] |= {"prices_as": "x", "tier": "flex"}

    with run_stack(adjust=adjust, prices=[str(file)]) as stack:
        (cheap,) = stack.settled(stack.chat("pair", max_tokens=5))
        assert (cheap["target"], cheap["tier"]) == ("beta/m", "flex")
        assert cheap["cost_pusd"] == (cheap["input_tokens"] + 2 * cheap["output_tokens"]) * 10**6
        (usual,) = stack.settled(stack.chat("pair", max_tokens=5, service_tier="default"))
        assert usual["tier"] in (None, "standard")
        assert (
            usual["cost_pusd"] == 2 * (usual["input_tokens"] + 2 * usual["output_tokens"]) * 10**6
        )


def test_no_target_serves_another_tier_to_who_wants_the_standard_one(
    run_stack, tmp_path, monkeypatch
) -> None:
    """Red before: the target's `priority` was sent, at four times the price, and only named."""
    file = tmp_path / "ours.yaml"
    tiers = "tiers: {priority: {input: 8, output: 16}}"
    prices = f"usd_per_million: {{input: 2, output: 4}}, complete: true, {tiers}"
    file.write_text(f"source: offer\nsource_date: 2026-11-01\nprices: {{x/m: {{{prices}}}}}")
    names = ("openai", "groq", "beta")

    def adjust(document, _ports) -> None:
        dear = {**document["providers"]["beta"], "prices_as": "x", "tier": "priority"}
        document["providers"] |= dict.fromkeys(names, dear)
        document["models"] |= {name: {"targets": [f"{name}/m"]} for name in names}

    asked = {"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    with run_stack(adjust=adjust, prices=[str(file)]) as stack:
        sent: dict[str, list[object]] = {name: [] for name in names}
        for name in names:
            backend = stack.planner._routes._fleet._api_backends[name]

            async def open_(call, *, name=name, send=backend.open):
                sent[name].append(json.loads(call.body).get("service_tier"))
                return await send(call)

            monkeypatch.setattr(backend, "open", open_)
        for name in names:
            answers = [
                stack.post("/v1/messages", {"model": name, **asked, **more})
                for more in ({"service_tier": "standard_only"}, {"service_tier": "auto"}, {})
            ]
            rows = [stack.settled(answer)[0] for answer in answers]
            tokens = [row["input_tokens"] + 2 * row["output_tokens"] for row in rows]
            rates = [
                row["cost_pusd"] // (10**6 * each) for row, each in zip(rows, tokens, strict=True)
            ]
            assert rates == [2, 8, 8]
            told = answers[0].headers.get("x-breakeven-ignored")
            assert told == ("service_tier" if name == "beta" else None)
    assert sent == {
        "openai": ["default", "priority", "priority"],
        "groq": ["on_demand", "priority", "priority"],
        "beta": [None, "priority", "priority"],  # no word is known: none is named there
    }


def test_sound_that_was_decoded_is_held_by_its_length(identity, stack) -> None:
    """Its bytes are no tokens; what they hold was counted where it was decoded."""
    planner = stack.planner
    body = b'{"model": "api", "messages": [{"role": "user", "content": "hi"}]}'
    asked = KIND_PATHS["/v1/chat/completions"].read(IncomingBody(body, "json", None, max_n=8))
    heard = msgspec.structs.replace(asked, sound_tokens=600, sound_tokens_bound=3050)
    plain, sound = [
        planner.plan("req_1", request, identity, clock=Clock(), sticky=lambda _: None).request
        for request in (asked, heard)
    ]
    assert sound.prompt_tokens - plain.prompt_tokens == 600
    assert sound.prompt_tokens_bound - plain.prompt_tokens_bound == 3050
