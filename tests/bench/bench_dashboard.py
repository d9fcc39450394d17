"""What the dashboard's pages cost with many attempts: a first view, and every widget turned once.

    make bench-dashboard ARGS="--attempts 2000000"

Fills a throw-away PostgreSQL as `bench_ledger` does (or asks `--url`), serves the dashboard over it
as `serve` does, and drives it with Chromium as a person would: each page is opened by somebody new,
then every radio, list, number, slider and switch on it is turned once, the sidebar's among them.
Whatever asks the gateway to do something is left alone. CPU is of the dashboard's process and its
database sessions together, which neighbours do not change; the wall's time is the browser's, from
the press until the script of the page has ended. Medians over `--rounds`. Prints a table, writes
`build/bench-dashboard.json`, and fails where CPU alone is over 2 s of a first view or 0.5 s else.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench_ledger import add_up, server  # noqa: E402  (the path is set above)
from ledgerrows import fill  # noqa: E402  (as above)
from playwright.sync_api import Browser, Error, Locator, Page, sync_playwright  # noqa: E402  (as above)
from sqlalchemy import text  # noqa: E402  (as above)
from wire import free_ports  # noqa: E402  (as above)

from ledger.database import make_engine, migrate  # noqa: E402  (as above)

CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
SIDEBAR = ("Times in", "Money in", "Team", "Period")  # last: a page may have less to turn then
PAGES = ("", "breakeven", "spend", "budgets", "routing", "engines", "policies", "plan", "rates",
         "prices", "audit", "claims", "terms")  # fmt: skip
FIRST_MS, CHANGE_MS = 2_000.0, 500.0
QUIET_MS = 400  # so long without a script that runs: it has ended
LIMIT_MS = 60_000
TURN_LIMIT_MS = 15_000  # a turn that changes nothing runs nothing
# As installed: what a test tool brings with it costs a second of each start, in here alone.
STREAMLIT = """
import sys
sys.modules["rfc3987_syntax"] = None
from dashboard.start import main
main()
"""
WATCH = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  window.watched = {since: performance.now(), changed: 0, state: ''};
  const note = () => {
    window.watched.state = app.getAttribute('data-test-script-state');
    window.watched.changed = performance.now();
  };
  window.watched.state = app.getAttribute('data-test-script-state');
  window.watcher?.disconnect();
  window.watcher = new MutationObserver(note);
  window.watcher.observe(app, {attributes: true, attributeFilter: ['data-test-script-state']});
}"""
ENDED = f"""() => {{
  const one = window.watched;
  return one.changed > 0 && one.state !== 'running' && one.state !== 'rerunRequested'
    && performance.now() - one.changed > {QUIET_MS};
}}"""
UNFOLD = """() => document.querySelectorAll(
  '[data-testid=stExpander] details:not([open]) > summary').forEach(one => one.click())"""
SPAN = "() => window.watched.changed - window.watched.since"


@dataclass(frozen=True)
class Figure:
    """Medians of `rounds` turns."""

    page: str
    what: str
    cpu_ms: float
    wall_ms: float
    bar_ms: float
    rounds: int

    @property
    def ok(self) -> bool:
        return self.cpu_ms <= self.bar_ms


class Meter:
    """CPU of the dashboard's process, and of the sessions that its reads have in the database."""

    def __init__(self, pid: int, url: str) -> None:
        self._pid = pid
        self._engine = make_engine(url)

    def used_s(self) -> float:
        pids = [self._pid]
        if self._engine.dialect.name == "postgresql":
            query = text(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                " AND datname = current_database() AND pid <> pg_backend_pid()"
            )
            with self._engine.connect() as connection:
                pids += connection.execute(query).scalars()
        return sum(_process_s(pid) for pid in pids)

    def close(self) -> None:
        self._engine.dispose()


def _process_s(pid: int) -> float:
    """Of all its threads, also those that ended: each run of a page has a thread of its own."""
    return time.clock_gettime((~pid) << 3 | 2)


