"""Stages of a model's targets through the whole gateway: who is asked, in which order, and why."""

import random

import pytest
from stage_upstream import StageUpstream

from gateway.control.decisions.recorded import read_recorded_decision
from gateway.request.retry_budget import RESERVE, RetryBudget
from gateway.table_layout import ApiStatsCell

NAMES = "abcdef"
CAUSE_OF = {"500": "failure", "context": "context", "filter": "content_policy"}
LAYOUTS, PATTERNS = 16, 3
WORDS = ("any", *CAUSE_OF.values())
Stages = list[tuple[set[str], list[str]]]  # (after, targets)


def random_layout(rng: random.Random) -> Stages:
    """Nobody of the first stage stands in a later one."""
    first = rng.sample(NAMES, rng.randint(1, 3))
    others = [name for name in NAMES if name not in first]
    later = [
        (set(rng.sample(WORDS, rng.randint(1, 2))), rng.sample(others, rng.randint(1, 2)))
        for _ in range(rng.randint(0, 4))
    ]
    return [({"any"}, first), *later]


def model_of(stages: Stages) -> dict:
    (_, first), *later = [(after, [f"{name}/m" for name in names]) for after, names in stages]
    return {
        "targets": first,
        "then": [{"after": sorted(after), "targets": names} for after, names in later],
    }


def expected_order(stages: Stages, says: dict[str, str]) -> list[str]:
    """The reference: equal prices, so that within a stage the name decides."""
    asked: list[str] = []
    causes = {"any"}
    for number, (after, names) in enumerate(stages):
        left = sorted(set(names) - set(asked)) if after & causes else []
        for place, name in enumerate(left):
            asked.append(name)
            cause = CAUSE_OF.get(says[name])
            if cause is None:
                return asked
            causes.add(cause)
            waits = any(later & causes for later, _ in stages[number + 1 :])
            others = place + 1 < len(left) and cause == "context"
            if cause != "failure" and not (waits or others):
                return asked  # nobody waits for it: the target's refusal is the answer
    return asked


RANDOM = random.Random(20)
DRAWN = [random_layout(RANDOM) for _ in range(LAYOUTS)]
STAGED = {
    "failing": {"targets": ["a/m"], "then": [{"after": "failure", "targets": ["b/m"]},
                                             {"after": "failure", "targets": ["c/m"]}]},
    "long": {"targets": ["a/m"], "then": [{"after": "context", "targets": ["b/m"]}]},
    "strict": {"targets": ["a/m"], "then": [{"after": "content_policy", "targets": ["b/m"]}]},
    "open": {"targets": ["a/m"], "then": [{"targets": ["b/m"]}]},
    "inside": {
        "targets": ["pool:main"], "compare_with": ["openai/gpt-4o"],
        "then": [{"targets": ["a/m"]}],
    },
    "hurried": {"targets": ["a/m"], "timeouts": {"whole_s": 0.3, "head_s": 0.3}},
    "brief": {"targets": ["a/m"], "timeouts": {"total_s": 0.4}},
}  # fmt: skip
BUDGET = {"scope": "team:poor", "usd": "0.0001", "period": "day", "hard": True}


@pytest.fixture(scope="module")
def upstream():
    with StageUpstream() as found:
        yield found


@pytest.fixture(scope="module")
def staged(running, tmp_path_factory, upstream):
    def adjust(document, _ports):
        models = {f"drawn-{index}": model_of(stages) for index, stages in enumerate(DRAWN)}
        document["models"] |= {**models, **STAGED}
        document["providers"] |= {
            name: {"base_url": upstream.url(name), "prices_as": "openai/gpt-4o-mini"}
            for name in NAMES
        }
        document["policies"] = [
            {"name": "impossible", "match": {"models": ["inside"], "teams": ["fast"]},
             "slo": {"ttft_ms": 0.001}},
            *({"name": name, "match": {"models": ["inside"], "teams": [name]}, "queue_ms": 300,
               "slo": {"ttft_ms": 0.001, "strict": True}, "otherwise": name.replace("-", "_")}
              for name in ("best-effort", "queue")),
            {"name": "plain"},
        ]  # fmt: skip

    with running(tmp_path_factory.mktemp("host"), adjust=adjust, budgets=[BUDGET]) as stack:
        yield stack


