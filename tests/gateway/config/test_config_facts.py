"""What does not fit the world: one row per fault over a file that fits, facts given by hand."""

from datetime import date

import pytest

from gateway.config.config_facts import PLAUSIBLE, SMALLEST, ConfigFacts
from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.config.settings import parse
from ledger.prices.book import PriceBook, PriceTerms, rates_from
from ledger.prices.drafts import PriceDraft, diff
from ledger.prices.rates import TierRates

NAMES = ("openai/gpt-4o-mini", "deepinfra/llama")
GOOD = """
models:
  chat: {targets: ["pool:own", "openai/gpt-4o-mini"], compare_with: ["openai/gpt-4o-mini"]}
  other: {targets: ["sim/anything"]}
  gpt-4o: {same_as: chat}
pools:
  own:
    engine: {kind: simulated, model: h200-llama-3.1-8b-fp8, replicas: 1}
    gpu: {type: NVIDIA H200, since: 2026-11-01, until: 2026-11-30}
providers:
  openai: {}
  sim: {simulated: true, start: true, prices_as: deepinfra/llama}
budgets: [{scope: global, usd: 1}]
"""


def book() -> PriceBook:
    terms = PriceTerms(rates_from({"input": 100_000, "output": 100_000}))
    drafts = [PriceDraft(name=name, book="x", terms=terms) for name in NAMES]
    return PriceBook(diff((), drafts, at_us=1).prices(1))


def found(text: str, facts: ConfigFacts | None = None) -> list[str]:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    facts = facts or ConfigFacts(date(2026, 11, 21), 10, book())
    return [fault.text("f") for check in PLAUSIBLE for fault in check(settings, facts)]


def test_the_sound_file_has_no_faults():
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("type: NVIDIA H200", "type: H300",
         "pools.own.gpu.type: no GPU named `H300` is known: name another, or set its `usd_per"),
        ("type: NVIDIA H200", "type: A100", "did you mean `A100-40GB` or `A100-80GB` or"),
        ("type: NVIDIA H200", "type: Abacus", "; `breakeven engine list` has the names"),
        ("type: NVIDIA H200", "type: Abacus, usd_per_hour: 1", None),
        ("type: NVIDIA H200", "type: cpu", None),
        ("-8b-fp8", "-8b", "pools.own.engine.model: no simulated profile named"),
        ("until: 2026-11-30", "until: 2026-11-20",
         "warning: pools.own.gpu.until: the contract ended on 2026-11-20"),
        ("until: 2026-11-30", "until: 2026-11-21", None),
        ("since: 2026-11-01", "since: 2026-11-22",
         "warning: pools.own.gpu.since: the contract begins on 2026-11-22"),
        ('"pool:own", ', "", "warning: pools.own: no model has the target `pool:own`"),
        ('"openai/gpt-4o-mini"], comp', '"openai/gpt-4o-mni"], comp',
         "; state one in a file under `prices`; did you mean `openai/gpt-4o-mini`?"),
        ('"openai/gpt-4o-mini"], comp', '"openai/gpt-4o-mni"], comp',
         "warning: models.chat.targets[1]: no price for `openai/gpt-4o-mni`: requests there are"),
        ("prices_as: deepinfra/llama", "prices_as: deepinfra/lama",
         "warning: providers.sim.prices_as: no price for `deepinfra/lama`"),
        ("prices_as: deepinfra/llama", "kinds: [chat]",
         "warning: models.other.targets[0]: no price for `sim/anything`"),
        ('compare_with: ["openai/gpt-4o-mini"', 'compare_with: ["acme/best"',
         "warning: models.chat.compare_with[0]: no price for `acme/best`: nothing is"),
    ],
)  # fmt: skip
def test_a_fault_is_said_at_its_place(before, after, said):
    assert before in GOOD
    faults = found(GOOD.replace(before, after, 1))
    if said is None:
        assert faults == []
    else:
        assert len([fault for fault in faults if said in fault]) == 1, faults


