"""Sticky sessions in virtual time: they stay, and what that costs is told in dollars."""

from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.stickiness_cost import StickinessCost
from gateway.whatif.tables import notes, tables
from gateway.whatif.traffic import Arrival
from gateway.whatif.whatif_run import run_whatif
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.types import Candidate, Verdict

ONE = Arrival(0.0, 100, 10, "chat", "search", session="s")


def verdict(name: str, reason: Reason, expected: int) -> Verdict:
    made = Candidate(
        name=name, pool=None, features=frozenset(), kinds=frozenset(RequestKind), context_tokens=1,
        internal=False, expected_pusd=expected, bound_pusd=None, avoided_pusd=0,
    )  # fmt: skip
    return Verdict(made, True, reason, "")


def test_a_session_stays_and_pays_what_the_better_target_would_have_saved() -> None:
    holding = StickinessCost()
    assert holding.target("chat", ONE) is None
    first = [verdict("dear", Reason.CHEAPEST, 900), verdict("cheap", Reason.COSTLIER, 300)]
    holding.record_choice("chat", ONE, first, 0)
    assert holding.target("chat", ONE) == "dear"
    assert holding.target("chat", ONE._replace(tenant="ads")) is None
    held = [verdict("dear", Reason.STICKY, 900), verdict("cheap", Reason.STICKY, 300)]
    holding.record_choice("chat", ONE, held, 0)
    best = [verdict("dear", Reason.STICKY, 900), verdict("cheap", Reason.COSTLIER, 950)]
    holding.record_choice("chat", ONE, best, 0)  # the session's is the best one anyway
    assert holding.document() == {"requests": 3, "held": 1, "api_usd_more": 600 / 1e12}


def test_who_has_no_session_is_not_counted() -> None:
    holding = StickinessCost()
    order = [verdict("dear", Reason.STICKY, 900), verdict("cheap", Reason.STICKY, 300)]
    holding.record_choice("chat", ONE._replace(session=""), order, 0)
    assert holding.document()["requests"] == 0


def test_sessions_are_held_in_a_trial_and_its_tables_say_so(house, under, poisson) -> None:
    plain = poisson(40.0, 600)
    arrivals = [item._replace(session=f"s{number % 40}") for number, item in enumerate(plain)]
    settings = under("tight")
    sticky = {"chat": settings.models["chat"].model_copy(update={"sticky": "session"})}
    house.settings.models.update(sticky)
    try:
        document = run_whatif(house, [("new", settings)], arrivals, 1, lambda *_: None)
        (without,) = run_whatif(house, [("new", settings)], plain, 1, lambda *_: None)["results"]
    finally:
        house.settings.models["chat"] = settings.models["chat"]
    found = document["results"][0]["sessions"]
    assert found["requests"] > 500
    assert found["held"] > 0 < found["api_usd_more"]
    assert document["results"][0]["dollars"]["api_usd"] > without["dollars"]["api_usd"]
    assert without["sessions"]["requests"] == 0
    document["traffic"] |= {"source": "x", "form": "ours", "left_out": 0, "times": 1.0}
    assert any(title.startswith("Sessions") for title, _, _ in tables(document))
    assert "failures, hang-ups" in notes(document)[-1], "sessions are played"


def test_without_stickiness_a_session_goes_where_it_is_best(house, under) -> None:
    planned = PolicyReplay(house, under("tight"), 1.0)
    planned.choose(ONE, planned.seats, 0.0, 0)
    assert planned.holding.document()["held"] == 0
