"""What clients are told when no answer comes: the cause, whether to come back, no secrets."""

from types import SimpleNamespace

import pytest

from backends.errors import (
    BackendError,
    DispatchSuperseded,
    FirstTokenTimeout,
    HeadTimeout,
    IdleTimeout,
    InvalidResponse,
    ServerError,
    UpstreamBroken,
    UpstreamOverloaded,
    UpstreamRejected,
    UpstreamUnreachable,
    WrongAddress,
    broken_by,
)
from gateway.errors import RequestError
from gateway.kinds.native_request import NativeRequest
from gateway.request.refusals import (
    FAILURES,
    after_earlier,
    infeasible,
    over_budget,
    status_of,
    upstream_failure,
)
from ledger.budgets.budget_refusal import BudgetRefusal
from router.reasons import PERMANENT, Reason
from router.request_kinds import RequestKind
from router.types import Decision, Feature, InfeasibleAction

SECRET = "sk-live-1234"


@pytest.mark.parametrize(
    ("error", "http", "code", "status", "logged"),
    [
        (UpstreamUnreachable(SECRET), 502, "upstream_error", "rejected", 503),
        (UpstreamOverloaded(SECRET, status=429), 503, "overloaded", "rejected", 429),
        (DispatchSuperseded(SECRET), 503, "overloaded", "rejected", 503),
        (ServerError(SECRET, status=500), 502, "upstream_error", "upstream_error", 500),
        (WrongAddress(SECRET, status=404), 502, "upstream_error", "rejected", 404),
        (InvalidResponse(SECRET), 502, "upstream_error", "upstream_error", 502),
        (UpstreamBroken(SECRET), 502, "upstream_error", "upstream_error", 502),
        (HeadTimeout(SECRET), 504, "upstream_timeout", "timeout", 504),
        (FirstTokenTimeout(SECRET), 504, "upstream_timeout", "timeout", 504),
        (IdleTimeout(SECRET), 504, "upstream_timeout", "timeout", 504),
    ],
)
def test_a_targets_failure(error: BackendError, http, code, status, logged) -> None:
    told = upstream_failure(error)
    assert (told.row.status, told.row.code) == (http, code)
    assert SECRET not in told.message
    assert status_of(error) == (status, logged)


def test_a_wrong_address_is_named_as_ours() -> None:
    assert "`base_url`" in upstream_failure(WrongAddress(SECRET, status=404)).message


def test_every_failure_names_its_target_and_what_to_do() -> None:
    kinds = {kind.kind: kind for kind in BackendError.__subclasses__()}
    assert set(FAILURES) == set(kinds)
    for kind in kinds.values():
        for error in (kind(SECRET), kind(SECRET, status=418), kind(SECRET, retry_after_s=2.5)):
            told = upstream_failure(error, "openai/gpt-4o", ["pool:a/0", "pool:a/0"])
            assert told.backend == "openai/gpt-4o"
            assert told.message.startswith("Upstream `openai/gpt-4o` ")
            assert told.message.count("after `pool:a/0` failed") == 1
            assert SECRET not in told.message
            assert ("418" in told.message) is (error.status == 418)
            cure = told.message.partition(" failed. ")[2]
            assert any(
                word in cure
                for word in ("Retry", "Name another model", "or name another model", "Shorten")
            )
            if told.retry_after_s == 2.5 and "Retry" in cure:
                assert "Retry after 3 s." in cure


