"""Numbers and reasons as people read them."""

from fractions import Fraction

import msgspec
import pytest

from dashboard import formatting
from ledger.overrides import API, DISABLED, OWN, Override
from ledger.queries.reads import AttemptComparison
from router import packed
from router.reasons import Reason

USD = 10**12


@pytest.mark.parametrize(
    ("pusd", "shown"),
    [
        (0, "$0.00"), (1_234_567 * USD, "$1,234,567"), (12_345 * USD // 10, "$1,234"),
        (-3 * USD // 2, "-$1.50"), (9 * USD // 10, "$0.90"), (USD // 8, "$0.125"),
        (Fraction(USD, 3), "$0.333"), (USD // 10_000, "$0.0001"), (5, "$0.000000000005"),
        (33_000, "$0.000000033"), (-33_333, "-$0.0000000333"), (USD * 5 // 100_000, "$0.00005"),
        (Fraction(1, 3), "$0.00"),
    ],
)  # fmt: skip
def test_usd(pusd: int | Fraction, shown: str) -> None:
    assert formatting.money(pusd) == shown


def test_a_gain_has_its_sign_when_asked() -> None:
    assert formatting.money(2 * USD, sign=True) == "+$2.00"
    assert formatting.money(-2 * USD, sign=True) == "-$2.00"


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1_000, "1.00k"), (45_600, "45.6k"), (812_000_000, "812M"),
     (Fraction(7_978_000_000), "7.98B"), (2 * 10**12, "2.00T")],
)  # fmt: skip
def test_tokens(count: int, shown: str) -> None:
    assert formatting.tokens(count) == shown


@pytest.mark.parametrize(
    ("kind", "number", "shown"),
    [
        ("CPU", 1, "1 machine"), ("cpu", 3, "3 machines"),
        ("CPU", Fraction(1, 2), "50 % of a machine"),
        ("H200", 1, "1 GPU"), ("H200", 4, "4 GPUs"), ("L4", Fraction(1, 2), "50 % of a GPU"),
        ("L4", Fraction(3, 2), "1.5 GPUs"), ("CPU", 0, "0 machines"),
    ],
)  # fmt: skip
def test_hardware_is_named_for_what_it_is(kind, number, shown) -> None:
    assert formatting.hardware_count(kind, number) == shown


def test_one_gpu_among_the_machines_makes_them_gpus() -> None:
    assert formatting.hardware(["CPU", "H200"]) == formatting.GPU
    assert formatting.hardware(["CPU", "CPU"]) == formatting.MACHINE
    assert formatting.hardware([]) == formatting.GPU


def test_a_context_is_exceeded_by_prompt_and_answer_together() -> None:
    assert formatting.reason("context") == "prompt and longest answer exceed the context"


def test_every_reason_of_the_router_has_words() -> None:
    assert {reason.value for reason in Reason} <= set(formatting.REASONS)
    assert formatting.reason(None) == "not spilled"
    assert formatting.reason("some_other") == "some other"


def test_small_words() -> None:
    assert formatting.percent(None) == "n/a"
    assert formatting.percent(Fraction(1, 8), digits=1) == "12.5 %"
    assert formatting.percent(0) == "0 %"
    assert formatting.percent(0.0035) == "< 1 %"
    assert formatting.percent(0.0035, digits=1) == "0.4 %"
    assert formatting.percent(0.0003, digits=1) == "< 0.1 %"
    assert (formatting.factor_text(3.454), formatting.factor_text(28)) == ("3.45x", "28x")
    assert (formatting.plural(1, "answer"), formatting.plural(1_200, "answer")) == (
        "1 answer",
        "1,200 answers",
    )
    assert formatting.moment(0) == "01 Jan 00:00 UTC"
    assert [formatting.ago(0, seconds * 10**6) for seconds in (5, 120, 7_200, 200_000)] == [
        "5 s ago", "2 min ago", "2 h ago", "2 d ago",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("subject", "says", "until_us", "shown"),
    [
        ("target:pool:a/0", DISABLED, 1_800_000_000 * 10**6,
         "pool:a/0 gets no new requests until 15 Jan 08:00 UTC, says ann (a fan)."),
        ("model:*", API, None, "All models go to APIs alone, says ann (a fan)."),
        ("model:chat", OWN, None, "chat goes to own engines alone, says ann (a fan)."),
    ],
)  # fmt: skip
def test_what_an_operator_holds_over_policies(subject, says, until_us, shown) -> None:
    assert (
        formatting.override_text(Override(1, subject, says, until_us, 0, "ann", "a fan")) == shown
    )


def test_a_name_in_markdown_is_a_name() -> None:
    """An address may be somebody else's: no picture of theirs is fetched, no link is dressed up."""
    told = formatting.quote("![x](http://evil.example/a.png) `b` **c** :red[d]\n# $e$")
    assert told == (r"\!\[x\]\(http\://evil\.example/a\.png\) \`b\` \*\*c\*\* \:red\[d\] \# \$e\$")
    assert formatting.quote("finance 2") == "finance 2"


def test_what_it_would_have_cost_elsewhere_says_what_was_assumed() -> None:
    found = AttemptComparison("a/b", 0, 1_000_000, 12_350_000_000_000)
    assert formatting.comparison(found) == "$12.35"
    warm = AttemptComparison("a/b", 0, 1_000_000, 12_350_000_000_000, 4_096)
    assert formatting.comparison(warm) == "$12.35, 4,096 tokens of the prompt cached"


def test_the_stage_of_a_models_targets_is_read_where_the_router_writes_it() -> None:
    assert formatting.STAGE == packed._STAGE
    recorded = [4, *[None] * (formatting.STAGE - 1)]
    assert formatting.stage_rows(msgspec.msgpack.encode(recorded)) == formatting.stage_rows(None)
    staged = msgspec.msgpack.encode([*recorded, (2, 3, "content_policy+failure", [])])
    assert formatting.stage_rows(staged) == [
        ("Stage of its model's targets", "2 of 3, after content policy or failure", None)
    ]