@contextlib.contextmanager
def dashboard(url: str) -> Iterator[tuple[str, int]]:
    """Its address and process id."""
    (port,) = free_ports(1)
    argv = [
        sys.executable, "-c", STREAMLIT, "run", str(ROOT / "dashboard" / "app.py"),
        "--server.headless", "true", "--server.port", str(port), "--server.address", "127.0.0.1",
        "--browser.gatherUsageStats", "false", "--server.fileWatcherType", "none",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": home}
        process = subprocess.Popen(
            argv, env={**environ, "BREAKEVEN_LEDGER_URL": url}, stdout=subprocess.DEVNULL
        )
        try:
            yield _answering(f"http://127.0.0.1:{port}"), process.pid
        finally:
            process.terminate()
            process.wait(20)


def _answering(address: str) -> str:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=5).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return address


class UnturnedWidget(Exception):
    """There is nothing else to choose."""


class Visit:
    """One person's browser on one page; `turned` says what a press cost."""

    def __init__(self, browser: Browser, address: str, meter: Meter) -> None:
        self._context = browser.new_context(viewport={"width": 1366, "height": 2000})
        self.page = self._context.new_page()
        self.page.set_default_timeout(LIMIT_MS)
        self._address, self._meter = address, meter

    def opened(self, name: str) -> tuple[float, float]:
        """CPU and wall ms until it has drawn all of itself; nothing repeats by itself then."""
        used, since = self._meter.used_s(), time.monotonic()
        self.page.goto(f"{self._address}/{name}?live=false")
        self.page.get_by_text(re.compile("^As of ")).wait_for()
        took = time.monotonic() - since
        self.page.wait_for_function(
            "() => document.querySelector('[data-testid=stApp]')"
            ".getAttribute('data-test-script-state') === 'notRunning'"
        )
        self.page.wait_for_timeout(QUIET_MS)
        cpu_ms = (self._meter.used_s() - used) * 1e3
        self.page.evaluate(UNFOLD)
        return cpu_ms, took * 1e3

    def turned(self, press: Callable[[], None]) -> tuple[float, float]:
        self.page.evaluate(WATCH)
        used = self._meter.used_s()
        press()
        self.page.wait_for_function(ENDED, timeout=TURN_LIMIT_MS)
        return (self._meter.used_s() - used) * 1e3, float(self.page.evaluate(SPAN))

    def close(self) -> None:
        self._context.close()


def widgets(page: Page) -> dict[str, Callable[[], None]]:
    """Everything in sight that can be turned without asking the gateway: its name, and the turn.

    Of the same name the second is called so. What a form holds runs nothing until it is sent.
    """
    found: dict[str, Callable[[], None]] = {}
    for kind, turn in TURNS.items():
        for row in page.get_by_test_id(kind).all():
            label = row.get_by_test_id("stWidgetLabel")
            named = label.first.inner_text() if label.count() else kind
            name = " ".join(named.split())
            alike = sum(known.partition(" (the ")[0] == name for known in found)
            held = row.locator("xpath=ancestor::*[@data-testid='stForm']").count()
            if row.is_visible() and not held and name != "Refresh by itself":
                name = f"{name} (the {alike + 1}.)" if alike else name
                found[name] = lambda item=row, turn=turn: turn(page, item)
    ordered = sorted(
        found, key=lambda finding: SIDEBAR.index(finding) if finding in SIDEBAR else -1
    )
    return {name: found[name] for name in ordered}


def _radio(_page: Page, locator: Locator) -> None:
    next(it for it in locator.get_by_role("radio").all() if not it.is_checked()).click()


def _list(page: Page, locator: Locator) -> None:
    locator.locator("input").first.click()
    options = page.get_by_role("option")
    options.first.wait_for()
    other = options.locator("xpath=self::*[not(@aria-selected='true')]")
    if other.count():
        other.first.click()
    else:
        raise UnturnedWidget


def _number(_page: Page, locator: Locator) -> None:
    """By the keyboard: a narrow field hides its buttons, and at its highest one of them is off."""
    up = locator.get_by_test_id("stNumberInputStepUp")
    highest = up.count() > 0 and not up.is_enabled()
    locator.locator("input").first.press("ArrowDown" if highest else "ArrowUp")


