"""Fields for numbers that say so when what was typed cannot be.

A bound given to Streamlit's own field is kept by the browser alone: it shows what was typed, sends
nothing and says nothing, so that the figures beside it are of another number than the one that one
sees. Here every number arrives, and one beyond its bounds is named and not counted.
"""

from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

T = TypeVar("T")


def number(
    place: DeltaGenerator, label: str, bounds: tuple[float, float], value: Any, **how: Any
) -> Any:
    """Return the typed number within `bounds`, else `value`, with the reason.

    Whole numbers where `value` is one; None where nothing is typed and nothing was before. `how` is
    Streamlit's.
    """
    try:
        typed = place.number_input(label, value=value, **how)
    except OverflowError:  # the address says infinity, which Streamlit makes a whole number
        apart = {**how, "key": f"{how['key']}-apart", "bind": None}
        typed = place.number_input(label, value=value, **apart)
    low, high = bounds
    if typed is None or low <= typed <= high:
        return typed
    instead = "nothing" if value is None else f"{value:,.6g}"
    place.error(f"{low:,.10g} to {high:,.10g}, and {typed:,.6g} is not. Counted: {instead}.")
    return value


def default_following(key: str, now: T) -> T:
    """Return a field's initial value: an untouched field follows `now`, a changed one stays.

    By itself a field keeps what it began with: another pool's scenario had the rate, the GPUs and
    the mix of the one before.
    """
    began = f"{key}-began"
    before = st.session_state.get(began)
    if before != now and key in st.session_state and st.session_state[key] == before:
        st.session_state[key] = now
    st.session_state[began] = now
    return now
