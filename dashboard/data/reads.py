"""Cached reads of the ledger: only files in `dashboard/data/` open a connection.

The connection is read-only, enforced by the database. Reads end at a rounded time, so that all
viewers share one read for a few seconds; older answers are evicted by age and count. Each read
takes a `DashboardView` with its viewer; `@read` checks the viewer's permission each time, also for
cached answers.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from dashboard import formatting
from dashboard.data.buckets import bucket_us
from dashboard.periods import DatedPeriod, length_text
from dashboard.viewer import NotAllowed, Viewer, ViewerScope, Who, refuse_unnamed
from ledger.database import DatabaseError, open_readonly, snapshot
from ledger.economics.cost import TokenBasis
from ledger.fleet.entered_offers import gpu_prices, priced_market, read_gpu_entries
from ledger.fleet.market import GpuOffer
from ledger.fleet.market import market as read_market
from ledger.prices.book import PriceBook
from ledger.prices.stored import load_price_book, newest_version
from ledger.queries import reads as queries
from ledger.queries.reads import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.reports.facts import flagged as read_flagged
from ledger.reports.survey import Survey
from ledger.reports.survey import spending as read_spending
from ledger.reports.survey import survey as read_survey
from ledger.reports.survey import surveys as read_surveys
from ledger.reports.waterfall import AttemptWaterfall, waterfall
from ledger.seals.audit_log import AuditEntry
from ledger.seals.audit_log import changes as read_changes
from ledger.verify.checks import VerifyResult
from ledger.verify.checks import verify as verify_books
from ledger.verify.results import VerificationRun
from ledger.verify.results import verifications as read_verifications
from ledger.writing.lag import WriterLag, read_lag

URL_VARIABLE = "BREAKEVEN_LEDGER_URL"
# Missing, unreachable, not a ledger, or the driver is not installed.
AWAY = (DBAPIError, DatabaseError, ArgumentError, NoSuchModuleError, ImportError)
TTL_S, ENTRIES = 60, 24
PERIOD_WORDS = {"1 h": "hour", "24 h": "24 hours", "7 d": "7 days", "30 d": "30 days"}
PERIODS = {
    "1 h": HOUR_US,
    "24 h": DAY_US,
    "7 d": 7 * DAY_US,
    "30 d": 30 * DAY_US,
}
_US = 10**6
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DashboardView:
    """The sidebar's choice and its viewer; `now_us` is the current time, rounded.

    Reads end there, or at the end of the chosen calendar period (`dated`) if that is earlier.
    """

    url: str
    period: str
    team: str | None
    now_us: int
    basis: TokenBasis = TokenBasis.INPUT_OUTPUT
    who: Who = field(default=refuse_unnamed, compare=False)
    dated: DatedPeriod | None = None

    @property
    def viewer(self) -> Viewer:
        """Return the current viewer. Raises `NotAllowed` if there is none any more."""
        return self.who()

    @property
    def span_us(self) -> int:
        return PERIODS[self.period] if self.dated is None else self.dated.length_us

    @property
    def scope(self) -> Scope:
        if self.dated is not None:
            return Scope(self.dated.start_us, self.dated.end_us, self.team)
        return Scope.last(self.span_us, self.now_us, self.team)

    @property
    def words(self) -> str:
        """Return the period's name: `the last 30 days`, `November 2026 so far`."""
        return f"the last {self.length}" if self.dated is None else self.dated.words

    @property
    def length(self) -> str:
        return PERIOD_WORDS[self.period] if self.dated is None else length_text(self.span_us)

    @property
    def earlier_words(self) -> str:
        """Return the name of the period of `earlier`: `the 30 days before`, `October 2026`."""
        return f"the {self.length} before" if self.dated is None else self.dated.before.words

    @property
    def earlier(self) -> "DashboardView":
        """Return the view of the period before: equally long, or a calendar month's own before."""
        if self.dated is not None:
            return replace(self, dated=self.dated.before)
        return replace(self, now_us=self.scope.start_us)


