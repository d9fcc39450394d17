"""What may be shared, and that no sequence of requests ever shares it across a boundary."""

import json
from dataclasses import replace
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from gateway.errors import RequestError
from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody
from gateway.policies.policy_match import PolicyTerms
from gateway.policies.rules import CompiledPolicy
from gateway.request.cache.answer_memory import AnswerMemory
from gateway.request.cache.cache_use import AskedBytes, CacheDirectives
from gateway.request.cache.cacheable import (
    answer_name,
    check_words,
    directives_of,
    is_cacheable,
    is_deterministic,
    is_keepable,
)
from gateway.request.routes import RouteContext
from ledger.identity.keyring import Identity
from router.reasons import Reason
from router.types import Policy, Preference, Residency

NOBODY: Any = None
KEY = Identity("k", None, "search", "acme", frozenset(), None, "any", (), "team")
TERMS = PolicyTerms(CompiledPolicy(Policy("plain"), 0.0, penalty_is_default=True))
ASKED = AskedBytes("/v1/chat/completions", b"{}", ())


def route_of(identity: Identity, model: str = "m", residency: str = "any") -> RouteContext:
    return RouteContext(
        identity, model, (), False, NOBODY, (), NOBODY, Residency(residency), ("m", "t"), None
    )


def name_of(**changes: Any) -> bytes:
    given = {
        "asked": ASKED, "route": route_of(KEY), "terms": TERMS, "residency": Residency.ANY,
        "version": "1", **changes,
    }  # fmt: skip
    return answer_name(**given)


INSIDE = Policy("plain", residency=Residency.INTERNAL_ONLY)
DIFFERENT = {
    "organisation": {"route": route_of(replace(KEY, org_id="other"))},
    "team": {"route": route_of(replace(KEY, team_id="ads"))},
    "tags": {"route": route_of(replace(KEY, tags=(("a", "b"),)))},
    "other tags": {"route": route_of(replace(KEY, tags=(("ab", ""),)))},
    "isolation": {"route": route_of(replace(KEY, isolation="none"))},
    "model": {"route": route_of(KEY, model="n")},
    "residency of the model": {"route": route_of(KEY, residency="internal_only")},
    "policy": {"terms": replace(TERMS, rule=replace(TERMS.rule, policy=Policy("other")))},
    "preferred": {"terms": replace(TERMS, preferred=Preference(frozenset("a"), Reason.WEIGHT))},
    "barred": {"terms": replace(TERMS, barred={"a": (Reason.DISABLED, "")})},
    "version": {"version": "2"},
    "path": {"asked": ASKED._replace(path="/v1/messages")},
    "body": {"asked": ASKED._replace(text=b"{ }")},
    "headers": {"asked": ASKED._replace(told=(("anthropic-beta", "x"),))},
}


def test_each_thing_that_may_change_an_answer_changes_its_name() -> None:
    names = {what: name_of(**changes) for what, changes in DIFFERENT.items()}
    assert len({*names.values(), name_of()}) == len(names) + 1
    assert name_of(route=route_of(replace(KEY, key_id="another", user_id="u"))) == name_of()


def test_the_tightest_residency_counts_wherever_it_is_stated() -> None:
    tight = [
        name_of(residency=Residency.INTERNAL_ONLY),
        name_of(route=route_of(KEY, residency="internal_only")),
        name_of(terms=replace(TERMS, rule=replace(TERMS.rule, policy=INSIDE))),
    ]
    assert len(set(tight)) == 1
    assert tight[0] != name_of()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], CacheDirectives()),
        ([(b"cache-control", b"No-Cache")], CacheDirectives(reads=False)),
        ([(b"cache-control", b"no-store")], CacheDirectives(reads=False, stores=False)),
        ([(b"cache-control", b"max-age=60, foo")], CacheDirectives(max_age_s=60)),
        ([(b"cache-control", b"max-age=60"), (b"cache-control", b"max-age=5")],
         CacheDirectives(max_age_s=5)),
        ([(b"cache-control", b"max-age=0")], CacheDirectives(max_age_s=0)),
        ([(b"cache-control", b"max-age=-1, private, =, ,")], CacheDirectives()),
        ([(b"x-breakeven-cache", b" ANY ")], CacheDirectives(any_answer=True)),
        ([(b"x-breakeven-cache", b"all")], CacheDirectives()),
        ([(b"x-breakeven-cache", b"Off")], CacheDirectives(reads=False, stores=False)),
        ([(b"x-breakeven-cache", b"no-store")], CacheDirectives(reads=False, stores=False)),
        ([(b"x-breakeven-cache", b"bypass")], CacheDirectives(reads=False, stores=False)),
        ([(b"x-breakeven-cache", b"any, no-cache")], CacheDirectives(reads=False, any_answer=True)),
        ([(b"pragma", b"no-cache")], CacheDirectives(reads=False)),
        ([(b"pragma", b"no-cache"), (b"cache-control", b"max-age=5")],
         CacheDirectives(max_age_s=5)),
    ],
)  # fmt: skip
def test_what_a_client_says(headers, expected) -> None:
    assert directives_of(headers) == expected


