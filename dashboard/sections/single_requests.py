"""Single requests of a period, filtered by common values or by id, with their decisions."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard import facets, formatting, theme
from dashboard.charts import timeline
from dashboard.data import reads, tags
from dashboard.data.claims import claimed
from dashboard.data.reads import DashboardView
from dashboard.figures import money_columns, time_column
from dashboard.sections import attempt_table, decision_table
from ledger.queries.claims import ClaimTotal
from ledger.queries.reads import AttemptDetail
from ledger.reports.flag_sums import FlagSum, flag_sums
from ledger.reports.survey import Survey
from ledger.spans import DAY_US, HOUR_US
from ledger.writing.rows import DISPUTED

ROWS, FILTERS = 200, 3  # filters per row
ANY = "any"
NEWEST, DEAREST = "newest first", "dearest first"
MOST_SORTED_US = 2 * DAY_US + HOUR_US  # two days, one of them of 25 hours
MONEY_WIDTH = 100  # pixels: `$0.00051234` is not cut
BIND: Any = "query-params"
NUMBER = st.column_config.NumberColumn


def show(view: DashboardView, survey: Survey) -> None:
    """Draw the filters and the latest matches, or one request with its attempts."""
    asked = st.text_input(
        "Request id",
        key="request",
        bind=BIND,
        placeholder="x-request-id of an answer, or choose below",
    )
    if asked:
        _show_request(view, asked.strip())
        return
    marks = reads.flagged(view)
    chosen = {
        name: value
        for name in facets.FACETS
        if (value := st.session_state.get(f"only-{name}", ANY)) != ANY
    }
    choices = facets.offered_values(survey.cells, chosen)
    choices["flag"] = sorted({mark.flag for mark in marks})
    choices["key"] = _keys(view, chosen.get("team"))
    labels = tags.labels(view)
    where = {}
    for place, (field, values) in enumerate(choices.items()):
        if place % FILTERS == 0:
            columns = st.columns(FILTERS)
        value = columns[place % FILTERS].selectbox(
            field, [ANY, *values], key=f"only-{field}",
            format_func=lambda item: labels.get(item, item),
        )  # fmt: skip
        if value != ANY:
            where[field.replace(" ", "_")] = value
    if disputed := sum(mark.attempts for mark in marks if mark.flag == DISPUTED):
        answers = formatting.plural(disputed, "answer")
        st.warning(f"Of {answers} the target reported usage that cannot be: flag `{DISPUTED}`.")
    _show_flags(flag_sums(marks))
    _show_claims(claimed(view))
    dearest = _dearest_first(view)
    key = where.pop("key", None)
    found: list[AttemptDetail] = []
    if facets.is_present(survey.cells, chosen):
        which = tuple(where.items())
        found = (
            reads.attempts(view, which, ROWS, dearest)
            if key is None
            else tags.attempts_of_key(view, key, which, ROWS, dearest)
        )
    if not found:
        st.caption("No request matches.")
        return
    frame = attempt_table.attempt_rows(found)
    paid = [name for name in attempt_table.MONEY if name in frame[0]]
    event = theme.table(
        frame,
        about="attempt",
        height=320,
        on_select="rerun",
        selection_mode="single-row",
        key="requests",
        column_config={
            formatting.zoned("at"): time_column("D MMM HH:mm:ss"),
            **money_columns(frame, paid, width=MONEY_WIDTH),
            **dict.fromkeys(("input", "output"), NUMBER(format="localized")),
        },
    )
    st.caption(
        f"{_which(len(found), dearest=dearest)} Select a row to see why it went there; "
        "`spend?request=ID` links to one request and its decision."
    )
    if (chosen_rows := event["selection"]["rows"]) and chosen_rows[0] < len(found):
        _detail(view, found[chosen_rows[0]])


def _dearest_first(view: DashboardView) -> bool:
    """Draw the order by cost for short periods; for a long one it would read every row."""
    if view.scope.end_us - view.scope.start_us > MOST_SORTED_US:
        return False
    order = st.segmented_control(
        "Order", [NEWEST, DEAREST], default=NEWEST, required=True, key="requests-order"
    )
    return order == DEAREST


def _which(number: int, *, dearest: bool) -> str:
    if dearest:
        return f"The dearest {number} of the period, dearest first."
    return (
        f"The latest {number}, newest first. A period of at most two days can list the dearest "
        "first."
    )


def _show_flags(sums: Sequence[FlagSum]) -> None:
    """Draw the sum of each flag in the period; the filter above finds the rows."""
    if sums:
        rows = [
            (
                f"{line.flag}: {formatting.plural(line.attempts, 'attempt')}, {line.means}",
                "no price" if line.cost_pusd is None else formatting.money(line.cost_pusd),
                None,
            )
            for line in sums
        ]
        theme.card("Flags of attempts", theme.rows(*rows), about="flag")


def _show_claims(total: ClaimTotal) -> None:
    """Draw provider claims beyond the booked cost; the sum is in neither spend nor bill."""
    if total.attempts:
        answers = formatting.plural(total.attempts, "answer")
        st.warning(
            f"Of {answers} providers claim {formatting.money(total.surplus_pusd)} beyond what is "
            "booked: in dispute, and no part of the spend above.".replace("$", r"\$")
        )


def _keys(view: DashboardView, team: str | None) -> list[str]:
    """Return keys with requests in the period, of one team or all, and the chosen key."""
    kept = st.session_state.get("only-key", ANY)
    asked = {use.key_id for use in tags.keyed(view) if team in (None, use.team)}
    return sorted((asked | {kept}) - {ANY})


def _show_request(view: DashboardView, request_id: str) -> None:
    """Draw one request with all its attempts; the URL links to it."""
    found = reads.attempts_of(view, request_id)
    if not found:
        st.info(
            f"No attempt of {formatting.quote(request_id)} is in this period and team. Choose a "
            "longer "
            "period; single attempts that were retired are gone.",
            icon=":material/search_off:",
        )
        return
    st.caption("Every try of this request. The address of this page links to it.")
    for row in found:
        _detail(view, row)


def _show_decision(blob: bytes | None) -> None:
    """Draw each target of the decision; `breakeven policy explain` shows more."""
    if not blob:
        st.caption("The frozen decision of this request is not kept any more.")
        return
    try:
        seen = decision_table.candidates(blob)
    except (ValueError, TypeError) as error:
        st.caption(
            f"{formatting.sentence(str(error))}: another release wrote it, or it is damaged."
        )
        return
    theme.table(decision_table.decision_rows(seen), about="attempt", height="content")
    more = decision_table.omitted(blob)
    left_out = f" {more} more were seen and are not kept." if more else ""
    st.caption(
        "Targets in the order of the decision. The compared cost of an own engine is the value of "
        f"its time.{left_out} `breakeven policy explain` has every figure."
    )


def _detail(view: DashboardView, row: AttemptDetail) -> None:
    compared, blob = reads.details(view, row.attempt_id)
    cost = "unpriced" if row.cost_pusd is None else formatting.money(row.cost_pusd)
    with st.container(border=True):
        left, right = st.columns(2)
        with left:
            theme.card(
                f"Attempt {row.attempt_id}",
                theme.big(f"{cost} at {row.target}", size="mid"),
                theme.rows(
                    ("Chosen because", formatting.reason(row.reason), None),
                    ("Not on an own engine because", formatting.reason(row.spill_reason), None),
                    *formatting.stage_rows(blob),
                    (
                        "Asked for with key",
                        tags.labels(view).get(row.key_id, row.key_id),
                        None,
                    ),
                    ("Tokens counted", row.basis or "not settled", None),
                    *(
                        [("Its provider claims", formatting.money(row.claimed_pusd), None)]
                        if row.claimed_pusd is not None
                        else []
                    ),
                    ("Cached input tokens", formatting.count(row.cached_tokens), None),
                    *(
                        (
                            f"Would cost at {comparison.comparator}",
                            formatting.comparison(comparison),
                            None,
                        )
                        for comparison in compared
                    ),
                ),
                about="attempt",
            )
        with right:
            _show_decision(blob)
        timeline.show(reads.tries(view, row.request_id))