def read(
    reach: ViewerScope, *, ttl: float | None = TTL_S, entries: int = ENTRIES, teams: bool = True
) -> Callable[
    [Callable[Concatenate[DashboardView, P], T]], Callable[Concatenate[DashboardView, P], T]
]:
    """Return a decorator for a cached read that checks the viewer's permission first.

    With `teams=False` the read ignores the chosen team, so that all teams share it.
    """

    def decorate(
        work: Callable[Concatenate[DashboardView, P], T],
    ) -> Callable[Concatenate[DashboardView, P], T]:
        kept: Any = work
        if ttl is not None:
            keep = st.cache_resource(  # uncopied: unpickling took longer than drawing a chart
                ttl=ttl, max_entries=entries, show_spinner=False, hash_funcs={DashboardView: _key}
            )
            kept = keep(work)

        @wraps(work)
        def answer(view: DashboardView, /, *args: P.args, **kwargs: P.kwargs) -> T:
            _allow(view, reach)
            found: T = kept(view if teams else replace(view, team=None), *args, **kwargs)
            return found

        answer.reach = reach  # type: ignore[attr-defined]  # used by the test that lists reads
        return answer

    return decorate


def query(
    reach: ViewerScope, *, ttl: float | None = TTL_S, entries: int = ENTRIES, teams: bool = True
) -> Callable[
    [Callable[Concatenate[Connection, DashboardView, P], T]],
    Callable[Concatenate[DashboardView, P], T],
]:
    """Return a decorator for a `read` with a connection to one snapshot of the ledger."""

    def decorate(
        work: Callable[Concatenate[Connection, DashboardView, P], T],
    ) -> Callable[Concatenate[DashboardView, P], T]:
        def run_query(view: DashboardView, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with snapshot(engine(view.url)) as connection:
                return work(connection, view, *args, **kwargs)

        # The cache key uses these names; `wraps` would confuse the arguments.
        run_query.__module__, run_query.__qualname__ = work.__module__, work.__qualname__
        return read(reach, ttl=ttl, entries=entries, teams=teams)(run_query)

    return decorate


def _allow(view: DashboardView, reach: ViewerScope) -> None:
    if not view.viewer.can_see(reach, view.team):
        raise NotAllowed(f"Not for you to see: {reach.value}.")


def _key(view: DashboardView) -> tuple[object, ...]:
    """Return the cache key of an answer, shared by viewers, who must not modify it."""
    written = _write_counter().count
    return view.url, view.period, view.team, view.now_us, view.basis, view.dated, written


@dataclass(slots=True)
class WriteCounter:
    """Number of changes made from this dashboard."""

    count: int = 0


@st.cache_resource
def _write_counter() -> WriteCounter:
    return WriteCounter()


def forget_reads() -> None:
    """Invalidate all cached reads, for all viewers."""
    _write_counter().count += 1


def ledger_url() -> str | None:
    """Return `-- --ledger URL` of the command line, else the environment's value."""
    return argument("--ledger") or os.environ.get(URL_VARIABLE) or None


def lag() -> WriterLag | None:
    """Return the lag of this host's ledger writer, if `-- --run-dir DIR` is given."""
    run_dir = argument("--run-dir")
    return None if run_dir is None else read_lag(Path(run_dir))


def argument(name: str) -> str | None:
    """Return the value of a command line option after `--`, or `None`."""
    arguments = sys.argv[1:]
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else None


def rounded_now_us(span_us: int) -> int:
    """Return the current time, rounded down to 5 s for spans up to a day, else to 20 s."""
    step = (5 if span_us <= DAY_US else 20) * _US
    now = time.time_ns() // 1000
    return now - now % step


@st.cache_resource(max_entries=4)
def engine(url: str) -> Engine:
    return open_readonly(url)


@contextmanager
def exported(view: DashboardView) -> Iterator[Connection]:
    """Yield a connection for a download of the view's rows."""
    _allow(view, ViewerScope.TEAM)
    with snapshot(engine(view.url)) as connection:
        yield connection


@query(ViewerScope.TEAM)
def survey(connection: Connection, view: DashboardView) -> Survey:
    width = _bars(connection, view)
    return read_survey(connection, view.scope, bucket_us=width, basis=view.basis)


@query(ViewerScope.TEAM)
def spending(connection: Connection, view: DashboardView) -> Survey:
    """Return the survey of spending and targets, without pool capacity."""
    bars_us = _bars(connection, view)
    return read_spending(connection, view.scope, bucket_us=bars_us, basis=view.basis)


@query(ViewerScope.HOUSE)
def surveys(connection: Connection, view: DashboardView) -> tuple[Survey, Survey]:
    """Return the surveys of all teams and of the view's team, from one snapshot."""
    bars_us = _bars(connection, view)
    return read_surveys(connection, view.scope, bucket_us=bars_us, basis=view.basis)


@query(ViewerScope.TEAM)
def freshness(connection: Connection, _view: DashboardView) -> queries.Freshness:
    """Return how current the ledger is, for all teams."""
    return queries.freshness(connection)


@query(ViewerScope.TEAM)
def recent(connection: Connection, view: DashboardView, minutes: int) -> list[queries.AttemptCell]:
    """Return the attempts of the last minutes."""
    end = view.now_us
    scope = Scope(end - minutes * MINUTE_US, end, view.team)
    return queries.cells(connection, scope, bucket_us=minutes * MINUTE_US)


@query(ViewerScope.TEAM)
def flagged(connection: Connection, view: DashboardView) -> list[queries.FlaggedAttempts]:
    return read_flagged(connection, view.scope)


@query(ViewerScope.HOUSE, teams=False)
def teams(connection: Connection, view: DashboardView) -> list[str]:
    """Return all teams with requests."""
    return queries.teams(connection, replace(view.scope, team=None))


@query(ViewerScope.NAMES, teams=False)
def hardware(connection: Connection, _view: DashboardView) -> formatting.Hardware:
    """Return the name of the hardware used on all pages."""
    return formatting.hardware(contract.gpu_type for contract in queries.contracts(connection))


@query(ViewerScope.TEAM)
def attempts(
    connection: Connection,
    view: DashboardView,
    where: tuple[tuple[str, str], ...],
    limit: int,
    dearest: bool = False,
) -> list[queries.AttemptDetail]:
    return queries.attempts(connection, view.scope, where=dict(where), limit=limit, dearest=dearest)


@read(ViewerScope.TEAM)
def attempts_of(view: DashboardView, request_id: str) -> list[queries.AttemptDetail]:
    """Return every attempt of one request, first one first."""
    return attempts(view, (("request_id", request_id),), 50)[::-1]


@read(ViewerScope.TEAM)
def details(
    view: DashboardView, attempt_id: str
) -> tuple[list[queries.AttemptComparison], bytes | None]:
    """Return comparisons and decision of an attempt; empty if the view does not contain it."""
    if not attempts(view, (("attempt_id", attempt_id),), 1):
        return [], None
    with engine(view.url).connect() as connection:
        return (
            queries.compared_costs(connection, attempt_id),
            queries.decision(connection, attempt_id),
        )


@read(ViewerScope.TEAM)
def tries(view: DashboardView, request_id: str) -> list[AttemptWaterfall]:
    """Return the timing of one request's attempts; empty if the view does not contain it."""
    if not attempts_of(view, request_id):
        return []
    with engine(view.url).connect() as connection:
        return waterfall(connection, request_id)


@query(ViewerScope.TEAM)
def refusals(connection: Connection, view: DashboardView) -> list[queries.RefusalCount]:
    return queries.refusals(connection, view.scope)


@query(ViewerScope.TEAM)
def slo_attainment(
    connection: Connection, view: DashboardView, limit: int
) -> list[queries.SloAttainment]:
    return queries.slo_attainment(connection, view.scope, limit=limit)


@query(ViewerScope.TEAM)
def ttft_pairs(
    connection: Connection, view: DashboardView, limit: int
) -> list[queries.TtftPrediction]:
    return queries.ttft_pairs(connection, view.scope, limit=limit)


@query(ViewerScope.NAMES, entries=4, teams=False)
def market(connection: Connection, view: DashboardView) -> tuple[GpuOffer, ...]:
    """Return the GPU catalog with public and entered prices; empty before a gateway started."""
    entered = read_gpu_entries(connection)
    return priced_market(read_market(connection), gpu_prices(entered, view.now_us, "hour"))


@query(ViewerScope.BOOKS, entries=4)
def verifications(
    connection: Connection, _view: DashboardView, limit: int
) -> list[VerificationRun]:
    return read_verifications(connection, limit)


@query(ViewerScope.BOOKS, ttl=None)
def verify_now(connection: Connection, _view: DashboardView) -> VerifyResult:
    """Return the result of every check on one snapshot; slow for a large ledger."""
    return verify_books(connection)


@query(ViewerScope.BOOKS, entries=4)
def changes(connection: Connection, _view: DashboardView, limit: int) -> list[AuditEntry]:
    return read_changes(connection, limit)


@read(ViewerScope.NAMES, ttl=None)
def price_book(view: DashboardView) -> PriceBook:
    """Return the price book, read again after new versions were stored."""
    with engine(view.url).connect() as connection:
        newest = newest_version(connection)
    return _price_book(view.url, newest)


@st.cache_resource(max_entries=2, show_spinner="Reading the price book ...")
def _price_book(url: str, newest: int) -> PriceBook:  # noqa: ARG001 - the cache is keyed by it
    return load_price_book(engine(url))


def _bars(connection: Connection, view: DashboardView) -> int:
    return bucket_us(view.scope, queries.first_us(connection))
