"""Cached reads of the ledger: the only file of the dashboard that opens a connection.

The connection is read-only and the database enforces it. Reads end at a rounded instant, so that
all viewers share one read for a few seconds; older answers are thrown away by age and number.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from sqlalchemy import Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from dashboard import words
from ledger import invoices, queries
from ledger.adjusted import Adjustment, adjusted
from ledger.book import load_price_book, newest_version
from ledger.database import DatabaseError, open_readonly, snapshot
from ledger.economics import TokenBasis
from ledger.invoicefile import InvoiceLine
from ledger.lag import Lag, read_lag
from ledger.market import Hardware
from ledger.market import market as read_market
from ledger.overrides import Override
from ledger.overrides import overrides as read_overrides
from ledger.prices import PriceBook
from ledger.queries import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.queries_tags import Tagged
from ledger.queries_tags import tagged as read_tagged
from ledger.reconcile import Booked
from ledger.registers import Change
from ledger.registers import changes as read_changes
from ledger.survey import Survey
from ledger.survey import survey as read_survey
from ledger.upkeepnotes import Note, read_notes
from ledger.verifications import Verified
from ledger.verifications import verifications as read_verifications
from ledger.verify import Result
from ledger.verify import verify as verify_books
from ledger.waterfall import Try, waterfall

URL_VARIABLE = "BREAKEVEN_LEDGER_URL"
# Not there, not reachable, not ours, or its driver is not installed.
AWAY = (DBAPIError, DatabaseError, ArgumentError, NoSuchModuleError, ImportError)
TTL_S = 60
ENTRIES = 24
PERIOD_WORDS = {"1 h": "hour", "24 h": "24 hours", "7 d": "7 days", "30 d": "30 days"}
PERIODS = {
    "1 h": HOUR_US,
    "24 h": DAY_US,
    "7 d": 7 * DAY_US,
    "30 d": 30 * DAY_US,
}
_US = 10**6


@dataclass(frozen=True, slots=True)
class View:
    """What the sidebar chose; `now_us` is the rounded instant at which reads end."""

    url: str
    period: str
    team: str | None
    now_us: int
    basis: TokenBasis = TokenBasis.INPUT_OUTPUT

    @property
    def span_us(self) -> int:
        return PERIODS[self.period]

    @property
    def scope(self) -> Scope:
        return Scope.last(self.span_us, self.now_us, self.team)


def ledger_url() -> str | None:
    """`-- --ledger URL` on the command line, else the environment."""
    return _argument("--ledger") or os.environ.get(URL_VARIABLE) or None


def lag() -> Lag | None:
    """What this host's ledger writer says, where `-- --run-dir DIR` tells of one."""
    run_dir = _argument("--run-dir")
    return None if run_dir is None else read_lag(Path(run_dir))


def upkeep() -> dict[str, Note]:
    """What this host's upkeep says of each engine, where `-- --run-dir DIR` tells of one."""
    run_dir = _argument("--run-dir")
    return {} if run_dir is None else read_notes(Path(run_dir))


def _argument(name: str) -> str | None:
    arguments = sys.argv[1:]
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else None


def rounded_now_us(span_us: int) -> int:
    """The clock, rounded down: to 5 s up to a day, to 20 s beyond."""
    step = (5 if span_us <= DAY_US else 20) * _US
    now = time.time_ns() // 1000
    return now - now % step