@pytest.mark.parametrize("word", [b"of", b"all", b"any, often", b"hit", b"1"])
def test_a_word_without_a_meaning_is_refused_by_the_name_of_its_header(word) -> None:
    with pytest.raises(RequestError, match="`x-breakeven-cache` takes `any`, `off`") as refusal:
        check_words([(b"x-breakeven-cache", word)])
    assert (refusal.value.row.status, refusal.value.param) == (400, "x-breakeven-cache")


@pytest.mark.parametrize("word", [b"", b"ANY", b"off,", b"no-store, any", b"no-cache", b"bypass"])
def test_words_with_a_meaning_pass(word) -> None:
    check_words([(b"cache-control", b"private"), (b"x-breakeven-cache", word)])


def read(path: str = "/v1/chat/completions", **members: Any):
    usual: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    if path.endswith("embeddings"):
        usual = {"model": "m", "input": "x"}
    text = json.dumps({**usual, **members}).encode()
    return KIND_PATHS[path].read(IncomingBody(text, "application/json", None, 8))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, True), (0.0, True), (-0.0, True), (0.1, False), (None, False), (False, False),
     ("0", False), ([], False)],
)  # fmt: skip
def test_temperature_zero(value, expected) -> None:
    members = {"temperature": msgspec.Raw(msgspec.json.encode(value))}
    assert is_deterministic(members) is expected


@pytest.mark.parametrize("number", [b"1e400", b"9" * 5000, b"-1e999", b"true"])
def test_a_number_beyond_all_limits_is_none(number) -> None:
    assert not is_deterministic({"seed": msgspec.Raw(number)})
    assert not is_deterministic({"temperature": msgspec.Raw(number)})


def test_the_least_age_that_is_asked_counts() -> None:
    said = directives_of([(b"cache-control", b"max-age=0, max-age=100")])
    assert said.max_age_s == 0


PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"temperature": 0}, True),
        ({"seed": 1}, True),
        ({"seed": None}, False),
        ({}, False),
        ({"temperature": 0, "n": 2}, False),
        ({"temperature": 0, "tools": [TOOL]}, False),
        ({"temperature": 0, "messages": [{"role": "user", "content": [PICTURE]}]}, False),
        ({"temperature": 0, "web_search_options": {}}, False),
    ],
)
def test_which_requests_qualify(members, expected) -> None:
    assert is_cacheable(read(**members), any_answer=False) is expected


def test_embeddings_always_do_and_any_answer_counts_for_texts() -> None:
    assert is_cacheable(read("/v1/embeddings"), any_answer=False)
    assert is_cacheable(read(), any_answer=True)
    assert not is_cacheable(read(tools=[TOOL]), any_answer=True)


def attempt_of(asked: Any, **changes: Any) -> Any:
    told = {"number": 1, "stage": 1, "changed": False, "cap": None, "reason": Reason.CHEAPEST,
            "terms": TERMS, **changes}  # fmt: skip
    candidate = SimpleNamespace(output_cap=told["cap"])
    return SimpleNamespace(
        number=told["number"],
        plan=SimpleNamespace(
            route=SimpleNamespace(stage=told["stage"]),
            changed=told["changed"], terms=told["terms"], asked=asked,
        ),
        step=SimpleNamespace(
            frozen=SimpleNamespace(candidate=candidate),
            verdict=SimpleNamespace(reason=told["reason"]),
        ),
    )  # fmt: skip


def record_of(**changes: Any) -> Any:
    told = {"finish_reason": "stop", "status": "finished", "http_status": 200, "disputed": False,
            "unseen": False, **changes}  # fmt: skip
    return SimpleNamespace(**told)


CANARY = replace(TERMS, preferred=Preference(frozenset("a"), Reason.CANARY))