def test_what_cannot_pass_is_not_retried_unless_another_target_may_answer() -> None:
    """Red before: the text said so, and SDKs asked twice more."""
    incurable = {kind for kind, failure in FAILURES.items() if failure.cure}
    assert incurable == {"refused_credentials", "wrong_address", "too_long", "filtered"}
    for kind in BackendError.__subclasses__():
        told = upstream_failure(kind(SECRET, retry_after_s=2.5), "api")
        assert told.retry is (False if kind.kind in incurable else None)
        assert not (told.retry is False and told.retry_after_s)

    def refused() -> RequestError:
        return upstream_failure(UpstreamRejected(SECRET), "api")

    assert after_earlier(refused(), None, []).retry is False
    assert after_earlier(refused(), refused(), []).retry is False
    assert after_earlier(refused(), upstream_failure(ServerError("x"), "b"), []).retry is None
    for reason, retry in ((Reason.CIRCUIT_OPEN, None), (Reason.KV_HEADROOM, None),
                          (Reason.CONTEXT, False)):  # fmt: skip
        verdicts = [SimpleNamespace(reason=reason)]
        assert after_earlier(refused(), None, verdicts).retry is retry


def test_an_overloaded_target_says_when_to_come_back() -> None:
    assert upstream_failure(UpstreamOverloaded("x", retry_after_s=7.0)).retry_after_s == 7.0
    assert (
        upstream_failure(UpstreamOverloaded("x")).retry_after_s
        == upstream_failure(DispatchSuperseded("x")).retry_after_s
        == 1.0
    )
    assert upstream_failure(ServerError("x")).retry_after_s is None


def test_a_spent_budget_is_named_with_its_reset_and_not_hammered() -> None:
    told = over_budget(BudgetRefusal("team:search@month", 10, 0, 0, 1_796_083_200_000_000))
    assert (told.row.status, told.retry) == (429, False)
    assert "`team:search@month`" in told.message
    assert "2026-12-01 00:00 UTC" in told.message


@pytest.mark.parametrize(
    ("scope", "room", "bound", "words"),
    [
        ("team:a@day", 2 * 10**9, 9 * 10**9, "up to $0.009, and $0.002 is left: a lower `max_tok"),
        ("global@month", 2 * 10**9, 9 * 10**9, "It may cost up to $0.009: a lower `max_tokens`"),
        ("team:a@day", 0, 9 * 10**9, "UTC."),
        ("team:a@day", 2 * 10**9, None, "UTC."),
    ],
)
def test_a_request_that_could_be_smaller_is_told_what_would_fit(scope, room, bound, words) -> None:
    """Of a budget of the whole house a key knows whether anything is left, and no more."""
    told = over_budget(BudgetRefusal(scope, 10**10, room, 0, 1_796_083_200_000_000), bound)
    assert words in told.message
    assert ("is left" in told.message) == ("and $" in words)
    assert told.message.endswith("UTC.") == (words == "UTC.")


@pytest.mark.parametrize("scope", ["tag:run=r1@day", "tag:run@day", "tag:app=web@day"])
def test_what_is_left_of_a_value_that_the_request_named_is_not_told(scope) -> None:
    """Red before: whoever named another team's run was told what that had left."""
    refusal = BudgetRefusal(scope, 10**10, 2 * 10**9, 0, 1_796_083_200_000_000)
    assert "is left" in over_budget(refusal, 9 * 10**9).message
    told = over_budget(refusal, 9 * 10**9, named=frozenset(("run",)))
    assert ("is left" in told.message) == ("app" in scope)
    assert "It may cost up to $0.009" in told.message


@pytest.mark.parametrize("kind", RequestKind)
def test_a_smaller_request_is_one_of_its_own_members(kind: RequestKind) -> None:
    refusal = BudgetRefusal("team:a@day", 10**10, 2 * 10**9, 0, 1_796_083_200_000_000)
    told = over_budget(refusal, 9 * 10**9, kind).message
    answers = (RequestKind.CHAT, RequestKind.COMPLETION)
    assert ("`max_tokens`" in told) == (kind in answers)
    assert told.endswith(" may fit.")