@st.cache_resource(max_entries=4)
def engine(url: str) -> Engine:
    return open_readonly(url)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def survey(view: View) -> Survey:
    with snapshot(engine(view.url)) as connection:
        first = queries.freshness(connection).first_us
        bucket = bucket_us(view.scope, first)
        return read_survey(connection, view.scope, bucket_us=bucket, basis=view.basis)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def overrides(view: View) -> list[Override]:
    """What operators hold over the policies at this moment."""
    return [one for one in read_overrides(engine(view.url)) if one.stands(view.now_us)]


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def recent(view: View, minutes: int) -> list[queries.Cell]:
    """The last minutes, for what is happening at this moment."""
    end = view.now_us
    scope = Scope(end - minutes * MINUTE_US, end, view.team)
    with snapshot(engine(view.url)) as connection:
        return queries.cells(connection, scope, bucket_us=minutes * MINUTE_US)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def spent(view: View, by: str, width_us: int) -> list[queries.Spent]:
    """Over time, in buckets of `width_us`, by team, model or backend."""
    with snapshot(engine(view.url)) as connection:
        return queries.spent(connection, view.scope, by=by, bucket_us=width_us)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def flagged(view: View) -> list[queries.Flagged]:
    with snapshot(engine(view.url)) as connection:
        return queries.flagged(connection, view.scope)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def teams(url: str, start_us: int, end_us: int) -> list[str]:
    with snapshot(engine(url)) as connection:
        return queries.teams(connection, Scope(start_us, end_us))


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def hardware(url: str) -> words.Hardware:
    """What is called by its name all over the pages."""
    with engine(url).connect() as connection:
        return words.hardware(one.gpu_type for one in queries.contracts(connection))


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def attempts(
    view: View, where: tuple[tuple[str, str], ...], limit: int
) -> list[queries.AttemptRow]:
    with engine(view.url).connect() as connection:
        return queries.attempts(connection, view.scope, where=dict(where), limit=limit)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def attempts_of(view: View, request_id: str) -> list[queries.AttemptRow]:
    """Every try of one request, the first one first."""
    return attempts(view, (("request_id", request_id),), 50)[::-1]


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def details(url: str, attempt_id: str) -> tuple[list[queries.Compared], bytes | None]:
    with engine(url).connect() as connection:
        return (
            queries.compared_costs(connection, attempt_id),
            queries.decision(connection, attempt_id),
        )


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def round_trips(url: str) -> dict[str, int]:
    """To each engine, in microseconds."""
    with engine(url).connect() as connection:
        return queries.round_trips(connection)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def tries(url: str, request_id: str) -> list[Try]:
    """Where the time of one request went."""
    with engine(url).connect() as connection:
        return waterfall(connection, request_id)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def refusals(view: View) -> list[queries.Refused]:
    with engine(view.url).connect() as connection:
        return queries.refusals(connection, view.scope)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def ttft_pairs(view: View, limit: int) -> list[queries.Pair]:
    with engine(view.url).connect() as connection:
        return queries.ttft_pairs(connection, view.scope, limit=limit)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def engines(view: View) -> tuple[list[queries.EngineRow], list[queries.EngineRow], int]:
    """The latest sample of every engine, a thinned history of the period, and by what it is."""
    with engine(view.url).connect() as connection:
        first = queries.first_sample_us(connection, view.scope)
        length = view.span_us if first is None else view.now_us - first
        bucket = queries.samples_bucket_us(length)
        return (
            queries.engines_now(connection),
            queries.engine_samples(connection, view.scope, bucket_us=bucket),
            bucket,
        )


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def tagged(view: View) -> list[Tagged]:
    with snapshot(engine(view.url)) as connection:
        return read_tagged(connection, view.scope)


@st.cache_data(ttl=TTL_S, max_entries=4, show_spinner=False)
def market(url: str) -> tuple[Hardware, ...]:
    """The catalogue of GPUs; empty before a gateway that keeps it has started."""
    with engine(url).connect() as connection:
        return read_market(connection)


@dataclass(frozen=True, slots=True)
class Bill:
    """An imported invoice with its lines and what the books have of its days."""

    invoice: invoices.Stored
    lines: tuple[InvoiceLine, ...]
    booked: tuple[Booked, ...]


@st.cache_data(ttl=TTL_S, max_entries=4, show_spinner=False)
def bills(url: str) -> list[invoices.Stored]:
    """Every imported invoice, the latest first."""
    with engine(url).connect() as connection:
        return invoices.stored(connection)


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def bill(url: str, number: int) -> Bill:
    with snapshot(engine(url)) as connection:
        found = invoices.find(connection, number)
        lines = invoices.lines_of(connection, number)
        booked = invoices.booked(connection, found.party, found.first_day, found.last_day)
    return Bill(found, tuple(lines), tuple(booked))


@st.cache_data(ttl=TTL_S, max_entries=ENTRIES, show_spinner=False)
def adjustments(view: View) -> list[Adjustment]:
    """By day and party; of everyone."""
    end_us = view.now_us - view.now_us % DAY_US + DAY_US  # today's stand at its last instant
    scope = Scope(view.scope.start_us, end_us)
    with engine(view.url).connect() as connection:
        return list(adjusted(connection, scope, bucket_us=DAY_US))


@st.cache_data(ttl=TTL_S, max_entries=4, show_spinner=False)
def verifications(url: str, limit: int) -> list[Verified]:
    with engine(url).connect() as connection:
        return read_verifications(connection, limit)


def verify_now(url: str) -> Result:
    """Every check over all books, of one state of them: long where they are large."""
    with snapshot(engine(url)) as connection:
        return verify_books(connection)


@st.cache_data(ttl=TTL_S, max_entries=4, show_spinner=False)
def changes(url: str, limit: int) -> list[Change]:
    with engine(url).connect() as connection:
        return read_changes(connection, limit)


def price_book(url: str) -> PriceBook:
    """Read anew when versions were stored since."""
    with engine(url).connect() as connection:
        newest = newest_version(connection)
    return _price_book(url, newest)


@st.cache_resource(max_entries=2, show_spinner="Reading the price book ...")
def _price_book(url: str, newest: int) -> PriceBook:  # noqa: ARG001 - the cache is keyed by it
    return load_price_book(engine(url))


def bucket_us(scope: Scope, first_us: int | None) -> int:
    """Bars that fit a chart: a minute for an hour of data, a day for a month of it."""
    start = scope.start_us if first_us is None else max(scope.start_us, first_us)
    length = scope.end_us - start
    for limit, bucket in (
        (2 * HOUR_US, MINUTE_US),
        (12 * HOUR_US, 10 * MINUTE_US),
        (3 * DAY_US, HOUR_US),
        (8 * DAY_US, 6 * HOUR_US),
    ):
        if length <= limit:
            return bucket
    return DAY_US
