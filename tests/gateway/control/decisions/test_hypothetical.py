"""A supposed request: planned as a real one, against the running host's state, and never sent."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from backends.base import Call
from backends.errors import UpstreamUnreachable
from gateway.cli.ledger_access import prices_of
from gateway.config.settings import parse
from gateway.control.decisions.hypothetical import HypotheticalRequest, NullBackend, explain
from gateway.fleet.estimate_table import ESTIMATES_FILE, EstimateTable
from gateway.whatif.replay_fleet import ReplayFleet
from ledger.overrides import DISABLED, NOTHING, Override, store_override
from router.reasons import Reason
from router.types import Decision


def test_beside_a_running_host_it_sees_what_a_request_would(stack) -> None:
    before = stack.booked(), len(stack.entries("engine"))
    prices = prices_of(stack.settings, stack.reader)

    def supposed(model: str) -> Decision | None:
        question = HypotheticalRequest(model, "search", 100, 50)
        found = explain(stack.settings, question, stack.reader, prices)
        return None if found is None else found[-1]

    decision = supposed("chat")
    assert decision is not None
    assert decision.order[0].candidate.name == "pool:main/0"
    assert {verdict.candidate.name for verdict in decision.verdicts} == {"pool:main/0", "alpha/m"}
    assert (len(stack.rows()), len(stack.entries("engine"))) == before
    alias = supposed("gpt-4o")
    assert alias is not None
    assert alias.order[0].candidate.name == "pool:main/0"
    assert supposed("nothing") is None


def test_what_an_operator_holds_over_the_policies_is_heeded(stack, patiently) -> None:
    prices = prices_of(stack.settings, stack.reader)

    def chosen() -> str | None:
        question = HypotheticalRequest("chat", "search", 100, 50)
        (decision,) = explain(stack.settings, question, stack.reader, prices) or ()
        return None if decision.first_choice is None else decision.first_choice.candidate.name

    assert chosen() == "pool:main/0"
    given = Override(0, "target:pool:main", DISABLED, None, 1, "ann", None)
    store_override(stack.database, given)
    try:
        assert chosen() == "alpha/m"
    finally:
        store_override(stack.database, replace(given, says=NOTHING))
    assert chosen() == "pool:main/0"


def test_without_a_host_engines_are_unknown_and_nothing_is_made(tmp_path: Path) -> None:
    text = f"""
    state_dir: {tmp_path / "state"}
    models: {{m: {{targets: ["pool:a", "openai/gpt-4o-mini"], compare_with: [x]}}}}
    pools:
      a: {{engine: {{kind: simulated, model: x, replicas: 1}}, gpu: {{type: H200}}}}
    providers: {{openai: {{}}}}
    """
    settings = parse(text, name="t")
    question = HypotheticalRequest("m", "t", 10, 5)
    (decision,) = explain(settings, question, None, prices_of(settings, None)) or ()
    assert list(tmp_path.iterdir()) == []
    reasons = {verdict.candidate.name: verdict.reason for verdict in decision.verdicts}
    assert reasons["pool:a/0"] is not Reason.CHEAPEST
    assert all(verdict.candidate.name != "pool:a/0" for verdict in decision.order)


@pytest.mark.parametrize("cap", [None, 5])
def test_a_price_that_is_partly_known_is_out_where_a_cap_applies(tmp_path: Path, cap) -> None:
    rule = "{name: p}" if cap is None else f"{{name: p, max_usd_per_request: {cap}}}"
    text = f"""
    state_dir: {tmp_path / "state"}
    models: {{m: {{targets: ["gemini/gemini-omni-flash-preview"]}}}}
    providers: {{gemini: {{base_url: "http://127.0.0.1:1/v1"}}}}
    policies: [{rule}]
    """
    settings = parse(text, name="t")
    question = HypotheticalRequest("m", "t", 10, 5)
    (decision,) = explain(settings, question, None, prices_of(settings, None)) or ()
    partly = [verdict.reason is Reason.PARTLY_PRICED for verdict in decision.verdicts]
    assert partly == [cap is not None]


def test_the_bound_is_the_hosts_with_what_its_targets_billed_beyond_their_limits(
    tmp_path: Path,
) -> None:
    """Red before: whoever asked was told of a smaller hold than the request would have."""
    text = f"""
    state_dir: {tmp_path / "state"}
    models: {{m: {{targets: ["openai/gpt-4o-mini"]}}}}
    providers: {{openai: {{}}}}
    """
    settings = parse(text, name="t")

    def bound(team: str = "t") -> int:
        question = HypotheticalRequest("m", team, 10, 5)
        (decision,) = explain(settings, question, None, prices_of(settings, None)) or ()
        return decision.verdicts[0].candidate.bound_pusd or 0

    plain = bound()
    run = tmp_path / "state" / "run"
    run.mkdir(parents=True)
    table = EstimateTable(run / ESTIMATES_FILE)
    table.target_output.observe_overrun("openai/gpt-4o-mini", 500, 0.0, team="t")
    table.close()
    prices = prices_of(settings, None)
    price = prices.find("openai/gpt-4o-mini", 2**62)
    assert price is not None
    assert bound() >= plain + 2 * 500 * price.terms.rates.output  # or at a dearer tier
    assert bound("other") == plain, "one team saw it"
    house = ReplayFleet(settings, prices, {}, {}, 0)
    assert house.overruns is not None
    assert house.overruns.output.allowance("openai/gpt-4o-mini", "t") == 2 * 500


def test_nothing_is_ever_sent() -> None:
    with pytest.raises(UpstreamUnreachable):
        asyncio.run(NullBackend().open(Call("/chat/completions", b"{}", stream=False)))
    asyncio.run(NullBackend().aclose())


def test_stages_are_decided_until_one_can_serve(tmp_path: Path) -> None:
    """Without a host engines are unknown: a failure, and what the policy says comes last."""
    text = f"""
    state_dir: {tmp_path / "state"}
    models:
      m: {{targets: ["pool:a"], compare_with: [x], then: [
          {{after: context, targets: [openai/gpt-4.1]}},
          {{after: failure, targets: [openai/gpt-4o-mini]}}]}}
      n: {{targets: ["pool:a"], compare_with: [x],
          then: [{{after: context, targets: [openai/gpt-4.1]}}]}}
    pools:
      a: {{engine: {{kind: simulated, model: x, replicas: 1}}, gpu: {{type: H200}}}}
    providers: {{openai: {{}}}}
    policies: [{{name: p, otherwise: queue}}]
    """
    settings = parse(text, name="t")

    def asked(model: str) -> list[tuple[list[str], str]]:
        question = HypotheticalRequest(model, "t", 10, 5)
        made = explain(settings, question, None, prices_of(settings, None)) or ()
        return [
            ([verdict.candidate.name for verdict in each.verdicts], each.otherwise.value)
            for each in made
        ]

    assert asked("m") == [(["pool:a/0"], "reject"), (["openai/gpt-4o-mini"], "reject")]
    assert asked("n") == [(["pool:a/0"], "reject"), (["pool:a/0"], "queue")]


def test_content_that_is_supposed_is_kept_inside_as_its_rule_says(tmp_path: Path) -> None:
    text = f"""
    state_dir: {tmp_path / "state"}
    models: {{m: {{targets: ["openai/gpt-4o-mini"]}}}}
    providers: {{openai: {{}}}}
    policies: [{{name: p, content: {{card: keep_inside, email: mask}}}}]
    """
    settings = parse(text, name="t")
    prices = prices_of(settings, None)
    reasons = {}
    for content in ((), ("email",), ("email", "card")):
        question = HypotheticalRequest("m", "t", 10, 5, content)
        (decision,) = explain(settings, question, None, prices) or ()
        reasons[content] = decision.verdicts[0].reason is Reason.CONTENT
    assert reasons == {(): False, ("email",): False, ("email", "card"): True}


def test_a_prompt_beyond_the_stated_context_of_an_api_is_told(tmp_path: Path) -> None:
    """The decision stays: the provider refuses it, and a later stage may be asked for that."""
    text = f"""
    state_dir: {tmp_path / "state"}
    models: {{m: {{targets: [openai/gpt-4o-mini]}}}}
    providers: {{openai: {{}}}}
    """
    settings = parse(text, name="t")

    def told(tokens: int) -> str:
        question = HypotheticalRequest("m", "t", tokens, 10)
        (decision,) = explain(settings, question, None, prices_of(settings, None)) or ()
        assert decision.order == decision.verdicts
        return decision.order[0].detail

    assert told(100_000) == ""
    assert told(127_990) == ""
    assert told(127_991) == (
        "127991 prompt + 10 answer tokens exceed its stated context of 128000: it may refuse"
    )
