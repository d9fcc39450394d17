"""Differences by day and model, and causes that can explain them and no others."""

from datetime import date

import pytest

from ledger.invoices.files import InvoiceLine
from ledger.invoices.reconcile import (
    ADJUSTED,
    ALL_MODELS,
    RETIRED,
    BookedCost,
    DifferenceCause,
    by_day_and_model,
    by_key,
    map_projects,
    model_of,
    rounding_pusd,
)

DAY, NEXT = date(2026, 11, 3), date(2026, 11, 4)
USD = 10**12


def line(pusd, item="gpt-4o, input", day=DAY, project=None):
    return InvoiceLine(day, item, pusd, project)


def booked(pusd, day=DAY, model="gpt-4o", **more):
    return BookedCost(day, model, "search", pusd, **{"attempts": 3, **more})


def causes(lines, books, *, places=6):
    rows = by_day_and_model(lines, books, places=places)
    return [row.causes for row in rows[DAY]]


@pytest.mark.parametrize(
    ("item", "model"),
    [
        ("gpt-4o-mini-2024-07-18, input", "gpt-4o-mini"),
        ("GPT-4o-mini", "gpt-4o-mini"),
        ("openai/gpt-4o-latest, cached input", "gpt-4o"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("Web search tool calls", "web search tool calls"),
    ],
)
def test_a_snapshot_and_a_kind_are_no_model_of_their_own(item, model):
    assert model_of(item) == model


def test_lines_of_one_model_are_added_and_compared_with_its_attempts():
    lines = [line(2 * USD), line(3 * USD, "gpt-4o-2024-08-06, output"), line(7, "other")]
    rows = by_day_and_model(lines, [booked(5 * USD)], places=6)[DAY]
    assert [(row.key, row.difference_pusd, row.attempts) for row in rows] == [
        ("gpt-4o", 0, 3),
        ("other", 7, 0),
    ]
    assert rows[0].causes == ()


def test_a_bill_of_days_alone_is_held_against_all_models_of_a_day():
    """By model, each of its days once was traffic from elsewhere, and each booking not billed."""
    lines = [line(6 * USD, ""), line(9 * USD, "", day=NEXT)]
    books = [booked(2 * USD), booked(4 * USD, model="gpt-4o-mini"), booked(8 * USD, day=NEXT),
             booked(USD, day=NEXT, model=ADJUSTED, attempts=0)]  # fmt: skip
    rows = by_day_and_model(lines, books, places=6)
    assert [(row.key, row.difference_pusd, row.attempts) for row in rows[DAY]] == [
        (ALL_MODELS, 0, 6)
    ]
    assert {row.key for row in rows[NEXT]} == {ALL_MODELS, ADJUSTED}
    assert all(row.causes == (DifferenceCause.POSTED,) for row in rows[NEXT])
    named = by_day_and_model([*lines, line(1, "gpt-4o")], books, places=6)
    assert "gpt-4o" in {row.key for row in named[DAY]}, "a bill that names models is read by model"


def test_a_bill_of_days_alone_counts_what_was_retired_without_its_models():
    """The day agreed, and was shown as traffic from elsewhere beside bookings not billed."""
    books = [booked(2 * USD), booked(3 * USD, model=RETIRED)]
    rows = by_day_and_model([line(5 * USD, "")], books, places=6)[DAY]
    assert [(row.key, row.difference_pusd) for row in rows] == [(ALL_MODELS, 0)]


def test_half_of_the_last_place_a_line_is_rounding():
    assert rounding_pusd(2, 3) == 3 * USD // 200 + 1
    assert causes([line(USD)], [booked(USD + USD // 200)], places=2) == [
        (DifferenceCause.ROUNDING,)
    ]
    assert causes([line(USD)], [booked(USD + USD // 150)], places=2) == [
        (DifferenceCause.UNEXPLAINED,)
    ]


@pytest.mark.parametrize(
    ("invoiced", "books", "expected"),
    [
        (9, booked(10, uncertain_pusd=2, uncertain=1), DifferenceCause.CANCELLED),
        (7, booked(10, uncertain_pusd=2, uncertain=1), DifferenceCause.UNEXPLAINED),
        (11, booked(10, uncertain_pusd=2, uncertain=1), DifferenceCause.UNEXPLAINED),
        (9, booked(10, lost_pusd=1, lost=1), DifferenceCause.LOST),
        (11, booked(10, failed=1), DifferenceCause.RETRIES),
        (9, booked(10, failed=1), DifferenceCause.UNEXPLAINED),
        (11, booked(10, unpriced=1), DifferenceCause.UNPRICED),
    ],
)
def test_a_cause_explains_one_sign_up_to_its_amount(invoiced, books, expected):
    assert causes([line(invoiced * 1000)], [scaled(books)], places=12) == [(expected,)]


def scaled(item):
    return BookedCost(
        item.day, item.model, item.project, item.booked_pusd * 1000, item.attempts,
        item.uncertain_pusd * 1000, item.uncertain, item.lost_pusd * 1000, item.lost, item.failed,
        item.unpriced,
    )  # fmt: skip


def test_traffic_that_passed_elsewhere_and_what_nobody_invoiced():
    assert causes([line(USD)], []) == [(DifferenceCause.NOT_IN_BOOKS,)]
    assert causes([], [booked(USD)]) == [(DifferenceCause.NOT_INVOICED,)]


def test_what_one_day_lacks_and_the_next_has_too_much_is_the_clock():
    lines = [line(8 * USD), line(12 * USD, day=NEXT)]
    assert causes(lines, [booked(10 * USD), booked(10 * USD, NEXT)]) == [(DifferenceCause.DAY,)]


def test_sums_by_any_key_with_the_greatest_difference_first():
    lines = map_projects([line(5, project="p1"), line(50, project="p2")], {"p1": "search"})
    rows = by_key(lines, [booked(4)], (lambda item: item.project, lambda item: item.project))
    assert [(row.key, row.invoiced_pusd, row.booked_pusd) for row in rows] == [
        ("p2", 50, 0),
        ("search", 5, 4),
    ]


def test_what_was_posted_for_a_day_leaves_nothing_unexplained():
    """An adjustment is of no model: the model's row stood there as unexplained for ever."""
    lines = [line(5 * USD), line(7 * USD, "same")]
    books = [booked(3 * USD), booked(7 * USD, model="same")]
    adjusted = booked(2 * USD, model=ADJUSTED, attempts=0)
    assert causes(lines, books) == [(DifferenceCause.UNEXPLAINED,), ()], "the control: not posted"
    assert causes(lines, [*books, adjusted]) == [
        (DifferenceCause.POSTED,),
        (DifferenceCause.POSTED,),
        (),
    ]
    half = booked(USD, model=ADJUSTED, attempts=0)
    assert DifferenceCause.UNEXPLAINED in causes(lines, [*books, half])[1], "another dollar is owed"
    known = [booked(3 * USD, unpriced=1), adjusted]
    assert causes(lines[:1], known)[1] == (DifferenceCause.UNPRICED, DifferenceCause.POSTED)


def test_an_adjustment_is_no_traffic_that_passed_elsewhere():
    """Of a credit note the posted adjustment stood as traffic that the gateway never saw."""
    lines, adjusted = [line(-USD)], booked(-USD, model=ADJUSTED, attempts=0)
    assert causes(lines, [adjusted]) == [(DifferenceCause.POSTED,), (DifferenceCause.POSTED,)]
    half = booked(-USD // 2, model=ADJUSTED, attempts=0)
    assert causes(lines, [half])[0] == (), "it is posted, and explains no rest"
