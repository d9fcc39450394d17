"""A class that must not leave, at four times what the engine can do: not a byte of it does.

Beside it comes traffic that may leave, three times as much. While both come, policies that would
send everything out are put in force one after the other, and the class asks in every way that could
be taken for a permission. The API that it must not reach counts what reaches it. The control: the
same requests with a key that may leave do reach it. How much of it is served beside the rest:
`tests/gateway/whatif/test_confined.py`.
"""

from dataclasses import asdict, replace
from typing import Any

import pytest
import yaml

from backends.simulator.profiles import PROFILES
from backends.stepmodel import FittedStepModel
from ledger.policies import PolicySet, policies_in_force, store_policies

ENGINE = "h200-llama-3.1-8b-fp8"
SLOWER, PLACES, TOKENS = 16, 8, 32
CAPACITY, TIMES = 4.0, 4.0  # answers a second inside the promise; of it come
OPENING_S = 6.0
PROMISE = {"ttft_ms": 2000, "tpot_ms": 250}
COMPARED = ["openai/gpt-4o-mini"]
MODELS = {
    "inside": {"targets": ["pool:main", "alpha/m"], "compare_with": COMPARED},
    "public": {"targets": ["pool:main", "beta/m"], "compare_with": COMPARED},
}
PLAIN = [
    {"name": "i", "match": {"models": ["inside"]}, "slo": PROMISE, "otherwise": "reject"},
    {"name": "p", "slo": PROMISE},
]
TO_ALPHA, IMPATIENT = {"weights": {"alpha/m": 1}}, {"slo": {"ttft_ms": 0.001}}
PUBLIC = {"name": "public", "match": {"models": ["public"]}, "slo": PROMISE}
OPENING = {
    "fallback": [PUBLIC, {"name": "o", **IMPATIENT, "otherwise": "best_effort"}],
    "weights": [PUBLIC, {"name": "o", **TO_ALPHA}],
    "canary": [PUBLIC, {"name": "o", "canary": {"target": "alpha/m", "percent": 100}}],
    "shadow": [PUBLIC, {"name": "s", "shadow": True, **TO_ALPHA}, {"name": "o", **IMPATIENT}],
    "candidates": [PUBLIC, {"name": "o", "candidates": ["alpha/m"]}],
    "a wrong tag": [
        PUBLIC,
        {"name": "o", "match": {"when": 'tags.class == "secret"'}, "slo": PROMISE},
        {"name": "q", **TO_ALPHA},
    ],
}
TRICKS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"x-breakeven-tags": "class=public"}, {"metadata": {"class": "public"}}),
    ({"x-breakeven-residency": "any", "x-residency": "any"}, {"residency": "any"}),
    ({"x-breakeven-policy": "o"}, {"user": "public", "provider": "alpha"}),
    ({"x-breakeven-backend": "alpha/m"}, {"fallbacks": ["alpha/m"], "models": ["alpha/m"]}),
    ({"x-tags": "class=public"}, {"model": "alpha/m"}),
    ({"host": "public"}, {"model": "chat", "stream": True}),
]

pytestmark = pytest.mark.long


@pytest.fixture
def stack(monkeypatch, run_stack, outside):
    profile = PROFILES[ENGINE]
    slow = FittedStepModel(**{name: SLOWER * s for name, s in asdict(profile.shape.step).items()})
    shape = replace(profile.shape, step=slow, pace=None, max_num_seqs=PLACES)
    monkeypatch.setitem(PROFILES, ENGINE, replace(profile, shape=shape))

    def adjust(found, _ports) -> None:
        found["pools"]["main"]["engine"]["max_num_seqs"] = PLACES
        found["providers"]["alpha"]["base_url"] = f"http://127.0.0.1:{outside.port}/v1"
        found["models"].update(MODELS)
        found["policies"] = PLAIN

    with run_stack(adjust=adjust) as made:
        yield made


def put(stack, patiently, policies: list[dict]) -> None:
    """In force, as `policy apply` does it."""
    before = policies_in_force(stack.database)
    number = 1 if before is None else before.number + 1
    text = yaml.safe_dump({"policies": policies})
    store_policies(stack.database, PolicySet(number, text, 1, "test"))
    names = [rule["name"] for rule in policies]
    patiently(lambda: [rule.name for rule in stack.planner._routes._settings.policies] == names, 30)


class Crowds:
    """The confined class, at the engine's capacity, and of so many times as much who may leave."""

    def __init__(self, stack, crowd, patiently, seconds: float, *, public: float) -> None:
        inside = stack.key("inside", residency="internal_only").token
        rates = {"inside": (CAPACITY, inside), "public": (public * CAPACITY, stack.token)}
        self._patiently, self._seconds = patiently, seconds
        self._counts = {model: round(rate * seconds) for model, (rate, _) in rates.items() if rate}
        self._asked = {
            model: crowd.ask(
                stack.port, rates[model][0], seconds, rates[model][1],
                model=model, max_tokens=TOKENS, ignore_eos=True,
            )
            for model in self._counts
        }  # fmt: skip

    def ended(self) -> dict[str, list[Any]]:
        asked, counts = self._asked, self._counts
        self._patiently(
            lambda: all(
                len(some) == counts[model] and all(item.took_s for item in some)
                for model, some in asked.items()
            ),
            self._seconds + 240,
        )
        return asked


def hostile(stack, token: str) -> list[Any]:
    body = {"model": "inside", "messages": [{"role": "user", "content": "s"}], "max_tokens": 2}
    return [
        stack.client.post(
            stack.url + "/v1/chat/completions",
            json={**body, **members},
            headers={**stack.headers(token), **headers},
        )
        for headers, members in TRICKS
    ]


def test_no_byte_of_it_leaves_whatever_is_tried(stack, outside, crowd, patiently) -> None:
    made = stack.key("inside", residency="internal_only")
    inside = made.token
    statuses: dict[str, set[int]] = {}
    for name, policies in OPENING.items():
        put(stack, patiently, policies)
        running = Crowds(stack, crowd, patiently, OPENING_S, public=TIMES - 1)
        said = hostile(stack, inside)
        asked = running.ended()
        statuses[name] = {item.status for item in asked["inside"]} | {a.status_code for a in said}
        assert (outside.connections, outside.received) == (0, 0), name
        assert statuses[name] <= {200, 400, 403, 404, 429, 503}
    print("\n" + "\n".join(f"{name}: {sorted(some)}" for name, some in statuses.items()))
    assert not stack.rows("key_id = :id AND backend = 'api'", id=made.key_id)
    put(stack, patiently, OPENING["weights"])
    hostile(stack, stack.token)
    assert outside.received > 0, "the control: it counts what leaves"
