"""The sentence in other money, of single options, and what would change the verdict."""

from fractions import Fraction

import pytest

from ledger.economics.assumptions import (
    AssumptionSheet,
    ModelAssumption,
    ModelResidency,
    PoolAssumptions,
)
from ledger.economics.fleet_verdict import FleetVerdict, VerdictShift, judge
from ledger.economics.value_curve import TrafficClass, TrafficWindow, ValueCurve
from ledger.economics.verdict_text import describe, dollars_and_cents, sentence, shift_text
from ledger.money import PUSD_PER_USD


def verdict(
    *, rate: Fraction, substitute: str | None = None, movable: bool = True, noun=("GPU", "GPUs")
) -> FleetVerdict:
    """One engine that keeps 100 tokens of $1 in each of two windows, in a month of 720 h."""
    model = ModelAssumption("chat", ModelResidency.MAY_LEAVE, "a/chat", PUSD_PER_USD, substitute)
    pool = PoolAssumptions(
        "p", 1, Fraction(720), rate, ops_pusd_per_week=0, noun=noun, models=(model,)
    )
    curve = ValueCurve(
        (TrafficClass("chat", PUSD_PER_USD, movable),),
        (TrafficWindow((100,), (0,), 2),),
        1,
        100,
        (0,),
    )
    return judge(AssumptionSheet((pool,)), {"p": curve})


def test_the_sentence_is_in_the_readers_money() -> None:
    found = verdict(rate=Fraction(PUSD_PER_USD))

    def euros(pusd) -> str:
        return dollars_and_cents(Fraction(pusd) / 2).replace("$", "EUR ")

    assert sentence(found, euros).startswith("Leave, worth EUR 260.00 a month, because no own GPU")
    assert sentence(found) == (
        "Leave, worth $520.00 a month, because no own GPU and all of it at APIs cost $200.00 and 1 "
        "costs $720.00."
    )


def test_keeping_names_the_next_best_or_why_there_is_none() -> None:
    cheap = Fraction(PUSD_PER_USD, 10)
    assert sentence(verdict(rate=cheap)) == (
        "Keep 1 GPU, worth $72.00 a month, because 1 GPU and its overflow cost $72.00 and the next "
        "best, 2 GPUs, cost $144.00."
    )
    bound = verdict(rate=cheap, movable=False, noun=("engine", "engines"))
    assert "2 engines, cost $144.00" in sentence(bound)
    assert describe(bound)["options"][0]["why_not"] == "chat may not leave"


def test_an_api_that_nobody_judged_is_a_condition_of_leaving() -> None:
    found = verdict(rate=Fraction(PUSD_PER_USD), substitute="a/chat")
    assert "if a/chat is good enough" in sentence(found)
    kept = verdict(rate=Fraction(PUSD_PER_USD, 10), substitute="a/chat")
    assert "good enough" not in sentence(kept)


def test_what_would_change_it_is_told_with_its_value() -> None:
    (pool,) = verdict(rate=Fraction(PUSD_PER_USD, 10)).pools
    said = [shift_text(shift, pool.assumptions) for shift in pool.shifts]
    assert said == [
        "A rate above $0.28 per GPU-hour: no own GPU.",
        "API prices below 36 % of today's: no own GPU.",
        "Ops above $128.00 a month: leaving pays.",
    ]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("gpu_rate", Fraction(PUSD_PER_USD, 250), "A rate near zero per GPU-hour: 2 GPUs."),
        ("gpu_rate", Fraction(PUSD_PER_USD, 100), "A rate below $0.01 per GPU-hour: 2 GPUs."),
        ("api_price", Fraction(999, 100), "API prices below 999 % of today's: 2 GPUs."),
        ("api_price", Fraction(314), "API prices below 314 times today's: 2 GPUs."),
    ],
)
def test_a_value_far_from_todays_is_told_so_that_it_can_be_read(name, value, said) -> None:
    (pool,) = verdict(rate=Fraction(PUSD_PER_USD, 10)).pools
    shift = VerdictShift(name, "p", value, is_above=False, gpus=2)
    assert shift_text(shift, pool.assumptions) == said


def test_a_rate_of_zero_is_told_what_a_higher_one_changes() -> None:
    """A GPU that is paid for once read: "a rate near zero: 1 GPU"."""
    (pool,) = verdict(rate=Fraction(PUSD_PER_USD, 10)).pools
    shift = VerdictShift("gpu_rate", "p", Fraction(PUSD_PER_USD, 250), is_above=True, gpus=1)
    assert shift_text(shift, pool.assumptions) == "A rate not near zero per GPU-hour: 1 GPU."


def test_without_any_pool_there_is_nothing_to_keep() -> None:
    assert sentence(judge(AssumptionSheet(()), {})).startswith("No own GPU is configured")
