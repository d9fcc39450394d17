"""Engines page: current state, history over the period, and cost of other GPUs.

An old sample is marked as old, and never shown as the current state.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import streamlit as st

from dashboard import display, formatting, theme
from dashboard.charts import plots
from dashboard.data import fleet, reads
from dashboard.data.reads import DashboardView
from dashboard.figures import labels, shown_amount, time_column
from dashboard.sections import rightsize, streams
from dashboard.sections.enginelines import (
    gauge,
    rate,
    restarts,
    sequences,
    steps,
    tokens_per_dollar,
)
from ledger.economics.cost import SECONDS_PER_HOUR
from ledger.fleet.driftnotes import DriftNote
from ledger.fleet.samples import FleetSample
from ledger.fleet.upkeepnotes import UpkeepNote
from ledger.reports.waterfall import is_far

Drawn = tuple[Any, ...]  # arguments of `_chart`
STALE_US = 60 * 10**6
SAMPLES = 200
COLUMN = st.column_config.NumberColumn
PROMISED_US = 100_000  # a TTFT that users perceive as immediate
HEALTH = {
    "healthy": theme.GAIN, "loading": "#B54708", "draining": "#B54708", "off": "#667085",
}  # fmt: skip


def show(view: DashboardView) -> None:
    survey = reads.survey(view)
    theme.label(*labels(survey))
    for override in fleet.overrides(view):
        theme.label(formatting.override_text(override))
    now, history, bucket_us = fleet.engines(view)
    if not now:
        st.info(
            "No engine has been seen. A pool with `replicas` is started by `breakeven serve`; one "
            "with `endpoints` is scraped as soon as it answers. Samples appear every ten seconds.",
            icon=":material/memory:",
        )
        return
    _cards(view, now, history)
    if len(history) < 2 * len(now):
        st.info("No samples in this period; choose a longer one.", icon=":material/monitoring:")
        return
    finished = fleet.streamed(view, streams.EACH)
    streams.lines(finished)
    _lines(history, bucket_us)
    if worth := tokens_per_dollar(survey):
        st.subheader("Tokens for a dollar of own hardware", anchor=False)
        title = "tokens per dollar"
        theme.chart(plots.lines(worth, value="value", title=title, form=plots.SHORT), about="unit")
        st.caption(
            "Input and output that own engines answered, by their whole bill: used, idle and "
            "unavailable. Hours that are not closed yet are left out."
        )
    rightsize.show(survey, reads.market(view))
    streams.rows(view, finished)
    _samples(history)


def _cards(view: DashboardView, now: Sequence[FleetSample], history: Sequence[FleetSample]) -> None:
    notes, trips, drift = fleet.upkeep(), fleet.round_trips(view), fleet.drift()
    begun = restarts(history)
    for start in range(0, len(now), 3):
        for column, row in zip(st.columns(3), now[start : start + 3], strict=False):
            with column:
                pool = row.engine.removeprefix("pool:").rpartition("/")[0]
                seen = ("Restarts seen in this period", formatting.count(begun[row.engine]), None)
                more = [seen, *upkeep_rows(notes.get(row.engine)), *drift_rows(drift.get(pool))]
                _engine(row, view.now_us, more, trips.get(row.engine))


def _lines(history: Sequence[FleetSample], bucket_us: int) -> None:
    kv = f"KV cache in use, highest in each {formatting.length(bucket_us)}"
    pace = gauge(history, "step_feedback_ppm", 1e-6)
    pairs: tuple[tuple[Drawn, Drawn], ...] = (
        ((kv, gauge(history, "kv_usage_ppm", 1e-6), "share", plots.SHARE),
         ("Sequences", sequences(history), "sequences", ",.0f")),
        (("Output tokens per second", rate(history, "output_tokens_total"), "tokens/s", ",~r"),
         ("Preemptions", steps(history, "preemptions_total"), "preemptions", ",.0f")),
        (("Prefix cache hits", gauge(history, "prefix_hit_ppm", 1e-6), "share", plots.SHARE),
         ("Step time beside its model (1: as it was measured)", pace, "times", ".2~f")),
    )  # fmt: skip
    for pair in pairs:  # one row each, so that long legends keep the alignment
        for column, drawn in zip(st.columns(2), pair, strict=True):
            with column:
                _chart(*drawn)
    st.caption("A step time that rises at like load is an engine that decays.")


def _samples(history: Sequence[FleetSample]) -> None:
    """Draw a table of the latest samples behind charts and cards."""
    st.subheader("Samples", anchor="samples")
    latest = sorted(history, key=attrgetter("at_us"), reverse=True)[:SAMPLES]
    theme.table(
        [
            {
                formatting.zoned("at"): formatting.instant(row.at_us),
                "engine": row.engine,
                "state": row.health,
                "running": row.running,
                "waiting": row.waiting,
                "KV cache": _share(row.kv_usage_ppm),
                "prefix hits": _share(row.prefix_hit_ppm),
                "output tokens": row.output_tokens_total,
                "preemptions": row.preemptions_total,
                "step time": None if row.step_feedback_ppm is None else row.step_feedback_ppm / 1e6,
                f"bid price, {display.now().unit_of('dollars')}/h": _an_hour(row),
            }
            for row in latest
        ],
        about="engine",
        height=240,
        column_config={
            formatting.zoned("at"): time_column("D MMM HH:mm:ss"),
            **dict.fromkeys(("KV cache", "prefix hits"), COLUMN(format="percent")),
            "output tokens": COLUMN(format="localized"),
            "step time": COLUMN(format="%.3f"),
        },
    )
    st.caption(
        f"The latest {len(latest)} of the charts' samples, newest first; counters since the "
        "engine's start."
    )


def _share(ppm: int | None) -> float | None:
    return None if ppm is None else ppm / 1e6


def _an_hour(row: FleetSample) -> float | None:
    bid = row.bid_price_pusd_per_s
    return None if bid is None else shown_amount(bid * SECONDS_PER_HOUR)


def _engine(
    row: FleetSample, now_us: int, more: list[tuple[str, str, str | None]], rtt_us: int | None
) -> None:
    stale = now_us - row.at_us > STALE_US
    health = f"last sampled {formatting.ago(row.at_us, now_us)}" if stale else row.health
    kv, hits = _share(row.kv_usage_ppm), _share(row.prefix_hit_ppm)
    colour = theme.LOSS if stale else HEALTH.get(row.health, theme.LOSS)
    theme.card(
        f"{row.engine}{' (simulated)' if row.simulated else ''}",
        theme.big(health, size="mid"),
        theme.shares((kv or 0.0, colour), (1 - (kv or 0.0), "transparent")),
        theme.rows(
            ("KV cache in use", formatting.percent(kv), None),
            ("Running", _number(row.running), None),
            ("Waiting", _number(row.waiting), None),
            ("Preemptions since its start", _number(row.preemptions_total), None),
            ("Prefix cache hits", formatting.percent(hits), None),
            ("Sampled", formatting.ago(row.at_us, now_us), None),
            ("Round trip", _way(rtt_us), theme.LOSS if is_far(rtt_us, PROMISED_US) else None),
            *more,
        ),
        about="engine",
    )


def _way(rtt_us: int | None) -> str:
    if rtt_us is None:
        return "unknown"
    return (
        f"{rtt_us / 1e3:.2f} ms{', much of a first token' if is_far(rtt_us, PROMISED_US) else ''}"
    )


def upkeep_rows(note: UpkeepNote | None) -> list[tuple[str, str, str | None]]:
    """Return rows on the pool's upkeep: plans, findings and actions."""
    if note is None:
        return []
    times = [
        (f"{what} by the calendar", formatting.moment(at_us, "%a %d %b %H:%M"), None)
        for what, at_us in (
            ("Restarts", note.restart_us), ("Stops", note.stops_us), ("Starts", note.starts_us)
        )
        if at_us is not None
    ]  # fmt: skip
    if note.pace is not None:
        times.append(("Pace of its first hours, at like load", formatting.percent(note.pace), None))
    said = [("Upkeep", text, None) for text in (note.waits, note.done) if text]
    return [*times, *said]


def drift_rows(note: DriftNote | None) -> list[tuple[str, str, str | None]]:
    """Return rows on the engine's drift from its baseline."""
    if note is None:
        return []
    if note.differ is None or note.low is None or note.high is None:
        return [("Against its baseline", f"{note.in_window} compared, too few to say", None)]
    share = f"{note.differ:.2%} ({note.low:.2%} to {note.high:.2%}) of tokens differ"
    words_ = f"{share}, at most {note.limit:.0%}{': it drifts' if note.drifts else ''}"
    return [(f"Against {note.baseline}", words_, theme.LOSS if note.drifts else None)]


def _number(value: int | None) -> str:
    return "unknown" if value is None else formatting.count(value)


def _chart(
    title: str, records: list[dict[str, Any]], unit: str, form: str,
) -> None:  # fmt: skip
    st.subheader(title, anchor=False)
    if not records:
        st.caption("The engine does not report this.")
        return
    theme.chart(plots.lines(records, value="value", title=unit, form=form), about="engine")
