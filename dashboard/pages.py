"""The pages and their order, and what stands there when no ledger is named."""

import streamlit as st

from dashboard import (
    data,
    page_answer,
    page_audit,
    page_breakeven,
    page_claims,
    page_engines,
    page_plan,
    page_routing,
    page_spend,
)
from dashboard.frame import page

BREAK_EVEN = "own {own} break even as a fleet, not for {team}"
AUDIT = "bills and changes are the house's, not {team}'s"
CLAIMS = "claims are nobody's"
PLAN = "hardware is bought for everyone, not for {team}"


def run() -> None:
    """Draw the page that the address names."""
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
        page(page_breakeven, url, "Break-even", ":material/show_chart:", fleet=BREAK_EVEN),
        page(page_spend, url, "Spend", ":material/payments:"),
        page(page_routing, url, "Routing", ":material/alt_route:"),
        page(page_engines, url, "Engines", ":material/memory:"),
        page(page_plan, url, "Plan a purchase", ":material/shopping_cart:", fleet=PLAN),
        page(page_audit, url, "Reconciliation and audit", ":material/rule:", fleet=AUDIT),
        page(page_claims, url, "Check a claim", ":material/fact_check:", fleet=CLAIMS),
    ]
    st.navigation(pages).run()
