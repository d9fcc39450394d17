"""Number fields that report values out of range.

With Streamlit's own bounds, the browser shows the typed value, sends nothing and gives no message,
so figures belong to another number than the displayed one. Here every number is sent, and one out
of range is reported and not used.
"""

from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

T = TypeVar("T")


def number(
    place: DeltaGenerator, label: str, bounds: tuple[float, float], value: Any, **how: Any
) -> Any:
    """Return the typed number within `bounds`, else `value` with an error message.

    The result is an integer if `value` is one, and `None` for an empty field without a value. `how`
    is passed to Streamlit.
    """
    try:
        typed = place.number_input(label, value=value, **how)
    except OverflowError:  # infinity in the URL, which Streamlit converts to an integer
        apart = {**how, "key": f"{how['key']}-apart", "bind": None}
        typed = place.number_input(label, value=value, **apart)
    low, high = bounds
    if typed is None or low <= typed <= high:
        return typed
    instead = "nothing" if value is None else f"{value:,.6g}"
    place.error(f"{low:,.10g} to {high:,.10g}, and {typed:,.6g} is not. Counted: {instead}.")
    return value


def default_following(key: str, now: T) -> T:
    """Return a field's initial value; an untouched field follows `now`, a changed one stays.

    Streamlit fields keep their initial value: after a change of pool, a scenario kept the rate, the
    GPUs and the mix of the previous pool.
    """
    began = f"{key}-began"
    before = st.session_state.get(began)
    if before != now and key in st.session_state and st.session_state[key] == before:
        st.session_state[key] = now
    st.session_state[began] = now
    return now
