"""A plan as the books have it: expected dollars by engine, advice one row an engine."""

from gateway.scaling.plan_words import advised_changes, document_of, expected_pusd, usd
from router.scaling.plan import (
    ClassForecast,
    EngineWorth,
    FleetAlternative,
    ScalePlan,
    ScaleReason,
)

USD = 10**12


def plan(wanted: int, running: int, *, weighed: bool = True) -> ScalePlan:
    found = tuple(FleetAlternative(n, n * USD, (4 - n) * 3 * USD, 0) for n in range(5))
    return ScalePlan(
        "p", 1_000_000, wanted, running, ("t",), 3600.0, None, EngineWorth(1, None, USD),
        (ClassForecast("chat", 180.0, 2.0, 1.0, 4.0),), found if weighed else (),
        ScaleReason.EARNS_RENT, "words", 2_000_000,
    )  # fmt: skip


def test_each_engine_of_a_change_has_its_part_of_what_is_expected():
    assert expected_pusd(plan(3, 1)) == 2 * USD
    assert expected_pusd(plan(1, 3)) == -2 * USD
    assert expected_pusd(plan(2, 2)) is None
    assert expected_pusd(plan(3, 1, weighed=False)) is None


def test_advice_has_a_row_for_each_engine_in_the_order_of_places():
    started = advised_changes(plan(3, 1), "p")
    assert [(item.verb, item.engines, item.mode) for item in started] == [
        ("start", 2, "advise"), ("start", 3, "advise"),
    ]  # fmt: skip
    assert [(item.verb, item.engines) for item in advised_changes(plan(1, 3), "p")] == [
        ("stop", 3), ("stop", 2),
    ]  # fmt: skip
    assert advised_changes(plan(2, 2), "p") == []
    assert started[0].until_us == 1_000_000 + 3600 * 1_000_000


def test_the_document_holds_what_pages_show_and_unknown_stays_unknown():
    found = document_of(plan(1, 1))
    assert found["last"] is None
    assert found["next"] == {"place": 1, "value_pusd": None, "rent_pusd": USD}
    assert found["forecast"][0]["high"] == 4.0
    assert found["alternatives"][4]["rent_pusd"] == 4 * USD
    assert (usd(None), usd(USD)) == (None, 1.0)
