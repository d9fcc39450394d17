"""What a configuration declares to the books, to the unit."""

from gateway.config.declarations import budgets, contracts, routes
from gateway.config.settings import parse

TEXT = """
models: {m: {targets: ["pool:a"], compare_with: ["openai/gpt-4o-mini"]}}
pools:
  a:
    engine: {kind: simulated, model: rtx4090-llama-3.1-8b, replicas: 2}
    gpu: {type: H200, count: 2, usd_per_hour: 3.5, source: contract}
    ops: {hours_per_week: 2.5, usd_per_hour: 95}
providers: {standin: {start: true, simulated: true}}
budgets: [{scope: "team:a", usd: 1.5, period: day}]
"""


def test_contracts_and_budgets_are_exact() -> None:
    settings = parse(TEXT, name="t")
    (contract,) = contracts(settings)
    assert (contract.replicas, contract.gpus_per_replica) == (2, 2)
    assert (contract.pusd_per_hour, contract.ops_seconds_per_week) == (3_500_000_000_000, 9000)
    assert contract.simulated
    (budget,) = budgets(settings)
    assert (budget.scope, budget.limit_pusd, budget.hard) == ("team:a", 1_500_000_000_000, True)


ROUTES = """
models:
  chat:
    targets: ["pool:a", "standin/x", "other/y"]
    compare_with: ["openai/gpt-4o-mini", "other/y"]
    quality_loss: {"standin/x": 0.02}
  inside: {targets: ["pool:a"], residency: internal_only, compare_with: ["openai/gpt-4o-mini"]}
  narrow: {targets: ["pool:a", "standin/x"], compare_with: ["openai/gpt-4o-mini"]}
  some: {targets: ["pool:a", "standin/x"], compare_with: ["openai/gpt-4o-mini"]}
  alias: {same_as: chat}
  apis: {targets: ["other/y"]}
pools:
  a:
    engine: {kind: simulated, model: rtx4090-llama-3.1-8b, replicas: 1}
    gpu: {type: H200, usd_per_hour: 3.5, source: contract}
providers:
  standin: {start: true, simulated: true, prices_as: openai/gpt-4o-mini}
  other: {base_url: "http://127.0.0.1:9/v1", simulated: true}
policies:
  - {name: first, match: {models: [some], teams: [legal]}, residency: internal_only}
  - {name: second, match: {models: [narrow]}, candidates: ["pool:a"]}
  - {name: all}
"""


def test_routes_say_where_a_model_may_go_and_at_whose_price() -> None:
    found = {route.model: route for route in routes(parse(ROUTES, name="t"))}
    assert set(found) == {"chat", "inside", "narrow", "some"}, "of models that own engines serve"
    first, second = found["chat"].apis
    assert (first.price, first.quality_loss_ppm, first.is_same_weights) == (
        "openai/gpt-4o-mini", 20_000, False,
    )  # fmt: skip
    assert (second.price, second.quality_loss_ppm, second.is_same_weights) == (
        "other/y",
        None,
        True,
    )
    assert found["inside"].residency == "internal_only"
    assert found["narrow"].apis == (), "the rule of all its requests names pools alone"
    assert (found["some"].residency, found["some"].apis) == ("depends", ())