@pytest.mark.parametrize(("bound", "retry_after_s"), [(7, 1.0), (8, None), (None, None)])
def test_a_budget_that_is_held_and_not_spent_may_be_tried_again(bound, retry_after_s) -> None:
    refusal = BudgetRefusal("team:search@month", 10, 0, 0, 1_796_083_200_000_000, unspent_pusd=7)
    told = over_budget(refusal, bound)
    assert told.retry_after_s == retry_after_s
    assert (told.retry is False) == ("until it resets" in told.message) == (retry_after_s is None)


ANSWERS = {
    Reason.MODEL: (400, "invalid_request_error"),
    Reason.FEATURE: (400, "invalid_request_error"),
    Reason.CONTEXT: (400, "invalid_request_error"),
    Reason.UNPRICED: (400, "invalid_request_error"),
    Reason.PARTLY_PRICED: (400, "invalid_request_error"),
    Reason.PRICE_CAP: (400, "invalid_request_error"),
    Reason.RESIDENCY: (403, "permission_error"),
    Reason.SALT: (403, "permission_error"),
    Reason.CONTENT: (403, "permission_error"),
    Reason.CANARY: (400, "invalid_request_error"),
    Reason.CANDIDATES: (400, "invalid_request_error"),
    Reason.QUALITY: (400, "invalid_request_error"),
}
AWAY = {
    Reason.CIRCUIT_OPEN, Reason.UNHEALTHY, Reason.LOADING, Reason.DRAINING, Reason.UNKNOWN_STATE,
    Reason.DISABLED,
}  # fmt: skip
NEVER_REFUSED_FOR = {
    Reason.CHEAPEST, Reason.STICKY, Reason.ONLY, Reason.BEST_EFFORT, Reason.COSTLIER,
    Reason.BID_PRICE, Reason.BUSIER, Reason.WEIGHT,
}  # fmt: skip


PLAIN = SimpleNamespace(members={}, asked_by={}, native=None)


def nothing_feasible(reason: Reason, *verdicts: Reason) -> RequestError:
    candidate = SimpleNamespace(name="pool:a/0", api=None, features=frozenset())
    lost = tuple(
        SimpleNamespace(reason=verdict, candidate=candidate, detail=f"why {verdict}")
        for verdict in verdicts
    )
    decision = Decision("p", (), lost, reason, InfeasibleAction.REJECT)
    request = SimpleNamespace(kind=RequestKind.CHAT, features=frozenset({Feature.TOOLS}))
    return infeasible(
        SimpleNamespace(decision=decision, model="chat", request=request, asked=PLAIN)
    )


def test_each_target_is_named_with_its_reason_in_words() -> None:
    """A client read `none:unhealthy otherwise=reject`."""
    told = nothing_feasible(Reason.UNHEALTHY, *[Reason.UNHEALTHY] * 7).message
    assert told.count("pool:a/0: engine down (unhealthy)") == 5
    assert told.endswith("; and 2 more.")
    assert "otherwise" not in told


@pytest.mark.parametrize("reason", [item for item in Reason if item not in NEVER_REFUSED_FOR])
def test_only_what_passes_by_itself_invites_to_come_back(reason: Reason) -> None:
    told = nothing_feasible(reason, reason, reason)
    permanent = ANSWERS.get(reason)
    passing = (503, "server_error") if reason in AWAY else (429, "rate_limit_error")
    assert told.row[:2] == (permanent or passing)
    assert told.retry is (False if permanent else None)
    assert told.retry_after_s == (None if permanent else 1.0)
    assert "`chat`" in told.message


@pytest.mark.parametrize("full", [Reason.RATE_LIMIT, Reason.KV_HEADROOM, Reason.TTFT, Reason.TPOT])
def test_a_target_without_room_beside_one_that_is_away_is_a_rate_limit(full: Reason) -> None:
    assert nothing_feasible(Reason.LOADING, Reason.LOADING, full).row.status == 429
    assert nothing_feasible(full, Reason.LOADING, full).row.status == 429
    assert nothing_feasible(Reason.LOADING, Reason.LOADING, Reason.MODEL).row.status == 503


