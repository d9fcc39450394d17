"""The pages and their order, and what stands there when no ledger is named or nobody is let in."""

import streamlit as st

from dashboard import (
    data,
    gate,
    page_answer,
    page_audit,
    page_breakeven,
    page_budgets,
    page_claims,
    page_engines,
    page_plan,
    page_policies,
    page_prices,
    page_rates,
    page_routing,
    page_spend,
    page_terms,
)
from dashboard.axes import trust_charts
from dashboard.entrance import SignInNeeded, enter
from dashboard.frame import PageSpec, page, refused
from dashboard.viewer import NotAllowed, ViewerScope

BREAK_EVEN = "own {own} break even as a fleet, not for {team}"
AUDIT = "bills and changes are the house's, not {team}'s"
CLAIMS = "claims are nobody's"
TERMS = "words are everybody's"
PLAN = "hardware is bought for everyone, not for {team}"
BUDGETS = "all budgets are listed, {team}'s among them"
PRICES = "the price book is everybody's, not {team}'s"
RATES = "contracts and bills are the house's, not {team}'s"
ENGINES = "engines are shared, so their figures are of all teams, not of {team}"
POLICIES = "engines are shared, so policies are of all teams, not of {team}"
PLACES = (
    PageSpec(page_answer, "Are we winning?", ":material/balance:", ViewerScope.TEAM, default=True),
    PageSpec(page_breakeven, "Break-even", ":material/show_chart:", ViewerScope.HOUSE, BREAK_EVEN),
    PageSpec(page_spend, "Spend", ":material/payments:", ViewerScope.TEAM),
    PageSpec(
        page_budgets, "Budgets", ":material/account_balance_wallet:", ViewerScope.HOUSE, BUDGETS
    ),
    PageSpec(page_routing, "Routing", ":material/alt_route:", ViewerScope.TEAM),
    PageSpec(page_engines, "Engines", ":material/memory:", ViewerScope.HOUSE, ENGINES),
    PageSpec(page_policies, "Policies", ":material/tune:", ViewerScope.HOUSE, POLICIES),
    PageSpec(page_plan, "Plan a purchase", ":material/shopping_cart:", ViewerScope.HOUSE, PLAN),
    PageSpec(page_rates, "Rates and teams", ":material/price_change:", ViewerScope.BOOKS, RATES),
    PageSpec(page_prices, "Prices", ":material/sell:", ViewerScope.BOOKS, PRICES),
    PageSpec(page_audit, "Reconciliation and audit", ":material/rule:", ViewerScope.BOOKS, AUDIT),
    PageSpec(page_claims, "Check a claim", ":material/fact_check:", ViewerScope.NAMES, CLAIMS),
    PageSpec(page_terms, "What figures mean", ":material/menu_book:", ViewerScope.NAMES, TERMS),
)


def run() -> None:
    """Draw the page that the address names, if it is for whoever looks."""
    trust_charts()
    url = data.ledger_url()
    if url is None:
        st.title("Breakeven")
        st.info(
            "No ledger is named. Start the dashboard with `breakeven serve`, or point it at a "
            f"ledger: `{data.URL_VARIABLE}=sqlite:////path/to/.breakeven/ledger.db`.",
            icon=":material/database:",
        )
        return
    try:
        who = enter()
        viewer = who()
    except (SignInNeeded, NotAllowed):
        st.title("Breakeven", anchor=False)
        with gate.kept():
            raise
        return
    team = viewer.teams[0] if viewer.teams else None
    pages = [
        page(one, url, who) if viewer.sees(one.reach, team) else refused(one, viewer)
        for one in PLACES
    ]
    chosen = st.navigation(pages, expanded=True)
    with st.sidebar:
        gate.who_looks(viewer)
    chosen.run()
