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
    assert [caption.value for caption in test.caption] == ["rate None", "months 36"]
    test.number_input(key=key).set_value(typed).run()
    assert not test.exception
    assert [error.value for error in test.error] == said
    assert counted in [caption.value for caption in test.caption]


def followed() -> None:
    import streamlit as st  # noqa: PLC0415  (the script is this function's text alone)

    from dashboard import fields  # noqa: PLC0415  (as above)

    now = {"a": 0.5, "b": 2.0}[st.selectbox("pool", ["a", "b"], key="pool")]
    began = fields.default_following("rate", now)
    st.caption(f"rate {fields.number(st.container(), 'rate', (0.0, 10.0), began, key='rate')}")


def test_a_field_that_nobody_turned_goes_with_what_it_begins_with() -> None:
    test = AppTest.from_function(followed).run()
    for pool, rate in (("b", 2.0), ("a", 0.5), ("b", 2.0)):
        test.selectbox(key="pool").set_value(pool).run()
        assert not test.exception
        assert not test.warning, "of a default beside a value"
        assert test.number_input(key="rate").value == rate
        assert test.caption[0].value == f"rate {rate}"


def test_what_is_turned_stays() -> None:
    test = AppTest.from_function(followed).run()
    test.number_input(key="rate").set_value(7.0).run()
    test.selectbox(key="pool").set_value("b").run()
    assert test.number_input(key="rate").value == 7.0
    test.number_input(key="rate").set_value(2.0).run()
    test.selectbox(key="pool").set_value("a").run()
    assert test.number_input(key="rate").value == 0.5, "turned back, it follows again"
