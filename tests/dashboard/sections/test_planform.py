"""The plan's fields: a rate with its source, a speed with its measurement, none where none is."""

from dataclasses import replace
from datetime import date

import pytest

from ledger.database import make_engine
from ledger.fleet.market import GpuOffer, MeasuredThroughput, record_market
from ledger.manual_entries import GPU_PRICE, ManualEntry, enter

MISSING = "nothing is known of 8B on it"


@pytest.mark.parametrize(
    ("gpu", "rate", "said"),
    [
        ("H100", 6.98, "Rate: a public list, seen 2026-06-01. Speed: measured: a bench of ours"),
        ("L40S", None, "no public price is in the catalogue. Speed: estimated by memory bandwidth"),
    ],
)
def test_what_the_catalogue_says_is_filled_in_with_its_source(
    page, month, text_of, gpu, rate, said
) -> None:
    test = page("plan", month.url)
    test.selectbox(key="gpu").set_value(gpu).run()
    assert not test.exception
    assert test.number_input(key=f"rate-{gpu}").value == rate
    assert said in text_of(test)


def test_own_hardware_comes_first_at_its_contract_and_its_own_speed(page, month, text_of) -> None:
    test = page("plan", month.url)
    assert test.selectbox(key="gpu").value == "L4"
    assert test.number_input(key="rate-L4").value == 0.4
    shown = text_of(test)
    assert "contract of pool llama-70b: contract 2026-17" in shown
    served = "as pool llama-70b served in the last 30 days"
    assert f"Speed: {served}." in shown
    assert test.selectbox(key="gpu-model").value == served, "of no other model"


def test_another_model_has_a_speed_of_its_own(page, catalogue, text_of) -> None:
    """The field went on with the speed of the model before, under the next one's source."""
    test = page("plan", catalogue)
    test.selectbox(key="gpu").set_value("H100").run()
    for model, tokens_per_s in (("8B", 3_000.0), ("70B", 600.0), ("8B", 3_000.0)):
        test.selectbox(key="gpu-model").set_value(model).run()
        assert not test.exception
        (speed,) = (
            widget for widget in test.number_input if widget.label.startswith("Tokens a second")
        )
        assert speed.value == tokens_per_s
        assert f"Speed: measured: one of our benches, {model};" in text_of(test)


def test_models_that_something_is_known_of_come_first(page, catalogue) -> None:
    test = page("plan", catalogue)
    test.selectbox(key="gpu").set_value("H100").run()
    assert test.selectbox(key="gpu-model").options[-3:] == ["70B", "8B", "405B"]
    assert test.selectbox(key="gpu-model").value != "405B", "the control: first by its name"


@pytest.fixture
def catalogue(books) -> str:
    """A ledger with an H100 that two models were measured on, and one that does not fit it."""
    url = books(days=1).url
    engine = make_engine(url)
    sizes = {"8B": (8.5, 1_000.0), "70B": (70.0, 200.0), "405B": (405.0, 100.0)}
    two, large = (
        tuple(
            MeasuredThroughput(
                name,
                sizes[name][0],
                gpus,
                sizes[name][1],
                2.0,
                300,
                40,
                f"one of our benches, {name}",
            )
            for name in names
        )
        for names, gpus in ((("8B", "70B"), 1), (("405B",), 8))
    )
    bandwidth = 3_350 * 10**9
    record_market(engine, [
        GpuOffer("H100", "NVIDIA", 80, bandwidth, None, None, None, None, two, "a data sheet"),
        GpuOffer("B200", "NVIDIA", 192, bandwidth, None, None, None, None, large, "a data sheet"),
    ], at_us=1)  # fmt: skip
    engine.dispose()
    return url


def test_a_rate_names_the_one_source_that_it_is_of(books, page, text_of) -> None:
    """Red before: `quote 7; a list of 2026-06-01, seen 2026-11-02` beside the quote's rate."""
    url = books(days=1).url
    engine = make_engine(url)
    listed = GpuOffer("H100", "NVIDIA", 80, 10**12, 2 * 10**12, 3 * 10**12, "a list",
                      date(2026, 6, 1), (), "a data sheet")  # fmt: skip
    record_market(engine, [listed, replace(listed, name="H200")], at_us=1)
    for gpu, usd in (("H100", "1.5"), ("H200", "2.5")):
        says = {"usd_per_hour": usd, "day": "2026-11-02", "source": "quote 7"}
        with engine.begin() as connection:
            enter(connection, ManualEntry(0, f"{GPU_PRICE}{gpu}/hour", says, 1, 1, "fay"))
    engine.dispose()
    test = page("plan", url)
    for gpu, said in (("H100", "Rate: quote 7, seen 2026-11-02."),
                      ("H200", "Rate: a list, seen 2026-06-01.")):  # fmt: skip
        test.selectbox(key="gpu").set_value(gpu).run()
        assert said in text_of(test)
