"""Downloads: attempts as CSV and Parquet, costs as FOCUS 1.4, created on request.

A download is built in memory, so the number of rows is limited; the command line writes the same
files in any size.
"""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from dashboard import formatting
from dashboard.data import reads
from dashboard.data.reads import DashboardView
from dashboard.figures import own_hardware
from ledger.exports.attempts import COLUMNS, attempt_rows
from ledger.exports.delimited import csv_lines
from ledger.exports.focus import focus_rows
from ledger.exports.focus_columns import FOCUS_1_4
from ledger.exports.parquet import write_parquet
from ledger.queries.reads import DAY_US, HOUR_US, Scope
from ledger.reports.survey import Survey

MOST_ROWS = 200_000


def offer(view: DashboardView, survey: Survey) -> None:
    """Draw three buttons, or how to export data that is too large for a browser."""
    count = sum(cell.attempts for cell in survey.cells)
    if count > MOST_ROWS:
        st.info(
            f"{count:,} attempts are more than a browser should hold. `breakeven ledger export "
            "--format csv|parquet|focus --from DAY --to DAY --out FILE` writes them in any number.",
            icon=":material/download:",
        )
        return
    whose = "" if view.team is None else f"-{view.team}"
    files: tuple[tuple[str, str, Callable[[DashboardView], bytes], str], ...] = (
        ("Attempts, CSV", f"attempts{whose}.csv", attempts_csv, "text/csv"),
        (
            "Attempts, Parquet",
            f"attempts{whose}.parquet",
            attempts_parquet,
            "application/octet-stream",
        ),
        ("Costs, FOCUS 1.4 (CSV)", f"focus{whose}.csv", focus_csv, "text/csv"),
    )
    for column, (label, name, make, mime) in zip(st.columns(3), files, strict=True):
        column.download_button(
            label,
            _later(make, view),
            file_name=name,
            mime=mime,
            icon=":material/download:",
            on_click="ignore",
            key=f"download-{name}",
            width="stretch",
        )
    until = formatting.moment(_full_hours(view.scope).end_us)
    st.caption(
        f"Of this period{'' if view.team is None else f' and team {formatting.quote(view.team)}'}: "
        f"{formatting.plural(count, 'attempt')}. FOCUS has full hours up to {until}, of own "
        f"{own_hardware(survey)} closed ones; what was not settled or has no price is not in it."
    )


def _later(make: Callable[[DashboardView], bytes], view: DashboardView) -> Any:
    """Return a callback that Streamlit calls when the button is pressed."""
    return lambda: make(view)


def attempts_csv(view: DashboardView) -> bytes:
    with reads.exported(view) as connection:
        rows = attempt_rows(connection, view.scope, _unheard)
        return "".join(csv_lines(COLUMNS, rows)).encode()


def attempts_parquet(view: DashboardView) -> bytes:
    file = io.BytesIO()
    with reads.exported(view) as connection:
        write_parquet(file, COLUMNS, attempt_rows(connection, view.scope, _unheard))
    return file.getvalue()


def focus_csv(view: DashboardView) -> bytes:
    """Return full hours as FOCUS CSV, because GPUs are billed by the hour."""
    scope = _full_hours(view.scope)
    with reads.exported(view) as connection:
        rows = focus_rows(connection, scope, _unheard, period_us=DAY_US)
        return "".join(csv_lines(FOCUS_1_4.columns, rows)).encode()


def _full_hours(scope: Scope) -> Scope:
    start_us = -(-scope.start_us // HOUR_US) * HOUR_US
    return replace(
        scope, start_us=start_us, end_us=max(start_us, scope.end_us // HOUR_US * HOUR_US)
    )


def _unheard(_: int) -> None:
    """Ignore progress, because a page shows a spinner without a bar."""