@pytest.fixture
def ask(staged, upstream):
    """Ask a model while providers answer as told, none of which has a past."""

    def made(model: str, says: dict | None = None, token: str | None = None, **members):
        upstream.says, upstream.asked, upstream.bodies = dict(says or {}), [], []
        dispatcher = staged.app.hot._dispatcher
        dispatcher.retries._balance = RESERVE
        for row in range(len(staged.runtime.apis)):
            base = staged.board.api_stats_row(0, row)
            for cell in range(base, base + len(ApiStatsCell)):
                staged.board.cells[cell] = 0.0
        answer = staged.chat(model, token, max_tokens=5, **members)
        return answer, [name for name, _ in upstream.asked]

    return made


def test_whatever_fails_the_order_is_that_of_the_reference(ask, monkeypatch) -> None:
    """Of requests that come one by one: no outage makes tries dear."""
    monkeypatch.setattr(RetryBudget, "allowed", property(lambda _: True))
    rng, compared = random.Random(7), 0
    for index, stages in enumerate(DRAWN):
        for _ in range(PATTERNS):
            says = {name: rng.choice(["ok", *CAUSE_OF, "500"]) for name in NAMES}
            answer, asked = ask(f"drawn-{index}", says)
            assert asked == expected_order(stages, says), f"{stages} {says}: {answer.text}"
            served = says[asked[-1]] == "ok"
            assert (answer.status_code == 200) is served
            compared += len(asked) > 1
    assert compared > LAYOUTS


def test_a_healthy_first_stage_is_asked_alone(ask) -> None:
    for model in ("failing", "long", "strict", "open"):
        assert [ask(model)[1] for _ in range(2)] == [["a"], ["a"]]


