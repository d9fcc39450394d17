"""Spend page: cost by team, key, model and backend, down to single requests.

Own GPUs are charged by closed hours (provisionally since the last one). Idle time is a separate
line and not spread over teams, unless chosen. Adjustments to bills belong to no team.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from dashboard import downloads, formatting, theme
from dashboard.charts import plots, spend
from dashboard.data import reads, tags
from dashboard.data.reads import DashboardView
from dashboard.figures import (
    adjustment_rows,
    dollars,
    labels,
    money_columns,
    money_over_time,
    ops_rows,
    own_cost_by_team,
    own_hardware,
    shown_amount,
    spent_over_time,
)
from dashboard.sections import (
    beside_sums,
    business_metric,
    drill,
    month,
    movement,
    single_requests,
    team,
    virtual_tags,
)
from ledger.invoices.bookings import GPU
from ledger.queries.reads import AttemptCell
from ledger.reports.showback import IdleShare, share_idle
from ledger.reports.survey import Survey

BARS = 12
EMPTY = "No requests in this period. Choose a longer one, or send a request."
SHARE = "idle-share"
IDLE, DOWN = "Idle (unallocated)", "Unavailable (unallocated)"  # in the table only
ADJUSTED = "Adjustments to bills (unallocated)"  # likewise
Sums = dict[str, dict[str, int]]
GROUPS: dict[str, Callable[[AttemptCell], str]] = {
    "team": lambda cell: cell.team,
    "model": lambda cell: cell.model,
    "backend": lambda cell: cell.target,
}
BY = ("team", "key", "model", "backend")
NUMBER = st.column_config.NumberColumn


def show(view: DashboardView) -> None:
    survey = reads.spending(view)
    theme.label(*labels(survey))
    if not survey.cells:
        st.info(EMPTY, icon=":material/payments:")
        beside_sums.show(view)
        return
    drill.show_chips(view)
    _totals(survey)
    beside_sums.show(view)
    month.show(view)
    st.subheader("Over time", anchor=False)
    by = st.segmented_control(
        "By", ["kind of cost", *BY], default="kind of cost", required=True, key="spend-by"
    )
    _over_time(view, survey, by)
    drill.offer_days(view, survey)
    st.subheader("By team, key, model and backend", anchor=False)
    for tab, name in zip(st.tabs([f"By {column}" for column in BY]), BY, strict=True):
        with tab:
            if name == "team" and survey.scope.team is None:
                st.selectbox(
                    "Idle time", list(IdleShare), key=SHARE,
                    help="A way to read the books: what is shared here is posted to nobody.",
                )  # fmt: skip
            _table(survey, name, _by_key(view) if name == "key" else _by(survey, name))
    st.subheader("What a token cost", anchor=False)
    movement.unit_costs_of(survey)
    st.subheader("What a customer, ticket or order cost", anchor=False)
    business_metric.show(view, survey)
    _movement(view)
    st.subheader("Single requests", anchor="requests")
    single_requests.show(view, survey)
    st.subheader("As files", anchor=False)
    downloads.offer(view, survey)


def _movement(view: DashboardView) -> None:
    st.subheader("What moved, what stands out", anchor=False)
    by = st.segmented_control("Compare by", BY, default="team", required=True, key="moved-by")
    left, right = st.columns(2)
    with left:
        movement.show_movers(view, by)
    with right:
        movement.show_anomalies(view, by)
    st.subheader("By hour and by tag", anchor=False)
    movement.by_hour(view)
    movement.by_tag(view)
    virtual_tags.show(view)


def _totals(survey: Survey) -> None:
    bills = survey.standing.bills
    used = sum(bill.used_pusd for bill in bills)
    idle = sum(bill.idle_pusd + bill.unavailable_pusd for bill in bills)
    own, team_name = own_hardware(survey), survey.scope.team
    if team_name is not None:  # idle time is nobody's
        used, idle = team.own_pusd(survey), 0
    ops = survey.standing.fixed.ops_pusd if team_name is None else 0
    figures = [
        ("Total", formatting.money(used + idle + ops + survey.api_pusd + survey.adjusted_pusd)),
        ("APIs", formatting.money(survey.api_pusd)),
        (f"Own {own}, used by {team_name or 'teams'}", formatting.money(used)),
        ("Answers without a price", formatting.count(survey.unpriced)),
    ]
    if team_name is None:
        figures.insert(3, (f"Own {own}, idle or unavailable", formatting.money(idle)))
        figures[4:4] = [
            (name, figure) for name, figure, _ in (*ops_rows(survey), *adjustment_rows(survey))
        ]
    for column, (name, figure) in zip(st.columns(len(figures)), figures, strict=True):
        with column:
            theme.card(name, theme.big(figure, size="mid"), about="spend")
    if missing := [bill.pool for bill in bills if not bill.is_rated]:
        st.warning(f"No GPU rate for {', '.join(missing)}: its cost is missing here, not zero.")


def _over_time(view: DashboardView, survey: Survey, by: str) -> None:
    if by == "kind of cost" and survey.scope.team is not None:
        team.over_the_period(survey)
        return
    if by == "kind of cost":
        records = money_over_time(survey)
        if not records:
            st.caption("Nothing has a known cost: it takes a rate, a price and an answer.")
            return
        chart = plots.stacked_chart(
            records,
            value="usd",
            colours=plots.money_colours(own_hardware(survey), adjusted=bool(survey.adjustments)),
            title="dollars",
        )
    else:
        records = spent_over_time(survey, movement.spent(view, by, survey.bucket_us))
        names = sorted({record["kind"] for record in records})
        colours = dict(zip(names, plots.PALETTE * (1 + len(names) // 8), strict=False))
        chart = plots.stacked_chart(records, value="value", colours=colours, title="dollars")
    drill.show_days(view, survey, chart)
    if by != "kind of cost":
        st.caption("Own engines at their provisional charge (engine seconds); idle is not in here.")


def _by_key(view: DashboardView) -> Sums:
    sums: Sums = defaultdict(lambda: defaultdict(int))
    labels = tags.labels(view)
    for use in tags.keyed(view):
        row = sums[labels.get(use.key_id, use.key_id)]
        row["requests"] += use.attempts
        row["input"] += use.input_tokens
        row["output"] += use.output_tokens
        row["own" if use.backend == "own" else "api"] += use.cost_pusd
        row["unpriced"] += use.unpriced
    return sums


def _by(survey: Survey, name: str) -> Sums:
    sums: Sums = defaultdict(lambda: defaultdict(int))
    for cell in survey.cells:
        row = sums[GROUPS[name](cell)]
        row["requests"] += cell.attempts if cell.is_answered else 0
        row["input"] += cell.input_tokens
        row["output"] += cell.output_tokens
        row["api"] += cell.cost_pusd if cell.backend == "api" else 0
        row["own"] += cell.cost_pusd if cell.backend == "own" else 0
        row["unpriced"] += cell.unpriced
    if name == "team":
        for team, pusd in own_cost_by_team(survey).items():
            sums[team]["own"] = pusd
        if survey.scope.team is None:
            idle = sum(bill.idle_pusd for bill in survey.standing.bills)
            down = sum(bill.unavailable_pusd for bill in survey.standing.bills)
            used = {team: row["own"] for team, row in sums.items()}
            shared = share_idle(used, idle + down, IdleShare(st.session_state[SHARE]))
            for team, pusd in shared.items():
                sums[team]["own"] += pusd
            if not shared:
                sums[IDLE]["own"], sums[DOWN]["own"] = idle, down
        for adjustment in survey.adjustments:  # charged to no team, whatever is shared
            owed = "own" if adjustment.party.startswith(GPU) else "api"
            sums[ADJUSTED][owed] += adjustment.pusd
    return sums


def _table(survey: Survey, name: str, sums: Sums) -> None:
    own = f"own {own_hardware(survey)}"
    counted = "attempts" if name == "key" else "answers"
    table: list[dict[str, Any]] = sorted(
        (
            {
                name: group,
                "spend": shown_amount(row["api"] + row["own"]),
                "APIs": shown_amount(row["api"]),
                own: shown_amount(row["own"]),
                counted: row["requests"],
                "input tokens": row["input"],
                "output tokens": row["output"],
                "unpriced": row["unpriced"],
            }
            for group, row in sums.items()
        ),
        key=lambda row: -row["spend"],
    )
    _drawn(name, sums, own)
    money = money_columns(table, ("spend", "APIs", own))
    counts = {
        column: NUMBER(format="localized") for column in (counted, "input tokens", "output tokens")
    }
    drill.show_table(name, table, column_config={**money, **counts})
    shared = name == "team" and st.session_state.get(SHARE, IdleShare.APART) != IdleShare.APART
    st.caption(
        f"O{own[1:]}: {_charge_basis(survey, name)}{', and their part of idle time' * shared}. "
        "Input tokens include cached ones."
    )


def _drawn(grouped: str, sums: Mapping[str, Mapping[str, int]], own: str) -> None:
    """Draw the largest groups as bars, without idle time, which would dwarf them."""
    largest = sorted(
        sums.keys() - {IDLE, DOWN, ADJUSTED},
        key=lambda name: -(sums[name]["own"] + sums[name]["api"]),
    )[:BARS]
    records = [
        {"name": name, "kind": kind, "usd": dollars(sums[name][field])}
        for name in largest
        for kind, field in ((own, "own"), ("APIs", "api"))
        if sums[name][field]
    ]
    if records:
        colours = {own: theme.OWN, "APIs": theme.API}
        drill.show_bars(grouped, spend.groups(records, colours))


def _charge_basis(survey: Survey, name: str) -> str:
    """Return the basis of the own hardware's column as text."""
    if name != "team":
        return "the provisional charge, engine seconds"
    if not survey.hours:
        return "their share of the running hour, provisional until it is closed"
    return "their share of closed hours, and provisionally of the running one"