def test_what_no_wait_changes_is_what_the_router_says_it_is() -> None:
    assert set(ANSWERS) == PERMANENT


def test_a_model_without_targets_is_not_worth_one() -> None:
    assert nothing_feasible(Reason.MODEL).row.status == 400


def test_a_feature_that_nobody_offers_is_named_by_its_member() -> None:
    def verdict(*features: Feature) -> SimpleNamespace:
        candidate = SimpleNamespace(features=frozenset(features))
        return SimpleNamespace(reason=Reason.FEATURE, candidate=candidate)

    asked = SimpleNamespace(
        kind=RequestKind.CHAT, features=frozenset({Feature.STORE, Feature.JSON_SCHEMA, Feature.N})
    )
    small = SimpleNamespace(reason=Reason.CONTEXT, candidate=None)

    def told(*verdicts: SimpleNamespace) -> RequestError:
        decision = Decision("p", (), verdicts, Reason.FEATURE, InfeasibleAction.REJECT)
        plan = SimpleNamespace(decision=decision, model="chat", request=asked, asked=PLAIN)
        return infeasible(plan)

    closest = told(verdict(), small, verdict(Feature.N, Feature.JSON_SCHEMA))
    assert (closest.row.status, closest.param) == (400, "store")
    assert "`store`" in closest.message
    assert "`response_format`" not in closest.message
    assert "`features: [store]`" in closest.message
    two = told(verdict(Feature.N))
    assert (two.param, two.row.code) == ("response_format", "unsupported_parameter")
    assert "`response_format`, `store`" in two.message


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({Feature.MEDIA_URLS}, "`data:` address in Base64, name a model"),
        ({Feature.IMAGES, Feature.MEDIA_URLS}, "pictures or sound in `messages`"),
        ({Feature.FILES}, "documents in `messages`"),
        ({Feature.MEDIA_URLS, Feature.TOOLS}, "Leave `messages`, `tools` out"),
    ],
)
def test_of_media_the_way_round_is_told(features, words) -> None:
    """The messages of a chat cannot be left out, and nothing said what of them was meant."""
    lacking = SimpleNamespace(reason=Reason.FEATURE, candidate=SimpleNamespace(features=set()))
    decision = Decision("p", (), (lacking,), Reason.FEATURE, InfeasibleAction.REJECT)
    request = SimpleNamespace(kind=RequestKind.CHAT, features=frozenset(features))
    plan = SimpleNamespace(decision=decision, model="m", request=request, asked=PLAIN)
    assert words in infeasible(plan).message


def test_every_feature_has_a_member_that_asks_for_it() -> None:
    for feature in Feature:
        lacking = SimpleNamespace(reason=Reason.FEATURE, candidate=SimpleNamespace(features=set()))
        decision = Decision("p", (), (lacking,), Reason.FEATURE, InfeasibleAction.REJECT)
        request = SimpleNamespace(kind=RequestKind.CHAT, features=frozenset({feature}))
        asked = SimpleNamespace(members={}, asked_by={}, native=None)
        plan = SimpleNamespace(decision=decision, model="m", request=request, asked=asked)
        assert infeasible(plan).param
    plan.request.features = frozenset({Feature.HOSTED_TOOLS})
    plan.asked.members["web_search_options"] = b"{}"
    assert infeasible(plan).param == "web_search_options"
    plan.asked.asked_by = {Feature.HOSTED_TOOLS: "messages[1].content[0]"}
    assert infeasible(plan).param == "messages[1].content[0]"


