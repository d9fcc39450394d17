"""Pages and their order, and the page shown without a ledger or without access."""

import streamlit as st

from dashboard import sign_in
from dashboard.charts.axes import trust_charts
from dashboard.data import reads
from dashboard.page import (
    answer,
    audit,
    breakeven,
    budgets,
    claims,
    engines,
    fleet,
    keys,
    plan,
    policies,
    prices,
    rates,
    routing,
    spend,
    terms,
)
from dashboard.page_frame import PageSpec, page, refused_page
from dashboard.viewer import NotAllowed, ViewerScope
from dashboard.viewer_identity import SignInNeeded, identify_viewer

BREAK_EVEN = "own {own} break even as a fleet, not for {team}"
AUDIT = "bills and changes are the house's, not {team}'s"
CLAIMS = "claims are nobody's"
KEYS = "keys are yours, of whichever team"
TERMS = "words are everybody's"
PLAN = "hardware is bought for everyone, not for {team}"
BUDGETS = "all budgets are listed, {team}'s among them"
PRICES = "the price book is everybody's, not {team}'s"
RATES = "contracts and bills are the house's, not {team}'s"
ENGINES = "engines are shared, so their figures are of all teams, not of {team}"
FLEET = "engines are shared, so they are sized for all teams, not for {team}"
POLICIES = "engines are shared, so policies are of all teams, not of {team}"
PLACES = (
    PageSpec(answer, "Verdict", ":material/balance:", ViewerScope.TEAM, default=True),
    PageSpec(breakeven, "Break-even", ":material/show_chart:", ViewerScope.HOUSE, BREAK_EVEN),
    PageSpec(spend, "Spend", ":material/payments:", ViewerScope.TEAM),
    PageSpec(budgets, "Budgets", ":material/account_balance_wallet:", ViewerScope.HOUSE, BUDGETS),
    PageSpec(routing, "Routing", ":material/alt_route:", ViewerScope.TEAM),
    PageSpec(engines, "Engines", ":material/memory:", ViewerScope.HOUSE, ENGINES),
    PageSpec(fleet, "Fleet", ":material/dynamic_feed:", ViewerScope.HOUSE, FLEET),
    PageSpec(policies, "Policies", ":material/tune:", ViewerScope.HOUSE, POLICIES),
    PageSpec(plan, "Plan a purchase", ":material/shopping_cart:", ViewerScope.HOUSE, PLAN),
    PageSpec(rates, "Rates and teams", ":material/price_change:", ViewerScope.BOOKS, RATES),
    PageSpec(prices, "Prices", ":material/sell:", ViewerScope.BOOKS, PRICES),
    PageSpec(audit, "Reconciliation and audit", ":material/rule:", ViewerScope.BOOKS, AUDIT),
    PageSpec(claims, "Check a claim", ":material/fact_check:", ViewerScope.NAMES, CLAIMS),
    PageSpec(keys, "Your keys", ":material/key:", ViewerScope.NAMES, KEYS),
    PageSpec(terms, "What figures mean", ":material/menu_book:", ViewerScope.NAMES, TERMS),
)


def run() -> None:
    """Draw the page of the URL if the viewer may see it."""
    trust_charts()
    url = reads.ledger_url()
    if url is None:
        st.title("Breakeven")
        st.info(
            "No ledger is named. Start the dashboard with `breakeven serve`, or point it at a "
            f"ledger: `{reads.URL_VARIABLE}=sqlite:////path/to/.breakeven/ledger.db`.",
            icon=":material/database:",
        )
        return
    try:
        who = identify_viewer()
        viewer = who()
    except (SignInNeeded, NotAllowed):
        st.title("Breakeven", anchor=False)
        with sign_in.guard_page():
            raise
        return
    team = viewer.teams[0] if viewer.teams else None
    pages = [
        page(spec, url, who) if viewer.can_see(spec.reach, team) else refused_page(spec, viewer)
        for spec in PLACES
    ]
    chosen = st.navigation(pages, expanded=True)
    with st.sidebar:
        sign_in.show_viewer(viewer)
    chosen.run()
