"""Policies in virtual time do what they do live: keep inside, wait, refuse, cut."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from gateway.config.settings import Settings
from gateway.whatif.apis import draw_latencies
from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.replay import Replay, ReplayOutcome
from gateway.whatif.replay_fleet import ReplayClock, ReplayFleet, engine_models
from gateway.whatif.traffic import Arrival
from gateway.whatif.whatif_run import run_whatif
from ledger.fleet.pool_records import CapacityRow
from ledger.prices.book import PriceBook
from ledger.queries.traffic import RecordedLength


def test_what_may_not_leave_is_refused_or_waits(house, under, poisson) -> None:
    arrivals = poisson(20.0, 200, ("inside",))
    sets = [("queued", under("queued")), ("alone", under("alone"))]
    queued, alone = run_whatif(house, sets, arrivals, 1, lambda *_: None)["results"]
    assert alone["dollars"]["api_usd"] == queued["dollars"]["api_usd"] == 0.0
    assert alone["classes"][0]["refused"] > queued["classes"][0]["refused"]
    assert alone["classes"][0]["waited_ms_mean"] == 0.0 < queued["classes"][0]["waited_ms_mean"]
    assert [each["target"] for each in alone["targets"]] == ["pool:chat/0", "refused"]


def test_who_may_not_leave_does_not_whatever_the_model_allows(house, under, poisson) -> None:
    arrivals = [
        item._replace(inside=number % 2 == 0) for number, item in enumerate(poisson(60, 400))
    ]
    planned = PolicyReplay(house, under("loose"), arrivals[-1].at_s)
    apis = {"openai/mini": draw_latencies(len(arrivals), house.seen["openai/mini"].latency, 1)}
    seen = Replay(planned.seats, {}, arrivals, (), apis=apis).run(planned)
    left = [event.arrival.inside for event in seen if event.choice and event.choice.api]
    assert left  # the others' traffic does
    assert not any(left)


def test_a_prompt_that_no_engine_can_hold_goes_elsewhere(house, under, poisson) -> None:
    longer = house.engines["chat"].shape.context_tokens + 10
    (arrival,) = poisson(1.0, 1)
    planned = PolicyReplay(house, under("loose"), 1.0)
    replay = Replay(planned.seats, {}, [arrival._replace(prompt_tokens=longer)], [])
    choice = planned.choose(replay.arrivals[0], planned.seats, 0.0, 0)
    assert (choice.seat, choice.api) == (None, "openai/mini")


def test_what_a_client_allows_ends_an_answer(house, under, poisson) -> None:
    (arrival,) = poisson(1.0, 1)
    asked = arrival._replace(output_tokens=500, max_tokens=7)
    planned = PolicyReplay(house, under("tight"), 1.0)
    (outcome,) = Replay(planned.seats, {}, [asked], []).run(planned)
    assert (outcome.engine, outcome.arrival.output_tokens) == ("pool:chat/0", 7)


def test_a_day_keeps_its_hours_at_any_speed(house, under) -> None:
    """One request an hour, four times as fast: of a day in summer, told in winter."""
    from_us = int(datetime(2026, 7, 6, tzinfo=ZoneInfo("Europe/Berlin")).timestamp() * 1e6)
    times = [{"starts": "09:00", "ends": "17:00", "timezone": "Europe/Berlin"}]
    rules = under("tight").model_dump(mode="json")
    work = {"name": "work", "match": {"times": times}}
    policies = [work, {"name": "rest"}]
    settings = Settings.model_validate({**rules, "policies": policies})
    winter = int(datetime(2026, 12, 7, tzinfo=UTC).timestamp() * 1e6)
    there = ReplayFleet(settings, house.prices, house.engines, {}, winter)
    there.calendar = ReplayClock(from_us, 4.0)
    arrivals = [Arrival(900.0 * hour, 100, 5, "chat") for hour in range(24)]
    planned = PolicyReplay(there, settings, arrivals[-1].at_s)
    outcomes = Replay(planned.seats, {}, arrivals, []).run(planned)
    names = [outcome.choice.told.rule for outcome in outcomes]
    assert names == ["rest"] * 9 + ["work"] * 8 + ["rest"] * 7


def test_a_price_that_is_partly_known_is_refused_under_a_cap(house, under, poisson) -> None:
    """As live: the prompt fits no engine, and the API's price does not say all."""
    (priced,) = house.prices.prices_in_force(0)
    unsaid = replace(priced, terms=replace(priced.terms, unread=("page_cost",)))
    rules = under("loose").model_dump(mode="json")
    longer = house.engines["chat"].shape.context_tokens + 10
    (arrival,) = poisson(1.0, 1)
    found = []
    for price in (priced, unsaid):
        capped = {**rules, "policies": [{"name": "capped", "max_usd_per_request": 5}]}
        settings = Settings.model_validate(capped)
        there = ReplayFleet(settings, PriceBook([price]), house.engines, {}, 10**15)
        planned = PolicyReplay(there, settings, 1.0)
        asked = arrival._replace(prompt_tokens=longer)
        choice = planned.choose(asked, planned.seats, 0.0, 0)
        found.append((choice.api, choice.refused))
    assert found == [("openai/mini", False), ("", True)]


def test_who_cannot_spill_is_served_as_live_where_the_context_is_known(house, under) -> None:
    """Red before: the whole KV cache was taken for the context, and all of a class was refused."""
    settings = under("tight").model_dump(mode="json")
    settings["pools"]["chat"]["engine"] = {"model": "/m", "replicas": 1}
    settings["policies"] = [{"name": "floor", "kv_headroom_floor": 0.05}]
    known = Settings.model_validate(settings)
    step = house.engines["chat"].shape.step
    refused = []
    for context in (None, 8_192):
        row = CapacityRow(
            "chat", "pool:chat/0", 0, 41_392, None, step.a_s, step.b_s, step.c_s, step.d_s,
            step.t0_s, "fitted", 256, context,
        )  # fmt: skip
        there = ReplayFleet(known, house.prices, engine_models(known, ["chat"], {}, [row]), {}, 0)
        arrivals = [Arrival(float(n), 600, 80, "inside") for n in range(60)]
        (result,) = run_whatif(there, [("a", known)], arrivals, 1, lambda *_: None)["results"]
        refused.append(result["classes"][0]["refused"])
        there.lengths = [RecordedLength("inside", "", 600, 80, cut=False)] * 40
        (warm,) = run_whatif(there, [("a", known)], arrivals, 1, lambda *_: None)["results"]
        assert warm["classes"][0]["refused"] == 0, "what the ledger has of lengths is known"
    assert refused == [60, 0]


def test_estimates_that_are_right_let_long_prompts_fit(house, under, poisson) -> None:
    """The margin is learned as live: the last of many prompts fits that the first did not."""
    longest = int(house.engines["chat"].shape.context_tokens / 1.05)
    planned = PolicyReplay(house, under("loose"), 1.0)
    (arrival,) = poisson(1.0, 1)
    asked = arrival._replace(prompt_tokens=longest, output_tokens=1, max_tokens=1)
    fits = []
    for _ in range(200):
        choice = planned.choose(asked, planned.seats, 0.0, 0)
        fits.append(choice.seat is not None)
        planned.on_ended(ReplayOutcome(asked, "pool:chat/0", 0.1, choice=None))
    assert fits[0] is False
    assert fits[-1] is True
