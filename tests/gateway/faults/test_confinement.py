"""A class that must not leave the network: nothing that a policy can say lets one byte out.

The API is a listener that counts whatever reaches it. The same requests under the same policies,
without the confinement, do reach it.
"""

import pytest

from ledger.policies import PolicySet, store_policies

TARGETS = ["pool:main", "alpha/m"]
COMPARED = ["openai/gpt-4o-mini"]


SECRET = {"when": 'tags.class == "secret"'}
TO_ALPHA = {"weights": {"alpha/m": 1}}
CANARY = {"canary": {"target": "alpha/m", "percent": 100}}
IMPATIENT = {"slo": {"ttft_ms": 0.001}}  # no engine keeps that: who may leaves
# Each set with rules that, were the request open, would send it out.
OPENING = {
    "fallback": [{"name": "p", **IMPATIENT, "otherwise": "best_effort"}],
    "weights": [{"name": "p", **TO_ALPHA}],
    "canary": [{"name": "p", **CANARY}],
    "shadow": [{"name": "w", "shadow": True, **TO_ALPHA}, {"name": "p", **IMPATIENT}],
    "candidates": [{"name": "p", "candidates": ["alpha/m"]}],
}
# By tags: the class is `secret`, and a key without the tag cannot be told from it.
BY_TAG = [
    {"name": "inside", "match": SECRET, "residency": "internal_only"},
    {"name": "p", **TO_ALPHA},
]


@pytest.fixture(scope="module")
def stack(tmp_path_factory, running, outside):
    def listen(found: dict, _ports: dict) -> None:
        found["providers"]["alpha"]["base_url"] = f"http://127.0.0.1:{outside.port}/v1"
        # Requests may name the tag for its budgets: no policy is to go by that.
        found["budgets"] = [{"scope": "tag:class=*", "usd": 1000}]

    with running(tmp_path_factory.mktemp("host"), adjust=listen) as made:
        yield made


def put(stack, patiently, policies: list[dict]) -> None:
    """In force, as `policy apply` does it."""
    import yaml  # noqa: PLC0415  (beside its only use)

    from ledger.policies import policies_in_force  # noqa: PLC0415  (as above)

    before = policies_in_force(stack.database)
    number = 1 if before is None else before.number + 1
    text = yaml.safe_dump({"policies": policies})
    store_policies(stack.database, PolicySet(number, text, 1, "test"))
    names = [rule["name"] for rule in policies]
    patiently(lambda: _in_force(stack) == names)


def _in_force(stack) -> list[str]:
    return [rule.name for rule in stack.planner._routes._settings.policies]


TRICKS = {
    "x-breakeven-tags": "class=public", "x-breakeven-residency": "any", "x-tags": "class=public",
}  # fmt: skip


def ask(stack, token: str):
    body = {
        "model": "chat", "messages": [{"role": "user", "content": "secret"}], "max_tokens": 2,
        "metadata": {"class": "public"}, "user": "public",
    }  # fmt: skip
    headers = {**stack.headers(token), **TRICKS}
    return stack.client.post(stack.url + "/v1/chat/completions", json=body, headers=headers)


@pytest.mark.parametrize("opening", OPENING)
def test_a_confined_key_never_leaves(stack, outside, patiently, opening) -> None:
    put(stack, patiently, OPENING[opening])
    inside = stack.key("inside", residency="internal_only").token
    before = outside.connections, outside.received
    answers = [ask(stack, inside) for _ in range(3)]
    assert (outside.connections, outside.received) == before
    assert {answer.status_code for answer in answers} <= {200, 403, 429, 400}


@pytest.mark.parametrize("opening", ["fallback", "weights", "canary", "candidates"])
def test_without_the_confinement_it_leaves(stack, outside, patiently, opening) -> None:
    """The control: the listener sees what leaves."""
    put(stack, patiently, OPENING[opening])
    before = outside.received
    ask(stack, stack.token)
    assert outside.received > before


@pytest.mark.parametrize(
    ("tags", "leaves"),
    [((("class", "secret"),), False), ((), False), ((("class", "public"),), True)],
)
def test_a_class_by_tag_leaves_neither_with_the_tag_nor_without(
    stack, outside, patiently, tags, leaves
) -> None:
    """Policies go by the key's own tags, not by what the request says of itself (`TRICKS`)."""
    put(stack, patiently, BY_TAG)
    token = stack.key(f"tagged-{tags}", tags=tags).token
    before = outside.received
    answer = ask(stack, token)
    assert (outside.received > before) is leaves
    if not leaves:
        assert (answer.status_code, answer.headers["x-breakeven-backend"]) == (200, "pool:main/0")