@pytest.mark.parametrize(
    ("model", "says", "asked"),
    [
        ("failing", {"a": "500"}, "ab"),
        ("failing", {"a": "429"}, "ab"),
        ("failing", {"a": "500", "b": "500"}, "abc"),
        ("failing", {"a": "400"}, "a"),
        ("failing", {"a": "filter"}, "a"),
        ("failing", {"a": "context"}, "a"),
        ("long", {"a": "context"}, "ab"),
        ("long", {"a": "500"}, "a"),
        ("strict", {"a": "filter"}, "ab"),
        ("strict", {"a": "filtered"}, "ab"),
        ("strict", {"a": "context"}, "a"),
        ("open", {"a": "filtered"}, "ab"),
        ("failing", {"a": "filtered"}, "a"),
        ("strict", {"a": "moderated"}, "ab"),
        ("failing", {"a": "moderated"}, "a"),
        ("long", {"a": "large"}, "ab"),
        ("long", {"a": "unprocessed"}, "ab"),
        ("failing", {"a": "our_key"}, "ab"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_stage_is_asked_for_its_own_cause(ask, model, says, asked, stream) -> None:
    answer, found = ask(model, says, stream=stream)
    assert "".join(found) == asked
    if says.get(asked[-1], "ok") == "ok":
        assert answer.status_code == 200
        assert "hello" in answer.text
        assert f"stage={len(asked)}" in answer.headers["x-breakeven-decision"]
    if "filtered" in says.values() and len(asked) == 1:
        assert "content_filter" in answer.text


def test_a_filter_is_no_refusal_of_our_own_key(ask) -> None:
    """Red before: OpenRouter's and xAI's filters answer 403, which blamed the operator's key."""
    answer, _ = ask("failing", {"a": "moderated"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "content_filter")
    assert answer.headers["x-breakeven-fault"] == "request"


def test_an_answer_that_the_filter_took_is_paid_and_its_row_says_so(ask, staged) -> None:
    answer, _ = ask("strict", {"a": "filtered"})
    first, second = staged.settled(answer, 2)
    assert (first["status"], first["finish_reason"], first["target"]) == (
        "finished", "content_filter", "a/m",
    )  # fmt: skip
    assert first["cost_pusd"] == second["cost_pusd"] > 0
    assert (second["attempt_no"], second["target"]) == (2, "b/m")


def test_each_stage_is_a_decision_of_its_own_that_is_made_again(ask, staged) -> None:
    answer, _ = ask("failing", {"a": "500", "b": "500"})
    rows = staged.settled(answer, 3)
    assert [row["target"] for row in rows] == ["a/m", "b/m", "c/m"]
    for number, attempt in enumerate(explained(staged, answer), start=1):
        assert attempt["decision"]["stage"]["number"] == number
        assert attempt["again"]["identical"]
        names = [row["name"] for row in attempt["decision"]["candidates"]]
        assert names == [rows[number - 1]["target"]]


def explained(stack, answer):
    found = read_recorded_decision(stack.database, answer.headers["x-request-id"])
    return found.attempts


def test_an_own_engine_that_cannot_keep_the_promise_is_left_and_the_row_says_why(
    ask, staged
) -> None:
    token = staged.key("quick", team="fast").token
    answer, asked = ask("inside", token=token)
    assert (answer.status_code, asked) == (200, ["a"])
    (row,) = staged.settled(answer)
    assert (row["backend"], row["spill_reason"], row["attempt_no"]) == ("api", "ttft", 1)
    attempt = explained(staged, answer)[0]
    assert attempt["decision"]["stage"] == {
        "number": 2, "count": 2, "after": "any",
        "earlier": [{"name": "pool:main/0", "reason": "ttft"}],
    }  # fmt: skip
    assert attempt["again"]["identical"]
    other, asked = ask("inside", token=staged.key("default").token)
    assert (other.headers["x-breakeven-backend"], asked) == ("pool:main/0", [])


def test_what_a_policy_does_with_the_unserved_is_of_the_model_as_a_whole(ask, staged) -> None:
    """A promise that nobody keeps: tried, or waited for, at the first stage and not at the last."""
    tried, asked = ask("inside", token=staged.key("brave", team="best-effort").token)
    assert (tried.headers["x-breakeven-backend"], asked) == ("pool:main/0", [])
    assert tried.headers["x-breakeven-decision"].startswith("own:best_effort")
    waited, asked = ask("inside", token=staged.key("patient", team="queue").token)
    assert (waited.status_code, asked) == (429, [])


def test_an_own_engine_avoids_what_its_later_stage_charges(ask, staged) -> None:
    """A sixteenth of what it is compared with, unless the request may not go there."""
    worth = {}
    for name, spec in (("free", {}), ("inside", {"residency": "internal_only"})):
        token = staged.key(f"key-{name}", team=f"team-{name}", **spec).token
        answer, _ = ask("inside", token=token)
        staged.settled(answer)
        candidates = explained(staged, answer)[0]["again"]["candidates"]
        worth[name] = candidates[0]["avoided_pusd"]
    assert worth["inside"] / worth["free"] == pytest.approx(2.5 / 0.15, rel=0.1)


def test_nobody_is_asked_where_no_stage_may_and_the_refusal_names_all(ask, staged) -> None:
    token = staged.key("confined", team="fast", residency="internal_only").token
    answer, asked = ask("inside", token=token)
    assert (answer.status_code, asked) == (429, [])
    assert "No target of `inside`" in answer.json()["error"]["message"]


def test_a_failed_stage_leaves_its_hold_to_the_next(ask, staged) -> None:
    """A budget that has room for one hold at a time."""
    token = staged.key("poor", team="poor").token
    for _ in range(3):
        answer, asked = ask("failing", {"a": "429", "b": "429"}, token=token)
        assert (answer.status_code, "".join(asked)) == (200, "abc"), answer.text


def test_a_stream_never_moves_once_it_began(ask, upstream) -> None:
    answer, asked = ask("open", stream=True)
    assert (asked, answer.status_code) == (["a"], 200)


def test_a_models_timeouts_hold_for_it_alone_and_let_streams_flow(ask, upstream) -> None:
    answer, _ = ask("hurried", {"a": 1.0})
    assert answer.status_code == 504
    answer, _ = ask("open", {"a": 1.0})
    assert answer.status_code == 200
    upstream.flows_s = 0.8
    try:
        answer, _ = ask("hurried", stream=True)
        assert answer.text.rstrip().endswith("data: [DONE]")
    finally:
        upstream.flows_s = 0.0