@pytest.mark.parametrize(
    ("attempt", "record", "expected"),
    [
        ({}, {}, True),
        ({}, {"finish_reason": "length"}, True),
        ({"cap": 5}, {"finish_reason": "length"}, False),
        ({"cap": 5}, {}, True),
        ({}, {"finish_reason": "content_filter"}, False),
        ({}, {"finish_reason": "tool_calls"}, False),
        ({}, {"finish_reason": None}, False),
        ({}, {"status": "client_gone"}, False),
        ({}, {"status": "upstream_error"}, False),
        ({}, {"http_status": 206}, False),
        ({}, {"disputed": True}, False),
        ({}, {"unseen": True}, False),
        ({"number": 2}, {}, False),
        ({"stage": 2}, {}, False),
        ({"changed": True}, {}, False),
        ({"reason": Reason.CANARY}, {}, False),
        ({"terms": CANARY}, {}, False),
        ({"terms": replace(TERMS, undecided=("rule",))}, {}, False),
    ],
)
def test_which_answers_are_kept(attempt, record, expected) -> None:
    asked = read(temperature=0, max_tokens=5)
    assert is_keepable(attempt_of(asked, **attempt), record_of(**record), asked) is expected


def test_what_was_asked_for_less_than_its_client_asked_is_not_kept() -> None:
    asked, less = read(temperature=0), read(temperature=0)
    assert not is_keepable(attempt_of(less), record_of(), asked)
    assert not is_keepable(attempt_of(asked), record_of(finish_reason="length"), asked)


WORLD = {
    "org": ("acme", "umbrella"),
    "team": ("search", "ads"),
    "tags": ((), (("app", "x"),)),
    "residency": ("any", "internal_only"),
    "model": ("m",),
    "version": ("1", "2"),
    "text": (b"{}",),
}
BLIND = {  # what a faulty name would leave out
    "team": lambda tenant: {**tenant, "team": "search"},
    "tags": lambda tenant: {**tenant, "tags": ()},
    "residency": lambda tenant: {**tenant, "residency": "any"},
}


class Tenants(RuleBasedStateMachine):
    """Two workers' views of one memory; whoever asks gets what an equal tenant stored, or none."""

    def __init__(self, seen=dict) -> None:
        super().__init__()
        self._seen = seen
        self._memory = AnswerMemory(None, 128 * 1024, 1, 0)
        self._now = 0

    @rule(tenant=st.fixed_dictionaries({key: st.sampled_from(word) for key, word in WORLD.items()}),
          size=st.sampled_from([0, 100, 20_000]))  # fmt: skip
    def ask(self, tenant: dict[str, Any], size: int) -> None:
        self._now += 1
        said = repr(sorted(tenant.items())).encode()
        shown = self._seen(tenant)
        identity = replace(KEY, org_id=shown["org"], team_id=shown["team"], tags=shown["tags"])
        name = answer_name(
            ASKED._replace(text=shown["text"]),
            route_of(identity, shown["model"], shown["residency"]),
            TERMS, Residency.ANY, shown["version"],
        )  # fmt: skip
        found = self._memory.find(name)
        if found is None:
            self._memory.store(name, self._now, said + b"\0" + bytes(size))
        else:
            assert found.data.partition(b"\0")[0] == said, "an answer crossed a boundary"

    def teardown(self) -> None:
        self._memory.close()


QUIET = settings(
    max_examples=40, stateful_step_count=25, deadline=None, database=None,
    suppress_health_check=list(HealthCheck), phases=[Phase.generate],
)  # fmt: skip


def test_no_sequence_shares_an_answer_across_teams_tags_or_residencies() -> None:
    run_state_machine_as_test(Tenants, settings=QUIET)


@pytest.mark.parametrize("left_out", sorted(BLIND))
def test_the_property_is_broken_by_a_name_that_leaves_one_out(left_out) -> None:
    with pytest.raises(AssertionError, match="crossed a boundary"):
        run_state_machine_as_test(partial(Tenants, BLIND[left_out]), settings=QUIET)


def test_every_combination_has_a_name_of_its_own() -> None:
    words = list(product(WORLD["org"], WORLD["team"], WORLD["tags"], WORLD["residency"]))
    names = {
        name_of(
            route=route_of(replace(KEY, org_id=org, team_id=team, tags=tags), residency=residency)
        )
        for org, team, tags, residency in words
    }
    assert len(names) == len(words)
