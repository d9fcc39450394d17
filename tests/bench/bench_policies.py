"""What a policy's own features cost each request that falls under it, beside the decision.

`Chain.terms` as a worker calls it: a constant rule, a condition, hours, shares, a canary, a rule
that fails. Figures are CPU time of this thread, the least disturbed tenth of the batches, as in
`bench_decide`; there is no bar. Run it as `python tests/bench/bench_policies.py`.
"""

import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from gateway.config.conditions import ConditionInput  # noqa: E402  (the checkout's packages)
from gateway.config.settings import ModelSection, parse  # noqa: E402  (as above)
from gateway.policies.policy_match import PolicyChain  # noqa: E402  (as above)
from gateway.policies.rules import RuleSet  # noqa: E402  (as above)

BATCHES, ROUNDS = 200, 200
CONFIG = """
models: {chat: {targets: ["pool:a", "x/b", "x/c"], compare_with: ["x/b"]}}
pools: {a: {engine: {endpoints: ["http://h:1/v1"]}, gpu: {type: H200}}}
providers: {x: {base_url: "http://h:2/v1", api_key_env: K}}
policies: [%s, {name: rest}]
"""
CASES = {
    "nothing asked": "{name: a}",
    "one comparison": "{name: a, match: {when: 'prompt_tokens > 100'}}",
    "four terms, a tag": (
        '{name: a, match: {when: \'prompt_tokens > 100 && has(tags.app) && tags.app == "web" '
        '&& "tools" in features\'}}'
    ),
    "fails (no tag)": "{name: a, match: {when: 'tags.no == \"web\"'}}",
    "hours": "{name: a, match: {times: [{days: [mon], starts: '22:00', ends: '06:00'}]}}",
    "weights": "{name: a, weights: {'pool:a': 3, x/b: 1}}",
    "canary, weights": (
        "{name: a, weights: {'pool:a': 3, x/b: 1}, canary: {target: x/c, percent: 5}}"
    ),
    "ten conditions": ", ".join(
        f"{{name: n{i}, match: {{when: 'prompt_tokens > {10**6 + i}'}}}}" for i in range(10)
    ),
}
TARGETS = [
    SimpleNamespace(name=name, pool=pool)
    for name, pool in (("pool:a/0", "a"), ("x/b", None), ("x/c", None))
]


def asking() -> ConditionInput:
    """Made for each request that is asked about."""
    return ConditionInput(
        model="chat", team="t", org="o", key="k", tags={"app": "web"},
        prompt_tokens=500, features=("tools",),
    )  # fmt: skip


def measure(policies: str) -> float:
    """Microseconds."""
    settings = parse(CONFIG % policies, name="bench")
    model = settings.models["chat"]
    assert isinstance(model, ModelSection)
    chain = PolicyChain(RuleSet(settings).entries("chat", "t"), model, TARGETS)  # type: ignore[arg-type]
    times = []
    for batch in range(BATCHES):
        keys = [f"{batch}-{number}" for number in range(ROUNDS)]
        start = time.thread_time_ns()
        for key in keys:
            chain.terms(asking, wall_us=1_795_215_600_000_000, key=key)
        times.append((time.thread_time_ns() - start) / ROUNDS / 1e3)
    return statistics.quantiles(times, n=10)[0]


def main() -> None:
    print(f"{'a rule with':20} p10 us")
    for name, policies in CASES.items():
        print(f"{name:20} {measure(policies):6.2f}")


if __name__ == "__main__":
    main()