def _typed(_page: Page, locator: Locator) -> None:
    """One digit more in a field of figures; texts are names, which are left alone."""
    field = locator.locator("input").first
    if not re.fullmatch(r"[0-9.]+", field.input_value()):
        raise UnturnedWidget
    field.press("End")
    field.press("1")
    field.press("Enter")


def _slider(_page: Page, locator: Locator) -> None:
    locator.get_by_role("slider").first.press("ArrowLeft")


def _switch(_page: Page, locator: Locator) -> None:
    locator.locator("label").first.click()


TURNS: dict[str, Callable[[Page, Locator], None]] = {
    "stNumberInput": _number,
    "stTextInput": _typed,
    "stSlider": _slider,
    "stCheckbox": _switch,
    "stSelectbox": _list,
    "stRadio": _radio,
    "stButtonGroup": _radio,
}


def measure(
    browser: Browser, address: str, meter: Meter, given: argparse.Namespace
) -> list[Figure]:
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    pages = [item for item in PAGES if given.only is None or item in given.only]
    visit = Visit(browser, address, meter)
    found[pages[0], "the first of all, after the start"].append(visit.opened(pages[0]))
    visit.close()
    for number in range(given.rounds):
        for name in pages:
            visit = Visit(browser, address, meter)
            found[name, "opened"].append(visit.opened(name))
            for label in widgets(visit.page):
                press = widgets(visit.page).get(label)  # by its name: a turn may have drawn others
                if press is None:
                    print(f"{name} {label}: no longer there", file=sys.stderr)
                    continue
                try:
                    took = visit.turned(press)
                    found[name, label].append(took)
                except UnturnedWidget:
                    visit.page.keyboard.press("Escape")
                except Error as error:
                    print(f"{name} {label}: {str(error).splitlines()[0]}", file=sys.stderr)
                    visit.page.keyboard.press("Escape")
            visit.close()
            print(f"{name or 'answer'} ", end="", file=sys.stderr, flush=True)
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr, flush=True)
    return [
        Figure(
            name or "answer",
            what,
            statistics.median(item[0] for item in took),
            statistics.median(item[1] for item in took),
            FIRST_MS if what.startswith(("the first", "opened")) else CHANGE_MS,
            len(took),
        )
        for (name, what), took in found.items()
        if took
    ]


def _chromium() -> str:
    found = next((item for item in CHROMIUM if Path(item).exists()), None)
    if found is None:
        raise SystemExit("no Chromium here: make parts")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=2_000_000)
    parser.add_argument("--url", help="a ledger that is filled already")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="pages by their addresses; '' is the first")
    given = parser.parse_args()
    with server(given) as (url, _):
        if not given.url:
            migrate(url)
            engine = make_engine(url)
            fill(engine, given.attempts, end_us=time.time_ns() // 1000)
            add_up(engine)
            engine.dispose()
        with dashboard(url) as (address, pid), sync_playwright() as playwright:
            meter = Meter(pid, url)
            browser = playwright.chromium.launch(executable_path=_chromium(), args=[*FLAGS])
            figures = measure(browser, address, meter, given)
            browser.close()
            meter.close()
    _told(figures)


def _told(figures: list[Figure]) -> None:
    print(f"{'page':<12} {'what':<52} {'CPU ms':>8} {'wall ms':>8}")
    for figure in figures:
        verdict = "" if figure.ok else "  OVER"
        print(
            f"{figure.page:<12} {figure.what[:52]:<52} "
            f"{figure.cpu_ms:8.0f} {figure.wall_ms:8.0f}{verdict}"
        )
    about = {"cpus": os.cpu_count(), "machine": platform.platform(), "load": os.getloadavg()[0]}
    out = ROOT / "build" / "bench-dashboard.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(
        json.dumps({"about": about, "figures": [asdict(figure) for figure in figures]}, indent=1)
    )
    short = [f"{figure.page}: {figure.what}" for figure in figures if not figure.ok]
    if short:
        raise SystemExit(f"FELL SHORT: {', '.join(short)}")


if __name__ == "__main__":
    main()
