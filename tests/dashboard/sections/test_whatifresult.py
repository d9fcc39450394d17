"""A what-if's figures on the page are the document's: of a replay that was really played."""

import random

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.sections import whatifresult
from gateway.config.settings import parse
from gateway.whatif.replay_fleet import ReplayFleet, engine_models
from gateway.whatif.traffic import Arrival
from gateway.whatif.whatif_run import run_whatif
from ledger.prices.book import Price, PriceBook, PriceTerms
from ledger.prices.rates import rates_from

CONFIG = """
models: {chat: {targets: [pool:chat, openai/mini], compare_with: [openai/mini]}}
pools:
  chat:
    engine: {kind: simulated, model: h100-llama-3.1-8b-fp8, replicas: 1}
    gpu: {type: H100%s}
providers: {openai: {api_key_env: X}}
policies: [%s]
"""
TIGHT = "{name: tight, slo: {ttft_ms: 500, tpot_ms: 50, attainment: 0.99}}"
LOOSE = "{name: loose, candidates: [openai/mini], slo: {ttft_ms: 9000, tpot_ms: 90}}"
RATES = rates_from({"input": 150_000, "output": 600_000})
PRICES = PriceBook([Price(1, "openai/mini", "ours", 0, PriceTerms(RATES))])


def played(*rules: str, rate: str = ", usd_per_hour: 3", count: int = 200) -> dict:
    rng, at_s, arrivals = random.Random(1), 0.0, []
    for _ in range(count):
        at_s += rng.expovariate(25.0)
        arrivals.append(Arrival(at_s, rng.randrange(50, 2_000), rng.randrange(5, 300), "chat"))
    known = [parse(CONFIG % (rate, rule), name="test") for rule in rules]
    house = ReplayFleet(known[0], PRICES, engine_models(known[0], ["chat"], {}, []), {}, 10**15)
    names = ("this set", "in force")
    sets = list(zip(names, known, strict=False))
    document = run_whatif(house, sets, arrivals, 1, lambda _name, _done: None)
    about = {"source": "ledger, last-24-hours", "left_out": 3, "times": 1.0, "cut": False}
    document["traffic"] |= about
    return document


@pytest.fixture(scope="module")
def document() -> dict:
    return played(TIGHT, LOOSE)


def draw_it(document: dict) -> None:
    from dashboard.sections import whatifresult  # noqa: PLC0415  (the harness runs this body as a script)

    whatifresult.draw_result(document)


def drawn(document: dict) -> AppTest:
    test = AppTest.from_function(draw_it, kwargs={"document": document}, default_timeout=60).run()
    assert not test.exception, test.exception
    return test


def test_the_cards_say_what_the_document_says(document, text_of) -> None:
    text = text_of(drawn(document))
    new, old = document["results"]
    assert f"${new['dollars']['total_usd']:.4f}" in text
    assert f"{100 * new['spill']['share_by_count']:.1f} %" in text
    assert f"{100 * whatifresult.attainment_of(old):.1f} %" in text
    moved = document["disagreement"]["moved"]
    assert moved > 0
    assert f"{moved} of 200 requests" in text


def test_every_figure_of_the_charts_is_the_documents(document) -> None:
    results = document["results"]
    total = sum(dollar["usd"] for dollar in whatifresult.dollars(results))
    assert total == pytest.approx(sum(result["dollars"]["total_usd"] for result in results))
    shares = {
        (kept_value["kind"], kept_value["row"]): kept_value["share"]
        for kept_value in whatifresult.attainment_rows(results)
    }
    assert shares == {
        ("this set", "tight"): results[0]["classes"][0]["attainment"],
        ("in force", "loose"): results[1]["classes"][0]["attainment"],
    }
    spilled = {
        (item["kind"], item["row"]): item["share"] for item in whatifresult.spill_rows(results)
    }
    assert spilled["this set", "by value"] == results[0]["spill"]["share_by_value"]
    loads = whatifresult.loads(document, "chat")
    assert len(loads) == sum(len(result["load"]) for result in results)
    assert max(load["kv_ratio"] for load in loads) == max(
        item["kv_ratio"] for each in results for item in each["load"]
    )
    assert (
        sum(flow["requests"] for flow in whatifresult.flow_rows(document))
        == (document["disagreement"]["moved"])
    )
    assert whatifresult.time_title(document) == "minutes from the first request"


def test_the_rest_of_it_is_told(document) -> None:
    notes = " ".join(whatifresult.notes(document))
    assert "200 requests of ledger, last-24-hours" in notes
    assert "3 requests of that time got no answer" in notes
    assert "profile h100-llama-3.1-8b-fp8" in notes
    rows = whatifresult.examples(document)
    assert rows[0]["why now"]
    assert {"from", "to", "team"} <= rows[0].keys()


def test_a_set_alone_has_nothing_to_disagree_with(text_of) -> None:
    text = text_of(drawn(played(TIGHT, count=20)))
    assert "Played" in text
    assert "Where they disagree" not in text


@pytest.mark.long
def test_the_same_set_twice_moves_nothing() -> None:
    test = drawn(played(TIGHT, TIGHT, count=20))
    assert "Both sent every request to the same place." in [note.value for note in test.info]


def test_own_hardware_without_a_rate_is_never_free(text_of) -> None:
    text = text_of(drawn(played(TIGHT, rate="", count=20)))
    assert "whose rate nobody entered" in text
    assert "enter your GPU rate" in text