def test_what_only_its_own_dialect_says_is_refused_as_chat_refuses_it() -> None:
    """By a model without a target that speaks it; one that has it is told what else it lacks."""
    refusal = RequestError("unsupported", "no form", param="tools[0]")
    asked = SimpleNamespace(members={}, asked_by={}, native=NativeRequest({}, refusal=refusal))
    needed = frozenset({Feature.MESSAGES, Feature.HOSTED_TOOLS})

    def told(*features: Feature) -> RequestError:
        candidate = SimpleNamespace(features=set(features))
        lacking = SimpleNamespace(reason=Reason.FEATURE, candidate=candidate)
        decision = Decision("p", (), (lacking,), Reason.FEATURE, InfeasibleAction.REJECT)
        request = SimpleNamespace(kind=RequestKind.CHAT, features=needed)
        return infeasible(
            SimpleNamespace(decision=decision, model="m", request=request, asked=asked)
        )

    assert told() is refusal
    assert told(Feature.HOSTED_TOOLS) is refusal
    assert "hosted_tools" in told(Feature.MESSAGES).message


def test_the_first_limit_with_room_again_is_named() -> None:
    def lost(reason: Reason, wait_s: float | None) -> SimpleNamespace:
        api = None if wait_s is None else SimpleNamespace(retry_after_s=wait_s)
        return SimpleNamespace(
            reason=reason, candidate=SimpleNamespace(name="x", api=api), detail=""
        )

    def told(*verdicts: SimpleNamespace):
        decision = Decision("p", (), verdicts, Reason.RATE_LIMIT, InfeasibleAction.REJECT)
        return infeasible(SimpleNamespace(decision=decision, model="chat"))

    limits = lost(Reason.RATE_LIMIT, 31.0), lost(Reason.CIRCUIT_OPEN, 12.5)
    assert told(*limits).retry_after_s == 12.5
    assert "there is room in 12.5 s" in told(*limits).message
    assert told(*limits, lost(Reason.PRICE_CAP, 0.0)).retry_after_s == 12.5
    assert told(*limits, lost(Reason.KV_HEADROOM, None)).retry_after_s == 1.0
    assert told(lost(Reason.RATE_LIMIT, 0.02)).retry_after_s == 1.0


@pytest.mark.parametrize(
    ("kind", "param"),
    [
        (RequestKind.CHAT, "max_tokens"),
        (RequestKind.RERANK, "documents"),
        (RequestKind.TRANSCRIPTION, "file"),
    ],
)
def test_what_is_too_dear_names_the_member_that_makes_it_so(kind: RequestKind, param: str) -> None:
    candidate = SimpleNamespace(name="x")
    lost = SimpleNamespace(reason=Reason.PRICE_CAP, candidate=candidate, detail="$2 > $1")
    decision = Decision("p", (), (lost,), Reason.PRICE_CAP, InfeasibleAction.REJECT)
    request = SimpleNamespace(kind=kind, features=frozenset())
    error = infeasible(SimpleNamespace(decision=decision, model="m", request=request))
    assert (error.param, error.retry) == (param, False)
    assert "x: " in error.message
    assert "(price_cap: $2 > $1). " in error.message
    assert "otherwise" not in error.message


def test_a_price_that_is_partly_known_is_named_with_the_fix() -> None:
    lost = (Reason.PARTLY_PRICED, Reason.CANARY, Reason.PARTLY_PRICED)
    told = nothing_feasible(Reason.PARTLY_PRICED, *lost)
    assert (told.row.status, told.param) == (400, "model")
    assert told.message.startswith("No target of `chat` can serve this: why partly_priced. ")
    assert told.message.endswith("ask for what is missing to be stated in a price file.")


def test_an_answer_that_an_overloaded_target_broke_off_says_so() -> None:
    told = upstream_failure(broken_by(UpstreamOverloaded(SECRET, retry_after_s=7.0)), "api")
    assert (told.kind, told.retry_after_s) == ("overloaded", 7.0)
    assert told.message == (
        "Upstream `api` broke off its answer because it is overloaded. Retry after 7 s."
    )
    other = upstream_failure(broken_by(ServerError(SECRET)), "api")
    assert (other.kind, other.retry_after_s) == ("upstream", None)
