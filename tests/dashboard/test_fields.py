"""A number that cannot be is said so, and is not counted."""

import pytest
from streamlit.testing.v1 import AppTest


def form() -> None:
    import streamlit as st  # noqa: PLC0415  (the script is this function's text alone)

    from dashboard import fields  # noqa: PLC0415  (as above)

    for name, bounds, value in (("rate", (0.0, 10.0), None), ("months", (1, 120), 36)):
        st.caption(f"{name} {fields.number(st.container(), name, bounds, value, key=name)}")


@pytest.mark.parametrize(
    ("key", "typed", "said", "counted"),
    [
        ("rate", 2.5, [], "rate 2.5"),
        ("rate", 0.0, [], "rate 0.0"),
        ("rate", -0.5, ["0 to 10, and -0.5 is not. Counted: nothing."], "rate None"),
        ("rate", 1e99, ["0 to 10, and 1e+99 is not. Counted: nothing."], "rate None"),
        ("months", 120, [], "months 120"),
        ("months", 0, ["1 to 120, and 0 is not. Counted: 36."], "months 36"),
    ],
)
def test_only_what_is_within_bounds_counts(key, typed, said, counted) -> None:
    test = AppTest.from_function(form).run()
    assert [one.value for one in test.caption] == ["rate None", "months 36"]
    test.number_input(key=key).set_value(typed).run()
    assert not test.exception
    assert [one.value for one in test.error] == said
    assert counted in [one.value for one in test.caption]
