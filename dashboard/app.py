"""The dashboard: `streamlit run dashboard/app.py`, or `breakeven dashboard`.

Finance and SRE open it to see whether own GPUs pay for themselves. It reads the ledger named by
`BREAKEVEN_LEDGER_URL` (or `-- --ledger URL`) and writes nothing. Pages refresh by themselves.
"""

from pathlib import Path

import streamlit as st

from dashboard import (
    data,
    look,
    page_answer,
    page_breakeven,
    page_engines,
    page_routing,
    page_spend,
)
from dashboard.frame import page

ICON = Path(__file__).with_name("icon.svg")  # an icon by name would be fetched from the internet


def main() -> None:
    st.set_page_config(page_title="Breakeven", page_icon=str(ICON), layout="wide")
    look.style()
    url = data.ledger_url()
    if url is None:
        st.title("Breakeven")
        st.info(
            "No ledger is named. Start the dashboard with `breakeven serve`, or point it at a "
            f"ledger: `{data.URL_VARIABLE}=sqlite:////path/to/.breakeven/ledger.db`.",
            icon=":material/database:",
        )
        return
    pages = [
        page(page_answer, url, "Are we winning?", ":material/balance:", default=True),
        page(page_breakeven, url, "Break-even", ":material/show_chart:"),
        page(page_spend, url, "Spend", ":material/payments:"),
        page(page_routing, url, "Routing", ":material/alt_route:"),
        page(page_engines, url, "Engines", ":material/memory:"),
    ]
    st.navigation(pages).run()


main()
