"""One team's spending, and the cost of the same answers elsewhere.

Whether own hardware pays is decided for the fleet, because its bill is not split that way. A team
has its share of the bill by used engine time, and the API charges of its requests; it has no
break-even, idle time or verdict of its own.
"""

import streamlit as st

from dashboard import formatting, theme
from dashboard.charts import plots
from dashboard.figures import dollars, own_cost_by_team, own_hardware, own_rows, records_over_time
from ledger.reports.survey import Survey


def scope_note(survey: Survey) -> str:
    """Return a note that the verdict above covers all teams."""
    return (
        f"The verdict, break-even and idle time are of all teams. Below: team "
        f"{formatting.quote(survey.scope.team or '')} alone, its share of own "
        f"{own_hardware(survey)} "
        "and its API spend."
    )


def own_pusd(survey: Survey) -> int:
    """Return the team's share of the bill: closed hours, and the running one provisionally."""
    return sum(own_cost_by_team(survey).values())


def _own_rows(survey: Survey) -> list[tuple[str, str, str]]:
    return own_rows(survey, ("its used share", own_pusd(survey), theme.OWN))


def spent(survey: Survey) -> None:
    """Draw its share of own hardware and its API spend."""
    own, api = own_pusd(survey), survey.api_pusd
    parts = [
        theme.big(formatting.money(own + api), size="mid"),
        theme.shares((own, theme.OWN), (api, theme.API)),
        theme.rows(*_own_rows(survey), ("APIs", formatting.money(api), theme.API)),
    ]
    if survey.unpriced:
        unpriced = formatting.plural(survey.unpriced, "answer")
        parts.append(theme.small(f"**{unpriced}** without a price, not in here"))
    theme.card(f"Spent by {survey.scope.team}", *parts, about="used")


def show_comparators(survey: Survey) -> None:
    """Show what the comparators would have charged for answers of own engines."""
    rows = [
        (f"{', '.join(verdict.comparators)}", formatting.money(verdict.avoided_pusd), None)
        for verdict in survey.standing.verdicts
    ]
    if not rows:
        more = "No request of this team was answered by own engines and has a comparator."
        theme.card(
            "The same answers at an API",
            theme.big("Nothing", size="mid"),
            theme.small(more),
            about="comparator",
        )
        return
    theme.card(
        "The same answers at an API",
        theme.rows(*_own_rows(survey), *rows),
        theme.small(
            "Answered by own engines inside the SLO, at the comparators' prices. The used share "
            f"leaves out what own {own_hardware(survey)} cost while idle, which is of no team: "
            "the difference is no saving. Whether they pay is the verdict of all teams."
        ),
        about="comparator",
    )


def over_the_period(survey: Survey) -> None:
    """Draw spending by backend; own engines at provisional charges, as bills have no team."""
    own = f"own {own_hardware(survey)}, used"
    records = records_over_time(
        survey,
        lambda sums: own if sums.backend == "own" else "APIs",
        lambda sums: dollars(sums.cost_pusd),
    )
    if not records:
        return
    colours = {own: theme.OWN, "APIs": theme.API}
    chart = plots.stacked_chart(records, value="value", colours=colours, title="dollars")
    theme.chart(chart, about="used")
    st.caption("Own engines at their provisional charge (engine seconds).")
