"""Glossary page: every term of the dashboard with its meaning and formula."""

import streamlit as st

from dashboard.data.reads import DashboardView
from dashboard.terms import TERMS


def show(view: DashboardView) -> None:  # noqa: ARG001 - pages have one signature; this one reads no books
    st.caption(
        "Figures on the other pages link here. The books are in dollars, their days and months "
        "those of the configuration's `timezone`."
    )
    for name, term in sorted(TERMS.items(), key=lambda pair: pair[1].title.lower()):
        st.subheader(term.title, anchor=name)
        st.write(term.means)
        if term.formula:
            st.code(term.formula, language=None, wrap_lines=True)
