"""The plan's fields: a rate with its source, a speed with its measurement, none where none is."""

import pytest

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
    assert "as pool llama-70b served in this period" in shown