def test_a_tier_that_its_price_does_not_list_is_told():
    def said(listed: str) -> list[str]:
        tiers = (TierRates(listed, 0, rates_from({"input": 50_000, "output": 50_000})),)
        terms = PriceTerms(rates_from({"input": 100_000, "output": 100_000}), schedules=tiers)
        draft = PriceDraft(name="openai/gpt-4o-mini", book="x", terms=terms)
        facts = ConfigFacts(date(2026, 11, 21), 10, PriceBook(diff((), [draft], at_us=1).prices(1)))
        text = """
models: {chat: {targets: [cheap/gpt-4o-mini]}}
providers: {cheap: {base_url: "https://a.example/v1", prices_as: openai, tier: flex}}
"""
        return found(text, facts)

    assert said("flex") == []
    (fault,) = said("priority")
    assert "models.chat.targets[0]: the price of `cheap/gpt-4o-mini` has no `flex` rates" in fault


def test_without_a_hard_budget_the_unpriced_are_flagged_and_served():
    text = GOOD.replace("prices_as: deepinfra/llama", "").replace("usd: 1", "usd: 1, hard: false")
    (fault,) = found(text)
    assert "unpriced and flagged in the ledger" in fault


def test_with_an_unreadable_price_file_no_price_is_missed():
    text = GOOD.replace("gpt-4o-mini", "gpt-4o-mni")
    assert found(text, ConfigFacts(date(2026, 11, 21), 10, None)) == []


def test_wrong_paths_are_told_where_they_are_named():
    place = ("pools", "own", "engine", "model")
    facts = ConfigFacts(date(2026, 11, 21), 10, book(), {place: "there is no directory `x`"})
    assert found(GOOD, facts) == ["f: pools.own.engine.model: there is no directory `x`"]


def test_nothing_served_is_said_with_the_smallest_configuration():
    (fault,) = found("")
    assert "no model is configured, so nothing is served" in fault
    assert SMALLEST in fault
    smallest = f"{{{SMALLEST}}}"
    assert parse(smallest, name="copied").models
    assert found(smallest) == []


def test_a_price_file_in_the_wrong_unit_is_a_warning_of_that_file():
    right = PriceTerms(rates_from({"input": 150_000, "output": 600_000}))
    wrong = PriceTerms(rates_from({"input": 150, "output": 600}))
    drafts = [PriceDraft("openai/gpt-4o-mini", "litellm", right),
              PriceDraft("openai/gpt-4o-mini", "deal.yaml", wrong, rank=1)]  # fmt: skip
    facts = ConfigFacts(date(2026, 11, 21), 10, PriceBook(diff((), drafts, at_us=1).prices(1)))
    said = [
        finding
        for finding in found(GOOD + "prices: [deal.yaml]\n", facts)
        if "deal.yaml" in finding
    ]
    (line,) = said
    assert line.startswith("f: warning: prices[0]: the price of `openai/gpt-4o-mini` (deal.yaml) "
                           "looks wrong: input, output: 1,000 times less than version")  # fmt: skip
    assert "prices:" in found(GOOD, facts)[-1]  # one that was imported is in no file
    assert "looks wrong" not in str(found(GOOD))
    unread = ConfigFacts(date(2026, 11, 21), 10, None)
    assert "looks wrong" not in str(found(GOOD, unread))


@pytest.mark.parametrize("runs", ["replicas: 1", 'endpoints: ["http://127.0.0.1:9/v1"]'])
def test_a_file_that_holds_no_engine_model_is_a_fault_wherever_it_runs(tmp_path, runs) -> None:
    """Of another's engine the name alone means nothing."""
    (tmp_path / "bad.json").write_text("{}")

    def config(model: object) -> str:
        engine = f"{{kind: simulated, model: '{model}', served_name: m, {runs}}}"
        return (
            'models: {chat: {targets: ["pool:own"], compare_with: [x/m]}}\n'
            f"pools: {{own: {{engine: {engine}, gpu: {{type: H200}}}}}}\n"
        )

    assert any("no engine model" in line for line in found(config(tmp_path / "bad.json")))
    named = any("no simulated profile" in line for line in found(config("nobody")))
    assert named is runs.startswith("replicas")
