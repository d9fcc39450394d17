"""What a configuration declares to the books, to the unit."""

from gateway.config.declarations import budgets, contracts
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
